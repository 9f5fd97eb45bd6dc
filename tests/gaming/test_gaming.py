"""Grading cannot be gamed and workspaces cannot be left: every attempt comes to nothing, for a typed reason."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from .cheats import load
from .scene import HONEST, Scene, small_limits


@pytest.mark.parametrize("table", ["checks", "host"])
async def test_no_attempt_gets_a_green_rung_or_gets_out_and_honest_work_passes(
    kit: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    monkeypatch.setenv("CLOUD_TOKEN", "CANARY-environment")
    if table == "host":
        small_limits(monkeypatch, tmp_path)
    cheats, scene = list(load(table).values()), Scene(tmp_path, kit)
    await scene.prepare()

    left = await scene.play(cheats)
    honest = await scene.attempt(99, HONEST)

    found = [
        f"{cheat.name}: {each}" for cheat, one in zip(cheats, left, strict=True) for each in scene.breaches(cheat, one)
    ]
    assert not found, "\n".join(found)
    assert honest.verdict is not None
    assert honest.verdict.passed
    await scene.close()
    assert scene.damage() == []
