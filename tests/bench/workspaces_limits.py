"""What the kernel takes for the parts of a step, on the same file system and in the same run: the limit of each."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from orch.activities.workspaces import enter

MS = 1000.0
TURNS = 40

MOUNT = """
import ctypes, os, sys, time
sys.path.insert(0, os.path.dirname(sys.argv[1]))
from enter import _isolate, _options
libc = ctypes.CDLL(None, use_errno=True)
base = sys.argv[2]
privileged = _isolate(libc)
spent = []
for turn in range(int(sys.argv[3])):
    place = f"{base}/{turn}"
    for name in ("upper", "work", "tree"): os.makedirs(f"{place}/{name}")
    begun = time.perf_counter()
    options = _options(place, [f"{base}/lower"], view=False, privileged=privileged)
    if libc.mount(b"x", f"{place}/tree".encode(), b"overlay", 0, options.encode()): raise OSError(ctypes.get_errno())
    spent.append(time.perf_counter() - begun)
print(*spent)
"""


def limits(place: Path) -> dict[str, float]:
    """Milliseconds for making a folder and a file, for removing one, for starting a process, and for a mount."""
    folder = place / "limits"
    folder.mkdir()
    return {
        "mkdir": _each(lambda n: (folder / f"d{n}").mkdir()),
        "create a file of 1.7 kB": _each(lambda n: _create(folder / f"f{n}")),
        "lstat": _each(lambda n: os.lstat(folder / f"f{n}")),
        "rename": _each(lambda n: (folder / f"d{n}").rename(folder / f"e{n}")),
        "unlink": _each(lambda n: (folder / f"f{n}").unlink()),
        "start a process (true)": _each(lambda _: _run("true")),
        "start git (git version)": _each(lambda _: _run("git", "version")),
        "start Python (-I -S)": _each(lambda _: _run(sys.executable, "-I", "-S", "-c", "pass")),
        "mount an overlay": _mount(folder / "mounts"),
    }


def inodes(folder: Path) -> tuple[int, int]:
    """How many folders and files lie below a folder, itself included: what making it cannot do without."""
    folders = files = 0
    for _, _, names in os.walk(folder):
        folders, files = folders + 1, files + len(names)
    return folders, files


def room(folder: Path) -> int:
    """Bytes that a folder takes on the disk."""
    paths = (Path(place, name) for place, folders, names in os.walk(folder) for name in (*folders, *names))
    return folder.lstat().st_blocks * 512 + sum(path.lstat().st_blocks * 512 for path in paths)


def _each(action: Callable[[int], object]) -> float:
    spent = []
    for turn in range(TURNS):
        begun = time.perf_counter()
        action(turn)
        spent.append(time.perf_counter() - begun)
    return median(spent) * MS


def _create(path: Path) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(handle, b"x" * 1700)
    os.close(handle)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)


def _mount(folder: Path) -> float:
    (folder / "lower").mkdir(parents=True)
    argv = (sys.executable, "-I", "-S", "-c", MOUNT, enter.__file__, str(folder), str(TURNS))
    done = subprocess.run(argv, check=True, capture_output=True)
    return median(map(float, done.stdout.split())) * MS
