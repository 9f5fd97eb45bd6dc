"""Holding a device set: what is written down of it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from orch.activities.jobs import Job, Step, run_job
from orch.activities.processes import scrubbed_environment
from orch.activities.supervisor import END
from orch.activities.trials.holding import begin_anew_elsewhere, hold, holdings
from orch.activities.trials.leases import Lease
from orch.workflows.model.round.plan import DeviceSet

MINE = min(os.sched_getaffinity(0))


@pytest.fixture
def trial(make_rig: Callable[..., Any]) -> Any:
    """A measurement that has not begun."""
    rig = make_rig()
    found = rig.trial(rig.building(rig.plan.incumbent))
    found.folder.mkdir(parents=True)
    return found


async def held(trial: Any, number: int = 1, name: str = "one", line: str = "sleep 0.3") -> None:
    """Hold the device for a job of one step."""
    step = Step("s", ("sh", "-c", line), trial.folder, scrubbed_environment({}), 60.0)
    async with hold(trial, DeviceSet(name=name, cpus=(MINE,)), number, patience_s=0.0) as lease:
        assert isinstance(lease, Lease)
        await run_job(trial.folder / f"trial-{number}", Job((step,), held=lease.descriptors))


@pytest.mark.parametrize("jump_s", [3600, -3600], ids=["forward", "back"])
def test_a_clock_that_is_set_meanwhile_changes_nothing_of_the_time_that_a_device_was_held(
    trial: Any, jump_s: int
) -> None:
    asyncio.run(held(trial))
    later = time.time() + jump_s
    os.utime(trial.folder / "trial-1" / END, (later, later))
    (found,) = holdings(trial)
    assert 0.3 <= found.held_s < 10


def test_a_measurement_may_leave_a_device_set_more_than_once(trial: Any) -> None:
    for name, other in (("one", "two"), ("two", "one"), ("one", "two")):
        asyncio.run(held(trial, name=name, line="true"))
        begin_anew_elsewhere(trial, other)
    kept = sorted(path.relative_to(trial.folder).parts[0] for path in trial.folder.glob("on-*/trial-1/job.json"))
    assert kept == ["on-one-0", "on-one-2", "on-two-1"]
    assert not list(trial.folder.glob("trial-*"))
