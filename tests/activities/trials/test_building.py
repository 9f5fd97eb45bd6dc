"""Building: both sides step by step, each failing step with its side and its cause, and what no step may do."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from temporalio.activity import ActivityCancellationDetails

from orch.activities import store
from orch.activities.jobs import find_jobs
from orch.activities.repository import inspect
from orch.activities.trials.processors import spare
from orch.activities.trials.sides import Side
from orch.workflows.model.round.plan import DeviceSet, FileHash
from orch.workflows.model.round.ticket import Cause

MINE = sorted(os.sched_getaffinity(0))

STEPS = ("setup", "probe", "build", "smoke")


def commands(rig: Any, **lines: str) -> Any:
    """The plan with these lines."""
    some = rig.plan.commands.benchmark
    return rig.with_plan(**{name: some.model_copy(update={"run": line}) for name, line in lines.items()})


def printed(trial: Any) -> dict[str, str]:
    """What each step of the build printed, by its name."""
    steps = json.loads((trial.folder / "build/job.json").read_text())["steps"]
    files = (trial.folder / f"build/{number}-stdout" for number in range(1, len(steps) + 1))
    return {step["name"]: path.read_text() for step, path in zip(steps, files, strict=True) if path.exists()}


def test_both_sides_go_through_the_same_steps(rig: Any) -> None:
    commands(rig, setup="echo set up", probe="echo $PWD/code.sh", build="cat knob", smoke="echo tried")
    request = rig.building(rig.candidate({"knob": "80.0"}))
    assert rig.built(request).failed is None
    assert printed(rig.trial(request)) == {
        "base:set-up": "set up\n",
        "base:probe": f"{rig.trial(request).place(Side.BASE).tree}/code.sh\n",
        "base:place": "",
        "base:build": "100.0",
        "base:smoke": "tried\n",
        "candidate:set-up": "set up\n",
        "candidate:probe": f"{rig.trial(request).place(Side.CANDIDATE).tree}/code.sh\n",
        "candidate:place": "",
        "candidate:build": "80.0",
        "candidate:smoke": "tried\n",
    }


@pytest.mark.parametrize("side", ["base", "candidate"])
@pytest.mark.parametrize(
    ("step", "cause", "detail"),
    [
        ("setup", Cause.SETUP_FAILED, "set-up: exit 4"),
        ("probe", Cause.PROBE_FAILED, "probe: exit 4"),
        ("build", Cause.BUILD_FAILED, "build: exit 4"),
        ("smoke", Cause.SMOKE_FAILED, "smoke: exit 4"),
    ],
)
def test_a_step_that_fails_is_told_with_its_side_and_its_cause(
    make_rig: Callable[..., Any], step: str, cause: Cause, detail: str, side: str
) -> None:
    rig = commands(make_rig(), **{step: "sh ./code.sh; echo $PWD"})
    broken = rig.candidate({"code.sh": "echo broken >&2; exit 4\n"})
    commands(rig, **{step: ". ./code.sh; echo $PWD"})
    request = rig.building(broken) if side == "candidate" else rig.building(rig.plan.incumbent, base=broken)
    found = rig.built(request)
    assert (found.failed, found.side, found.detail, found.output.head) == (cause, side, detail, "broken\n")
    assert not rig.trial(request).place(Side(side)).folder.exists()
    assert rig.built(request) == found


@pytest.mark.parametrize(
    ("probe", "detail"),
    [
        ("echo", "it printed no path"),
        ("echo ./none", "no file: ./none"),
        ("echo /usr/bin/env", "outside: /usr/bin/env"),
        ("echo warning; echo $PWD/..", "outside: "),
        ("echo $PWD/knob; echo /etc", "outside: /etc"),
    ],
)
def test_a_target_that_does_not_lie_in_the_checkout_is_refused(
    make_rig: Callable[..., Any], probe: str, detail: str
) -> None:
    rig = commands(make_rig(), probe=probe)
    found = rig.build(rig.plan.incumbent)
    assert (found.failed, found.side) == (Cause.PROBE_FAILED, "base")
    assert found.detail.startswith(f"the target does not resolve inside of the checkout: {detail}")


@pytest.mark.parametrize("probe", ["echo .", "echo knob", "echo; echo $PWD/knob; echo", "echo {repo}/knob"])
def test_a_target_in_the_checkout_is_found_by_whatever_name(rig: Any, probe: str) -> None:
    commands(rig, probe=probe.format(repo=rig.repo))
    assert rig.build(rig.plan.incumbent).failed is None


def test_a_step_has_neither_network_nor_secrets_nor_the_processors_of_measurements(
    make_rig: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    rig = make_rig()
    rig.with_plan(devices=(DeviceSet(name="one", cpus=(MINE[0],)),))
    commands(rig, setup="env; ls /sys/class/net; cat /proc/net/route | wc -l; grep Cpus_allowed_list /proc/self/status")
    request = rig.building(rig.plan.incumbent)
    assert rig.built(request).failed is None
    for text in (said for name, said in printed(rig.trial(request)).items() if "set-up" in name):
        assert "hunter2" not in text
        *environment, routes, processors = text.splitlines()
        assert routes == "1"  # the line of headings
        if spare(rig.plan.devices):
            assert MINE[0] not in _numbers(processors.split()[1])
        assert "PYTHONDONTWRITEBYTECODE=1" in environment


def _numbers(text: str) -> set[int]:
    parts = [part.partition("-") for part in text.split(",")]
    return {n for first, _, last in parts for n in range(int(first), int(last or first) + 1)}


def test_a_commit_that_changes_what_grades_it_is_not_even_built(make_rig: Callable[..., Any]) -> None:
    rig = make_rig()
    for files, said in (
        ({"bench.sh": "echo 1"}, "the commit changes bench.sh"),
        ({"expected": None}, "the commit changes expected"),
        ({"validate.sh": "exit 0\n"}, "validate.sh of the validator has the SHA-256 "),
        ({"validate.sh": None}, "validate.sh of the validator is no file of the commit"),
    ):
        request = rig.building(rig.candidate(files))
        found = rig.built(request)
        assert (found.failed, found.side) == (Cause.TAMPERED, "candidate")
        assert found.detail.startswith(said)
        assert not (rig.trial(request).folder / "build").exists()


def test_a_plan_whose_validator_is_not_that_of_the_incumbent_is_told_as_the_bases_fault(
    make_rig: Callable[..., Any],
) -> None:
    rig = make_rig().with_plan(gates={"validator": (FileHash(path="validate.sh", sha256="0" * 64),)})
    found = rig.build(rig.plan.incumbent)
    assert (found.failed, found.side) == (Cause.TAMPERED, "base")


@pytest.mark.parametrize("provider", ["overlay", "clone"])
@pytest.mark.parametrize(
    "trick",
    [
        "echo 41 > expected",
        "rm -f expected && echo 42 > expected",
        "mv bench.sh b && cp b bench.sh",
        "rm validate.sh",
        "echo x > graders/new.sh",
        "mv graders g && cp -r g graders",
    ],
)
def test_no_step_writes_a_grading_input(
    make_rig: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, trick: str, provider: str
) -> None:
    monkeypatch.setenv("ORCH_WORKSPACES", provider)
    rig = make_rig()
    base = rig.candidate({"graders/one.sh": "exit 0\n"})
    rig.with_plan(incumbent=base, protected=(*rig.plan.protected, "/graders/**"))
    found = rig.build(rig.candidate({"build.sh": f"{trick} || exit 5\n"}))
    assert found.side == "candidate"
    assert found.failed in {Cause.BUILD_FAILED, Cause.TAMPERED}
    if trick.startswith(("echo", "rm")):
        assert found.failed is Cause.BUILD_FAILED  # denied
        assert "Read-only file system" in found.output.head or "Device or resource busy" in found.output.head


@pytest.mark.parametrize("provider", ["overlay", "clone"])
def test_without_the_sandbox_a_changed_grading_input_is_found(
    make_rig: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("ORCH_WORKSPACES", provider)
    rig = make_rig(sandbox=False)
    found = rig.build(rig.candidate({"build.sh": "echo 41 > expected\n"}))
    assert (found.failed, found.side, found.detail) == (Cause.TAMPERED, "candidate", "its steps changed expected")
    same = rig.candidate({"build.sh": "cp expected e && mv e expected\n"})
    assert rig.build(same).failed is Cause.TAMPERED  # swapped
    rig.with_plan(incumbent=same)
    assert rig.build(rig.candidate({"knob": "1.0"})).failed is None  # a habit of the base's
    found = rig.build(rig.candidate({"build.sh": "echo 41 > expected\n", "knob": "2.0"}))
    assert found.failed is Cause.TAMPERED


def test_compiled_code_that_would_run_instead_of_a_grader_is_tampering(make_rig: Callable[..., Any]) -> None:
    rig = make_rig()
    base = rig.candidate({"grade.py": "right = 42\n", "own.py": "x = 1\n"})
    rig.with_plan(incumbent=base, protected=("/grade.py",))
    plant = "mkdir -p __pycache__; echo evil > __pycache__/{}.cpython-311.pyc\n"
    assert rig.build(rig.candidate({"build.sh": plant.format("own")})).failed is None
    found = rig.build(rig.candidate({"build.sh": plant.format("grade")}))
    assert (found.failed, found.side) == (Cause.TAMPERED, "candidate")
    assert found.detail == "its steps changed __pycache__/grade.cpython-311.pyc"


def test_a_commit_that_cannot_be_checked_out_is_a_value(make_rig: Callable[..., Any], kit: Any) -> None:
    rig = make_rig()
    kit.git(rig.repo, "config", "filter.gone.smudge", "/no/such/filter")
    kit.git(rig.repo, "config", "filter.gone.required", "true")
    kit.git(rig.repo, "config", "filter.gone.clean", "cat")
    store.Store.of(rig.home, inspect(rig.repo))  # takes the settings over, as each run does
    found = rig.build(rig.candidate({".gitattributes": "knob filter=gone\n", "knob": "3.0"}))
    assert (found.failed, found.side) == (Cause.SETUP_FAILED, "candidate")
    assert "cannot be checked out" in found.detail


async def test_a_build_goes_on_when_its_worker_leaves_and_no_step_runs_twice(
    make_rig: Callable[..., Any], turnstile: Any, worker: Callable[[], Any]
) -> None:
    rig = commands(make_rig(), setup="echo set up", smoke="echo tried")
    request = rig.building(rig.candidate({"build.sh": turnstile.code}))
    trial, environment = rig.trial(request), worker()
    first = asyncio.create_task(rig.abuild(request, environment))
    await turnstile.arrived(trial, 1)
    environment.cancel(ActivityCancellationDetails(worker_shutdown=True))
    with pytest.raises(asyncio.CancelledError):
        await first
    trees = trial.place(Side.CANDIDATE).folder.stat()
    assert find_jobs(trial.folder) == [trial.folder / "build"]
    again = asyncio.create_task(rig.abuild(request))
    turnstile.release()
    assert (await again).failed is None
    assert os.path.samestat(trees, trial.place(Side.CANDIDATE).folder.stat())
    assert turnstile.seen(trial) == 1


async def test_a_cancelled_build_leaves_nothing_running(
    make_rig: Callable[..., Any], turnstile: Any, worker: Callable[[], Any]
) -> None:
    rig = make_rig()
    request = rig.building(rig.candidate({"build.sh": turnstile.code}))
    environment = worker()
    running = asyncio.create_task(rig.abuild(request, environment))
    await turnstile.arrived(rig.trial(request), 1)
    environment.cancel(ActivityCancellationDetails(cancel_requested=True))
    with pytest.raises(asyncio.CancelledError):
        await running
    assert find_jobs(rig.trial(request).folder) == []


async def test_one_worker_at_a_time_is_at_a_trial(make_rig: Callable[..., Any], turnstile: Any) -> None:
    rig = make_rig().with_plan(validate_=None)
    request = rig.measuring(rig.building(rig.candidate({"build.sh": turnstile.code})))
    both = [asyncio.create_task(rig.ameasure(request)) for _ in range(2)]
    await turnstile.arrived(rig.trial(request), 1)
    turnstile.release()
    one, other = await asyncio.gather(*both)
    assert one == other
    assert len(one.pairs) == 4
    assert turnstile.seen(rig.trial(request)) == 1


async def test_a_build_whose_supervisor_is_lost_is_the_hosts_fault_and_made_anew(
    make_rig: Callable[..., Any], turnstile: Any
) -> None:
    rig = make_rig()
    request = rig.building(rig.candidate({"build.sh": turnstile.code}))
    trial = rig.trial(request)
    running = asyncio.create_task(rig.abuild(request))
    await turnstile.arrived(trial, 1)
    os.kill(json.loads((trial.folder / "build/supervisor.json").read_text())["pid"], signal.SIGKILL)
    with pytest.raises(Exception, match="the supervisor of a build was lost"):
        await running
    assert not (trial.folder / "built.json").exists()
    again = asyncio.create_task(rig.abuild(request))
    await turnstile.arrived(trial, 1)
    turnstile.release()
    assert (await again).failed is None


def test_a_name_with_the_signs_of_globs_is_taken_as_it_is(make_rig: Callable[..., Any]) -> None:
    rig = make_rig()
    odd = "va*l [1]?!.sh"
    base = rig.candidate({odd: "exit 0\n", "val 1x.sh": "exit 0\n"})
    digest = hashlib.sha256(b"exit 0\n").hexdigest()
    rig.with_plan(incumbent=base, gates={"validator": (FileHash(path=odd, sha256=digest),)})
    assert rig.build(rig.candidate({"val 1x.sh": "exit 1\n"})).failed is None
    found = rig.build(rig.candidate({odd: "exit 1\n"}))
    assert found.failed is Cause.TAMPERED


def test_a_step_that_leaves_what_keeps_git_busy_for_ever_has_tampered(
    rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "FOREIGN_S", 1)
    deep, rules = "a/" * 45, f"/a{'/**/a' * 22}/**/[b] text"
    build = f"echo DEEP > {deep}a; echo '{rules}' > .gitattributes\n"
    found = rig.build(rig.candidate({f"{deep}a": "deep\n", "build.sh": build}))
    assert (found.failed, found.side) == (Cause.TAMPERED, "candidate")
    assert found.detail == "its steps changed more than git can tell"
