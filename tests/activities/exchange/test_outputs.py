"""What an attempt printed on another host can be read where the run is, and nothing else of that host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orch.activities.exchange import outputs
from orch.activities.exchange.outputs import fetch_outputs, publish_outputs
from orch.activities.home import Home
from orch.workflows.model.attempt import AttemptKey

KEY = AttemptKey(run="r1", iteration=1, candidate=2, binding=2)


def _write(home: Home, name: str, text: str) -> None:
    path = home.attempt(KEY) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_prompts_and_outputs_arrive_and_what_an_agent_may_write_does_not(scene: Any, tmp_path: Path) -> None:
    there, here = scene.there.home, scene.here.home
    wanted = {"prompt.md": "do", "agent/1-stdout": "did", "agent-2/1-stderr": "x", "measure/rungs/2-stdout": "red"}
    for name, text in wanted.items():
        _write(there, name, text)
    for name in ("tree/1-stdout", "private/1-stdout", "home/1-stderr", "measure/tree/1-stdout", "agent/job.json"):
        _write(there, name, "not this")

    publish_outputs(there, scene.exchange, KEY)

    assert fetch_outputs(here, scene.exchange, KEY)
    folder = here.attempt(KEY)
    found = {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}
    assert found == wanted


def test_flood_is_cut_in_the_middle(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "FILE_LIMIT", 100)
    _write(scene.there.home, "agent/1-stdout", "begin" + "." * 1000 + "end")

    publish_outputs(scene.there.home, scene.exchange, KEY)
    fetch_outputs(scene.here.home, scene.exchange, KEY)

    text = (scene.here.home.attempt(KEY) / "agent/1-stdout").read_text()
    assert text.startswith("begin.")
    assert text.endswith(".end")
    assert "[908 bytes left out]" in text


def test_attempt_that_published_nothing_has_nothing(scene: Any) -> None:
    assert not fetch_outputs(scene.here.home, scene.exchange, KEY)
    assert not scene.here.home.attempt(KEY).exists()
