"""What the host refuses is named, with nothing touched."""

from __future__ import annotations

import ctypes
import errno
import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from orch.activities import renames
from orch.workflows.errors import HostFaultError
from orch.workflows.model.promotion import Promotion
from orch.workflows.model.reason import PromotionReason

Scene = Any
Pair = Any
DAC = 0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH


def unprivileged(call: Callable[[], Promotion]) -> Promotion:
    """Run in a process that obeys permissions even if the suite runs as root."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork"), initializer=obey) as pool:
        return Promotion.model_validate_json(pool.submit(dump, call).result())


def dump(call: Callable[[], Promotion]) -> str:
    return call().model_dump_json()


def obey() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    sets[0] &= ~DAC
    assert libc.capset(header, sets) == 0


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes, where the suite may mount one."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, b"size=4m") != 0:
        pytest.skip("this user may not mount a file system")
    yield folder
    libc.umount2(os.fsencode(folder), 2)


def test_a_folder_that_may_not_be_written_is_named(pair: Pair) -> None:
    folder = pair.scene.top / "dir/deep"
    folder.chmod(0o555)
    result = unprivileged(pair.promote)
    assert result.refused is not None
    assert result.refused.code is PromotionReason.NOT_WRITABLE
    assert result.refused.data == {"path": str(folder), "cause": os.strerror(errno.EACCES)}
    assert pair.scene.files() == pair.before
    assert pair.scene.journals() == []
    folder.chmod(0o755)
    assert pair.promote().refused is None


def test_a_fault_between_renames_is_taken_back_and_named(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    real, count = renames._renameat2, iter(range(1000))

    def rename(*args: Any) -> None:
        if next(count) == 6:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), "run.sh")
        real(*args)

    monkeypatch.setattr(renames, "_renameat2", rename)
    result = pair.promote()
    assert result.refused is not None
    assert result.refused.code is PromotionReason.NOT_WRITABLE
    assert result.refused.data == {"path": "run.sh", "cause": os.strerror(errno.EPERM)}
    assert pair.scene.files() == pair.before
    assert pair.scene.journals() == []


def test_a_fault_that_stays_keeps_the_plan_and_a_rerun_heals(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    real, count = renames._renameat2, iter(range(1000))

    def rename(*args: Any) -> None:
        if next(count) >= 6:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(renames, "_renameat2", rename)
        with pytest.raises(HostFaultError, match="half-way"):
            pair.promote()
    assert pair.torn() == []
    assert pair.promote().paths == 7
    assert pair.scene.files() == pair.after


def test_a_full_disk_is_named_before_anything_is_touched(tiny: Path, scene: Scene, build_scene: Any) -> None:
    top = tiny / "repo"
    scene.git.run("clone", "-q", "--no-hardlinks", str(scene.top), str(top))
    small = build_scene(scene.home, top, scene.store, scene.work)
    old = scene.snapshot()
    new = scene.edited(old, lambda folder: (folder / "big.bin").write_bytes(os.urandom(8 << 20)))
    files, private = small.files(), small.private()
    result = small.promote(old, new)
    assert result.refused is not None
    assert result.refused.code is PromotionReason.NO_SPACE
    assert (small.files(), small.private()) == (files, private)
    assert small.journals() == []


def test_on_another_file_system_the_journal_is_in_the_git_directory(tiny: Path, scene: Scene, build_scene: Any) -> None:
    top = tiny / "repo"
    scene.git.run("clone", "-q", "--no-hardlinks", str(scene.top), str(top))
    small = build_scene(scene.home, top, scene.store, scene.work)
    old = scene.snapshot()
    new = scene.edited(old, lambda folder: (folder / "a.txt").write_text("a2\n"))
    private = small.private()
    assert small.promote(old, new).paths == 1
    assert (top / "a.txt").read_text() == "a2\n"
    assert small.private() == private
