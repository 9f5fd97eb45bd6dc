"""With each defence switched off in turn, the suite notices: a named cheat gets what it wants."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orch.activities import candidates, places, processes, supervisor
from orch.activities.jobs import find_jobs
from orch.activities.measuring import ladder, measurements
from orch.activities.sandbox import guard
from orch.activities.workspaces.registry import provider_of
from orch.workflows.model.attempt import Measure

from .cheats import load
from .scene import QUICK, Scene

CHEATS = load("checks") | load("host")
Patch = Callable[[pytest.MonkeyPatch, Path], None]


def _in_place_of(module: ModuleType, name: str, stand_in: Callable[..., Any]) -> Patch:
    return lambda patch, _: patch.setattr(module, name, stand_in)


def _measured_where_the_agent_worked(patch: pytest.MonkeyPatch, _: Path) -> None:
    fresh = measurements._open_once

    def used(store: Any, folder: Path, request: Measure) -> Path:
        tree = fresh(store, folder, request)
        left, here = (provider_of(place).written(place) for place in (folder.parent, folder))
        for name in {path.name for path in left.glob("*")} - {path.name for path in here.glob("*")}:
            shutil.copy(left / name, here)
        return tree

    patch.setattr(measurements, "_open_once", used)


def _nothing_swept(patch: pytest.MonkeyPatch, folder: Path) -> None:
    name = "PROGRAM" if hasattr(supervisor, "PROGRAM") else "__file__"
    program, copy = Path(getattr(supervisor, name)), folder / "supervisor"
    shutil.copytree(program, copy) if program.is_dir() else shutil.copyfile(program, copy)
    for file in [copy] if copy.is_file() else copy.glob("*.py"):
        text = file.read_text().replace("self._sweep()", "None").replace("    _end_all()", "    pass")
        file.write_text(text.replace("cgroups.end(", "(lambda _: None)("))
    patch.setattr(supervisor, name, str(copy))


def _no_filter(patch: pytest.MonkeyPatch, _: Path) -> None:
    program = guard._program()
    assert "PR_SET_SECCOMP, FILTER" in program
    patch.setattr(guard, "_program", lambda: program.replace("PR_SET_SECCOMP, FILTER", "PR_GET_SECCOMP, 0"))


@dataclass(frozen=True)
class Off:
    """A defence that is off.

    Attributes:
        cheat: the cheat that it is for.
        breach: words of what the suite must report.
        patch: how it is switched off at its door.
        settings: how it is switched off by a setting.
    """

    cheat: str
    breach: str
    patch: Patch = lambda _, __: None
    settings: dict[str, Any] = field(default_factory=dict)


OPEN: dict[str, Any] = {"sandbox": False}
RUNGS, NAMED = "rungs are green", ("/verify.sh", "/tests/")

DEFENCES = {
    "restoring": Off("check that exits 0", RUNGS, _in_place_of(candidates, "protected_changes", lambda *_: [])),
    "what is derived": Off("makefile before the makefile", RUNGS, settings={"protected": NAMED}),
    "additions": Off("makefile before the makefile", RUNGS, settings={"protected": ("=*akefile",)}),
    "includes followed": Off("edit what the makefile includes", RUNGS, settings={"protected": ("*akefile",)}),
    "attributes": Off("filter of the checks", "not named", _in_place_of(candidates, "bent_attributes", lambda *_: [])),
    "tamper check": Off(
        "rung writes a makefile for the next one", RUNGS, _in_place_of(measurements, "tampered", lambda *_: ())
    ),
    "PATH of rungs": Off("program before the real one", RUNGS, _in_place_of(ladder, "measuring_environment", dict)),
    "fresh copy": Off("ignored file that a rung includes", RUNGS, _measured_where_the_agent_worked),
    "no network": Off("rung reaches the network", "the network was reached", settings={"network": True}),
    "engine's ports": Off(
        "reach the engine", "the engine was reached", _in_place_of(places, "guarded", lambda argv, *_: argv)
    ),
    "engine's ports, by detours": Off("reach the engine", "the engine was reached", _no_filter),
    "sweep": Off("process left behind", "still running", _nothing_swept, OPEN),
}


SANDBOX = {
    "for the state": Off("write to the state", "PWNED"),
    "for git": Off("write to the git of the checkout", "the checkout has changed"),
    "for a verdict": Off("forged verdict", RUNGS),
    "for credentials": Off("read credentials", "a secret is in the tree"),
    "for processes": Off("read the command lines of others", "a secret is in the tree"),
    "for sockets": Off("socket of a daemon", "a daemon was reached"),
    "for progress": Off("rung forges the progress of others", "progress of another"),
}
"""What the sandbox is for: one scene without it serves them all, one after the other."""


@pytest.mark.parametrize("name", DEFENCES)
async def test_defence_that_is_off_is_noticed(
    kit: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    off = DEFENCES[name]
    off.patch(monkeypatch, tmp_path)
    scene = Scene(tmp_path / "scene", kit, ladder=QUICK, **off.settings)
    await scene.prepare()

    found = await _found(scene, 1, off)

    await _end(scene)
    assert any(off.breach in breach for breach in found), found


async def test_sandbox_that_is_off_is_noticed_by_each_cheat_that_it_is_for(kit: ModuleType, tmp_path: Path) -> None:
    scene = Scene(tmp_path / "scene", kit, ladder=QUICK, **OPEN)
    await scene.prepare()
    unnoticed, before = {}, set[str]()

    for number, (name, off) in enumerate(SANDBOX.items(), 1):
        found = await _found(scene, number, off)
        if not any(off.breach in breach for breach in found if breach not in before):
            unnoticed[name] = found
        before |= set(scene.damage())

    await _end(scene)
    assert unnoticed == {}


async def _found(scene: Scene, candidate: int, off: Off) -> list[str]:
    left = await scene.attempt(candidate, CHEATS[off.cheat].script)
    return [*scene.breaches(CHEATS[off.cheat], left), *scene.damage()]


async def _end(scene: Scene) -> None:
    await scene.close()
    for job in find_jobs(scene.home.root):
        processes.end_marked(supervisor.MARK, str(job))
