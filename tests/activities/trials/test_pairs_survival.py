"""Pairs over the death of whoever runs them: no complete pair is run again, and no device is lost or shared."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.activity import ActivityCancellationDetails

from orch.activities.home import Home
from orch.activities.jobs import find_jobs
from orch.activities.trials import journal
from orch.activities.trials.gathering import Gathering
from orch.workflows.model.round.lane import MeasurePairs
from orch.workflows.model.round.plan import DeviceSet
from orch.workflows.model.round.trial import Measurement

from .steps import cancelled, is_free, let_through

MINE = sorted(os.sched_getaffinity(0))

WORKER = """
import asyncio, sys
from datetime import UTC, datetime
from dataclasses import replace
from pathlib import Path
from temporalio.testing import ActivityEnvironment
from orch.activities.home import Home
from orch.activities.trials.pairs import Measuring
from orch.workflows.model.round.lane import MeasurePairs
request = MeasurePairs.model_validate_json(sys.stdin.read())
environment = ActivityEnvironment()
environment.info = replace(environment.info, started_time=datetime.now(UTC))
found = asyncio.run(environment.run(Measuring(Home(Path(sys.argv[1]))).measure_pairs, request))
print(found.model_dump_json(), flush=True)
"""


def names(folder: Path) -> list[str]:
    """The steps of a job that were begun."""
    steps = json.loads((folder / "job.json").read_text())["steps"]
    begun = sorted(int(path.name.partition("-")[0]) for path in folder.glob("*-stdout"))
    return [" ".join(steps[number - 1]["name"].split()[1:3]) for number in begun]


class Worker:
    """A process of its own that measures, and can be killed."""

    def __init__(self, home: Home, request: MeasurePairs) -> None:
        self._home, self._request = home, request

    async def start(self) -> Worker:
        pipe = asyncio.subprocess.PIPE
        argv = (sys.executable, "-c", WORKER, str(self._home.root))
        self._process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe)
        assert self._process.stdin is not None
        self._process.stdin.write(self._request.model_dump_json().encode())
        self._process.stdin.close()
        return self

    async def kill(self) -> None:
        self._process.kill()
        await self._process.wait()

    async def measured(self) -> Measurement:
        out, _ = await self._process.communicate()
        return Measurement.model_validate_json(out)


@pytest.fixture
def slow(make_rig: Callable[..., Any], turnstile: Any) -> Any:
    """A rig without a validator; each run of its `candidate` waits in the turnstile."""
    rig = make_rig().with_plan(validate_=None, devices=(DeviceSet(name="one", cpus=(MINE[0],)),))
    rig.slow = rig.candidate({"code.sh": turnstile.code})
    return rig


async def test_a_worker_killed_in_the_middle_of_a_pair_loses_nothing(slow: Any, turnstile: Any) -> None:
    request = slow.measuring(slow.building(slow.slow))
    trial = slow.trial(request)
    first = await Worker(slow.home, request).start()
    await let_through(turnstile, trial, 1)
    await turnstile.arrived(trial, 2)  # the second pair began with B
    while len(journal.read(trial.folder)) < 1:
        await asyncio.sleep(0.01)
    await first.kill()

    assert not is_free(f"cpu-{MINE[0]}")  # the orphan goes on, and so does its lease
    other = await slow.ameasure(slow.measuring(slow.building(slow.plan.incumbent)))
    assert other.busy == f"cpu-{MINE[0]} is leased by another measurement"

    second = await Worker(slow.home, request).start()
    await let_through(turnstile, trial, 2, 3, 4)
    found = await second.measured()
    assert [[sample.value for sample in (*pair.a, *pair.b)] for pair in found.pairs] == [[100.0, 100.0]] * 4
    assert names(trial.folder / "trial-1") == ["0 A", "0 B", "1 B", "1 A", "2 A", "2 B", "3 B", "3 A"]
    assert not (trial.folder / "trial-2").exists()
    assert is_free(f"cpu-{MINE[0]}")
    assert found.held_s > 0


async def test_a_trial_that_ended_while_nobody_was_there_is_read_and_not_run_again(slow: Any, turnstile: Any) -> None:
    request = slow.measuring(slow.building(slow.slow))
    trial = slow.trial(request)
    worker = await Worker(slow.home, request).start()
    await turnstile.arrived(trial, 1)
    await worker.kill()
    await let_through(turnstile, trial, 1, 2, 3, 4)
    while not is_free(f"cpu-{MINE[0]}"):
        await asyncio.sleep(0.02)
    assert journal.read(trial.folder) == ()
    found = await slow.ameasure(request)
    assert len(found.pairs) == 4
    assert turnstile.seen(trial) == 4


async def test_a_lost_supervisor_costs_the_pair_that_it_ran_and_no_other(slow: Any, turnstile: Any) -> None:
    request = slow.measuring(slow.building(slow.slow))
    trial = slow.trial(request)
    running = asyncio.create_task(slow.ameasure(request))
    await let_through(turnstile, trial, 1, 2)
    await turnstile.arrived(trial, 3)  # the third pair: A ran, B runs
    os.kill(json.loads((trial.folder / "trial-1/supervisor.json").read_text())["pid"], signal.SIGKILL)
    await let_through(turnstile, trial, 4, 5)
    found = await running
    assert [sample.value for pair in found.pairs for sample in (*pair.a, *pair.b)] == [100.0] * 8
    assert names(trial.folder / "trial-1") == ["0 A", "0 B", "1 B", "1 A", "2 A", "2 B"]
    assert names(trial.folder / "trial-2") == ["2 A", "2 B", "3 B", "3 A"]


async def test_a_host_that_kills_every_supervisor_leaves_the_pairs_that_are_complete(slow: Any, turnstile: Any) -> None:
    request = slow.measuring(slow.building(slow.slow))
    trial = slow.trial(request)
    running = asyncio.create_task(slow.ameasure(request))
    await let_through(turnstile, trial, 1)
    for number, run in ((1, 2), (2, 3), (3, 4)):
        await turnstile.arrived(trial, run)
        identity = trial.folder / f"trial-{number}/supervisor.json"
        os.kill(json.loads(identity.read_text())["pid"], signal.SIGKILL)
    found = await running
    assert len(found.pairs) == 1
    assert found.detail == "it ended after 1 of 4 pairs: its supervisor was lost again and again"


async def test_a_worker_that_shuts_down_detaches(slow: Any, turnstile: Any, worker: Callable[[], Any]) -> None:
    request = slow.measuring(slow.building(slow.slow))
    trial, environment = slow.trial(request), worker()
    running = asyncio.create_task(slow.ameasure(request, environment))
    await turnstile.arrived(trial, 1)
    await cancelled(running, environment, ActivityCancellationDetails(worker_shutdown=True))
    assert find_jobs(trial.folder) == [trial.folder / "trial-1"]
    assert not is_free(f"cpu-{MINE[0]}")
    again = asyncio.create_task(slow.ameasure(request))
    await let_through(turnstile, trial, 1, 2, 3, 4)
    assert len((await again).pairs) == 4


@pytest.mark.skipif(len(MINE) < 2, reason="one processor is one device")
async def test_a_measurement_that_goes_on_another_device_begins_anew(
    slow: Any, turnstile: Any, worker: Callable[[], Any]
) -> None:
    sets = tuple(DeviceSet(name=name, cpus=(cpu,)) for name, cpu in zip(("one", "two"), MINE, strict=False))
    slow.with_plan(devices=sets)
    request = slow.measuring(slow.building(slow.slow))
    trial, environment = slow.trial(request), worker()
    running = asyncio.create_task(slow.ameasure(request, environment))
    await let_through(turnstile, trial, 1)
    await turnstile.arrived(trial, 2)
    while len(journal.read(trial.folder)) < 1:
        await asyncio.sleep(0.01)
    await cancelled(running, environment, ActivityCancellationDetails(worker_shutdown=True))

    again = asyncio.create_task(slow.ameasure(request.model_copy(update={"device": "two"})))
    while not (trial.folder / "on-one-0/pairs.jsonl").exists():
        await asyncio.sleep(0.01)
    assert is_free(f"cpu-{MINE[0]}")
    for run in range(1, 5):
        while sum("waiting" in path.read_text() for path in trial.folder.glob("trial-1/*-stdout")) < run:
            await asyncio.sleep(0.02)
        turnstile.release()
    found = await again
    assert (found.device, len(found.pairs)) == ("two", 4)
    assert len(journal.read(trial.folder / "on-one-0")) == 1


async def test_a_flawed_pair_ends_the_trial_also_when_another_worker_reads_on(
    slow: Any, turnstile: Any, worker: Callable[[], Any]
) -> None:
    slow.with_plan(gates={"pairs": 64})
    flawed = slow.candidate({"code.sh": f'{turnstile.code}echo broken > "$ORCH_RESULT"; exit 0\n'})
    request = slow.measuring(slow.building(flawed))
    trial, environment = slow.trial(request), worker()
    running = asyncio.create_task(slow.ameasure(request, environment))
    await turnstile.arrived(trial, 1)
    await cancelled(running, environment, ActivityCancellationDetails(worker_shutdown=True))
    turnstile.release()
    await turnstile.arrived(trial, 2)  # nobody was there to end it
    Gathering(trial, trial.folder / "trial-1").look()  # and who wrote the pair down died before it could
    found = await slow.ameasure(request)
    assert (len(found.pairs), found.side) == (1, "candidate")
    assert "is no JSON" in found.detail


async def test_a_cancelled_measurement_ends_its_trial_and_gives_everything_back(
    slow: Any, turnstile: Any, worker: Callable[[], Any]
) -> None:
    request = slow.measuring(slow.building(slow.slow))
    trial, environment = slow.trial(request), worker()
    running = asyncio.create_task(slow.ameasure(request, environment))
    await turnstile.arrived(trial, 1)
    await cancelled(running, environment, ActivityCancellationDetails(cancel_requested=True))
    assert find_jobs(trial.folder) == []
    assert is_free(f"cpu-{MINE[0]}")
    assert not (trial.folder / "A").exists()
    assert not (trial.folder / "runs").exists()


@pytest.mark.skipif(len(MINE) < 2, reason="one processor is one device")
async def test_two_rounds_of_two_state_directories_share_no_device_and_measure_at_once_on_disjoint_ones(
    slow: Any, turnstile: Any, make_rig: Callable[..., Any], tmp_path: Path
) -> None:
    free, *_, held = sorted(MINE, key=str)  # a set of devices is taken in the order of their names
    other = make_rig(home=Home(tmp_path / "other-state"), repo="other").with_plan(validate_=None)
    slow.with_plan(devices=(DeviceSet(name="one", cpus=(held,)),))
    request = slow.measuring(slow.building(slow.slow))
    running = asyncio.create_task(slow.ameasure(request))
    await turnstile.arrived(slow.trial(request), 1)

    for cpus in ((held,), tuple(MINE), ()):
        other.with_plan(devices=(DeviceSet(name="one", cpus=cpus),))
        assert (
            "is leased by another" in (await other.ameasure(other.measuring(other.building(other.plan.incumbent)))).busy
        )
    other.with_plan(devices=(DeviceSet(name="one", cpus=(free,)),))
    beside = await other.ameasure(other.measuring(other.building(other.plan.incumbent)))
    assert len(beside.pairs) == 4  # all the while the first one holds its processor
    assert not running.done()

    other.with_plan(devices=(DeviceSet(name="one"),))
    waiting = asyncio.create_task(
        other.ameasure(other.measuring(other.building(other.plan.incumbent), patience_s=60.0))
    )
    while is_free(f"cpu-{free}"):  # it holds that one once it waits for the other
        await asyncio.sleep(0.01)
    await let_through(turnstile, slow.trial(request), 1, 2, 3, 4)
    assert len((await running).pairs) == 4
    after = await waiting
    assert len(after.pairs) == 4
    assert after.waited_s > 0
