from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orch.worker import background, locks, server, serving
from orch.workflows.errors import UnreachableError


def test_a_lock_is_taken_once_and_free_when_closed(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    descriptor = locks.take(lock)
    assert descriptor is not None
    assert locks.take(lock) is None
    os.close(descriptor)
    assert locks.is_free(lock)


def test_a_child_that_inherits_a_lock_holds_it_for_its_life(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    descriptor = locks.take(lock)
    assert descriptor is not None
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(descriptor,))
    os.close(descriptor)
    assert locks.holder(lock) == child.pid
    child.kill()
    child.wait()
    assert locks.holder(lock) is None
    assert locks.is_free(lock)


async def test_a_lock_is_waited_for(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    descriptor = locks.take(lock)
    assert descriptor is not None
    assert await locks.take_within(lock, 0.1) is None
    asyncio.get_running_loop().call_later(0.2, os.close, descriptor)
    assert await locks.take_within(lock, 5) is not None


def test_no_start_that_may_still_succeed_is_taken_for_a_stuck_one() -> None:
    """The slowest one replaces a server and a worker that hang, and has to kill both."""
    of_server = server.HANGING_S + server.GRACE_S + background.KILL_S + server.PORT_S + server.START_S
    of_worker = serving.REVIVE_S + serving.GRACE_S + background.KILL_S + serving.START_S + serving.LOST_S
    assert of_server + of_worker < locks.PATIENCE_S


async def test_waiting_for_a_stuck_starter_ends_with_its_pid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE_S", 0.1)
    descriptor = locks.take(tmp_path / "up.lock")
    assert descriptor is not None
    with pytest.raises(UnreachableError, match=str(os.getpid())):
        async with locks.held(tmp_path / "up.lock"):
            pass
    os.close(descriptor)
