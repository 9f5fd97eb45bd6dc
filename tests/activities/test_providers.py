"""The provider of workspaces is chosen by the worker's environment."""

from __future__ import annotations

import pytest

from orch.activities.workspaces.registry import PROVIDERS, workspaces
from orch.workflows.errors import RefusedError


@pytest.mark.parametrize(
    ("given", "name"), [("", "clone"), ("auto", "clone"), ("clone", "clone"), ("worktree", "worktree")]
)
def test_the_named_provider_is_used(monkeypatch: pytest.MonkeyPatch, given: str, name: str) -> None:
    monkeypatch.setenv("ORCH_WORKSPACES", given)

    assert workspaces() is PROVIDERS[name]


def test_unknown_provider_is_refused_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCH_WORKSPACES", "worktrees")

    with pytest.raises(RefusedError, match="worktrees") as refused:
        workspaces()
    assert "auto, clone, worktree" in refused.value.hint
