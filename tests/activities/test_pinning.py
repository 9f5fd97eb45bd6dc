"""Pinned steps in the sandbox: they keep to their processors, whatever they ask for, and notice nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities import processes
from orch.activities.jobs import Job, Step, run_job
from orch.activities.sandbox.guard import guarded
from orch.activities.sandbox.registry import LAUNCHERS
from orch.activities.sandbox.view import Needs, box
from orch.activities.supervisor import pinning

MINE = sorted(os.sched_getaffinity(0))

LEAVE = """
import os, threading
def leave():
    os.sched_setaffinity(0, range(os.cpu_count()))
    print(*sorted(os.sched_getaffinity(0)))
leave()
thread = threading.Thread(target=leave)
thread.start()
thread.join()
"""
"""It ends with an error where it is told that it may not."""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Any]:
    """Run words on one processor, in the sandbox, and return what they print."""

    async def go(*argv: str, network: bool, cpus: tuple[int, ...] = (MINE[0],)) -> list[str]:
        bwrap = LAUNCHERS["bwrap"]
        words = guarded(argv, frozenset({1}), bwrap) if network else argv
        needs = Needs(words, os.environ["PATH"], tmp_path / "state", tmp=tmp_path)
        boxed = bwrap.wrap(words, box(needs, network=network))
        environment = processes.scrubbed_environment({})
        steps = tuple(Step(name, boxed, tmp_path, environment, 20, cpus=cpus) for name in ("one", "other"))
        found = await run_job(tmp_path / "job", Job(steps))
        assert [(step.exit.ok, step.stderr.read_text()) for step in found] == [(True, "")] * 2
        return [step.stdout.read_text() for step in found]

    return go


@pytest.mark.parametrize("network", [False, True], ids=["alone", "with the filter that closes ports"])
async def test_a_step_in_the_sandbox_cannot_leave_its_processors_and_is_told_that_it_did(
    run: Callable[..., Any], network: bool
) -> None:
    assert pinning.flaw() == ""
    assert await run(sys.executable, "-I", "-c", LEAVE, network=network) == [f"{MINE[0]}\n{MINE[0]}\n"] * 2


async def test_a_step_that_has_no_processors_of_its_own_pins_itself(run: Callable[..., Any]) -> None:
    pin = f"import os; os.sched_setaffinity(0, [{MINE[-1]}]); print(*os.sched_getaffinity(0))"
    assert await run(sys.executable, "-I", "-c", pin, network=False, cpus=()) == [f"{MINE[-1]}\n"] * 2


def decision(machine: str, architecture: int, number: int) -> int:
    """What the filter returns for a call, by running its instructions."""
    code, word, at = pinning.filter_of(machine), 0, 0
    while True:
        kind, yes, no, value = code[at]
        if kind == pinning.RETURN:
            return value
        if kind == pinning.LOAD:
            word = {pinning.NUMBER: number, pinning.ARCHITECTURE: architecture}[value]
        at += 1 + ((yes if word == value else no) if kind == pinning.EQUAL else 0)


@pytest.mark.parametrize("machine", pinning.MACHINES)
def test_every_table_of_calls_of_a_machine_has_the_call_and_no_other_one_filtered(machine: str) -> None:
    for architecture, numbers in pinning.MACHINES[machine].items():
        for number in numbers:
            assert decision(machine, architecture, number) == 0x00050000
            assert decision(machine, architecture, number + 1) == 0x7FFF0000  # sched_getaffinity
    assert decision(machine, 1, 203) == 0x7FFF0000


def test_a_command_outside_of_the_sandbox_stays_as_it_is() -> None:
    assert pinning.fixed(["sh", "-c", "bwrap true"], 7) == ["sh", "-c", "bwrap true"]
    assert pinning.fixed(["sh", "a", "b", "bwrap"], 3) == ["sh", "a", "b", "bwrap"]


def test_a_machine_whose_calls_nobody_wrote_down_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: type("Uname", (), {"machine": "sparc"}))
    assert pinning.flaw() == "no filter of system calls is known for sparc"
    assert pinning.fixed(["bwrap", "true"], 7) == ["bwrap", "true"]
