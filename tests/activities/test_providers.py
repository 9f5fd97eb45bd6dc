"""The provider of workspaces: what the worker's environment names, or the fastest one that works here."""

from __future__ import annotations

import pytest

from orch.activities import processes
from orch.activities.home import Home
from orch.activities.workspaces import probing
from orch.activities.workspaces.registry import PROVIDERS, choose, flaws
from orch.workflows.errors import RefusedError


@pytest.mark.parametrize(
    ("given", "name"),
    [("", "overlay"), ("auto", "overlay"), ("overlay", "overlay"), ("clone", "clone"), ("worktree", "worktree")],
)
def test_the_named_provider_is_used_else_overlays(
    monkeypatch: pytest.MonkeyPatch, home: Home, given: str, name: str
) -> None:
    monkeypatch.setenv("ORCH_WORKSPACES", given)

    assert choose(home) is PROVIDERS[name]
    assert flaws(home) == {}


def test_unknown_provider_is_refused_with_the_known_ones(monkeypatch: pytest.MonkeyPatch, home: Home) -> None:
    monkeypatch.setenv("ORCH_WORKSPACES", "worktrees")

    with pytest.raises(RefusedError, match="worktrees") as refused:
        choose(home)
    assert "auto, clone, overlay, worktree" in refused.value.hint


def test_without_overlays_auto_takes_clones_and_overlay_is_refused(monkeypatch: pytest.MonkeyPatch, home: Home) -> None:
    monkeypatch.setattr(probing, "UNUSABLE", set(_kinds()))

    assert choose(home) is PROVIDERS["clone"]
    monkeypatch.setenv("ORCH_WORKSPACES", "overlay")
    with pytest.raises(RefusedError, match="a file system of the kind"):
        choose(home)


def test_the_probe_is_run_once_for_a_boot(monkeypatch: pytest.MonkeyPatch, home: Home) -> None:
    assert flaws(home) == {}
    monkeypatch.setattr(probing, "PROBE", "exit 1")
    assert flaws(home) == {}
    (home.root / probing.KEPT).write_text("an earlier boot\n")
    assert flaws(home) == {"overlay": "exit 1"}


def test_a_probe_that_took_too_long_is_not_remembered(monkeypatch: pytest.MonkeyPatch, home: Home) -> None:
    with monkeypatch.context() as busy:
        busy.setattr(probing, "PROBE", "sleep 60")
        busy.setattr(processes, "ANSWER_S", 0.5)
        assert flaws(home) == {"overlay": "trying it failed: it took longer than 0.5 s"}
    assert flaws(home) == {}


def _kinds() -> list[str]:
    with open("/proc/self/mountinfo", encoding="utf-8") as file:  # noqa: PTH123
        return [line.partition(" - ")[2].split()[0] for line in file]
