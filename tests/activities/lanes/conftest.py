"""Lanes that hand over, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from orch.activities.home import Home
from orch.workflows.model.round.plan import RoundPlan

from . import handing


@pytest.fixture
def lane(home: Home, make_repo: Callable[..., Path], tmp_path: Path) -> handing.LaneBench:
    """A lane on a small repository."""
    return handing.LaneBench(home, make_repo(tmp_path / "repo", handing.FILES))


@pytest.fixture
def make_lane(home: Home, make_repo: Callable[..., Path], tmp_path: Path) -> Callable[..., handing.LaneBench]:
    """Make a lane on a repository of other files, with other globs or facts of the plan."""

    def make(files: Mapping[str, str | bytes] | None = None, **facts: Any) -> handing.LaneBench:
        globs = facts.pop("globs", ("src/**",))
        return handing.LaneBench(
            home, make_repo(tmp_path / "repo", handing.FILES if files is None else files), globs, facts
        )

    return make


@pytest.fixture
def plan() -> Callable[..., RoundPlan]:
    """Make a plan."""
    return handing.make_plan
