"""Grading cannot be gamed and workspaces cannot be left: every attempt comes to nothing, for a typed reason."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from .on_checks import ON_CHECKS
from .on_host import ON_HOST
from .scene import HONEST, Scene

CHEATS = dict(enumerate((*ON_CHECKS, *ON_HOST), 1))


async def test_no_attempt_gets_a_green_rung_or_gets_out_and_honest_work_passes(
    kit: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD_TOKEN", "CANARY-environment")
    scene = Scene(tmp_path, kit)
    await scene.prepare()

    left = await scene.play(CHEATS)
    honest = await scene.attempt(99, HONEST)

    found = [f"{cheat.name}: {each}" for n, cheat in CHEATS.items() for each in scene.breaches(cheat, left[n])]
    assert not found, "\n".join(found)
    assert honest.verdict is not None
    assert honest.verdict.passed
    await scene.close()
    assert scene.damage() == []


def test_there_are_as_many_attempts_as_promised_and_each_has_its_own_name() -> None:
    assert len({cheat.name for cheat in CHEATS.values()}) == len(CHEATS) >= 60
