"""State directories with an engine of their own, which is gone when the test is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from orch.activities.home import Home
from orch.worker import engine
from orch.worker.state import open_state


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "ORCH_METRICS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "state")
    yield home
    asyncio.run(engine.down(home))


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """An engine that the tests of one module share: they look, and leave it as it is."""
    home = Home(tmp_path_factory.mktemp("shared") / "state")
    open_state(home)
    try:
        asyncio.run(engine.ensure_up(home))
        yield home
    finally:
        asyncio.run(engine.down(home))
