"""An artifact store in a folder, and two hosts of which only the first has the repository."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from orch.activities.home import Home
from orch.activities.repository import inspect
from orch.activities.snapshots import take_baseline
from orch.activities.store import Store
from orch.workflows.model.placement import Exchange


@dataclass(frozen=True)
class Scene:
    """What there is on both sides."""

    repo: Path
    shared: Path
    here: Store
    there: Store
    exchange: Exchange

    def baseline(self, run: str) -> str:
        """Record the user's tree as a run's baseline."""
        return take_baseline(self.here, inspect(self.repo), run).commit

    def size(self) -> int:
        """Bytes in the artifact store."""
        return sum(path.stat().st_size for path in self.shared.rglob("*") if path.is_file())


@pytest.fixture
def scene(make_repo: Callable[..., Path], tmp_path: Path) -> Scene:
    repo = make_repo(tmp_path / "project", {"a.txt": "one\n", "big.bin": bytes(range(256)) * 400})
    shared = tmp_path / "shared"
    shared.mkdir()
    here = Store.of(Home(tmp_path / "here"), inspect(repo))
    exchange = Exchange(url=shared.as_uri(), key=f"{here.key}.here")
    return Scene(repo, shared, here, Store(Home(tmp_path / "there"), exchange.key), exchange)
