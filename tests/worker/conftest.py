"""State directories with an engine of their own, which is gone when the test is."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from orch.activities import processes
from orch.activities.home import Home
from orch.worker import engine
from orch.worker.records import read_server, read_worker
from orch.worker.state import open_state


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "ORCH_METRICS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "state")
    yield home
    for record in (read_worker(home), read_server(home)):
        if record is not None and record.pid:
            processes.send(record.pid, record.ticks, signal.SIGKILL)  # quicker than asking
    asyncio.run(engine.down(home))


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """An engine that the tests share: they look, and leave it as it is."""
    home = Home(tmp_path_factory.mktemp("shared") / "state")
    open_state(home)
    try:
        asyncio.run(engine.ensure_up(home))
        yield home
    finally:
        asyncio.run(engine.down(home))
