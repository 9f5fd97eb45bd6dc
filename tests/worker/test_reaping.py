"""What a worker does by itself: trash goes always, caches for want of room, results never."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orch.activities import artifacts
from orch.activities.collecting import plan, trash
from orch.activities.home import Home
from orch.worker import reaping

PLENTY = 1 << 40


@pytest.fixture
def result(home: Home) -> Path:
    """An old result, an unused layer of another boot and something in the trash."""
    artifacts.mark_closed(home, "old")
    os.utime(home.run("old") / artifacts.CLOSED, (1, 1))
    for folder in (home.store("key") / "bases" / "tree-otherboot", trash.folder(home) / "gone"):
        folder.mkdir(parents=True)
        (folder / "used").write_bytes(b"x" * 10_000)
    return home.run("old")


@pytest.mark.parametrize("free", [PLENTY, 0], ids=["room", "no room"])
async def test_trash_goes_always_and_what_can_be_made_again_only_for_want_of_room(
    free: int, home: Home, result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (reaping, plan):
        monkeypatch.setattr(module, "free_bytes", lambda _path: free)

    await reaping.keep_tidy(home)

    assert list(trash.lying(home)) == []
    assert (home.store("key") / "bases" / "tree-otherboot").exists() is (free == PLENTY)
    assert result.exists()
