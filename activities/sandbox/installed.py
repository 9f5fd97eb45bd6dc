"""Programs in hidden places: which folders must be shown again, so that what a PATH or a command names can run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from .hiding import below, homes

PROGRAMS = frozenset({"bin", "sbin", "shims", ".bin", "condabin"})
"""Names of folders of programs: what belongs to these lies beside them."""

SYSTEM = frozenset(map(Path, ("/bin", "/sbin", "/usr/bin", "/usr/sbin")))
"""Nothing of the distribution's lies in anybody's home."""

CONTAINERS = (".local/share", ".local/lib", ".local", ".config", ".cache")
"""Folders of a home that hold everybody's folders: one of these is shown, never all."""

WRAPPER_BYTES = 4096
"""Larger programs are no wrappers that name another one."""

Add = Callable[[Path, frozenset[Path], dict[Path, None]], None]

_MENTION = re.compile(r"(?<![\w.~/$}-])/[\w.@%+~/-]+")
_INTERPRETER = re.compile(r"\A#!.*|^[ \t]*exec[ \t].*", re.MULTILINE)


def program_folders(path: str, hidden: frozenset[Path]) -> tuple[Path, ...]:
    """The folders that the programs of a PATH need from hidden places, as they are named there or by a link."""
    entries = tuple(Path(entry) for entry in path.split(":") if entry.startswith("/") and os.path.isdir(entry))  # noqa: PTH112
    times = tuple(entry.stat().st_mtime_ns for entry in entries)
    return _program_folders(entries, times, hidden)


@lru_cache(maxsize=64)
def _program_folders(entries: tuple[Path, ...], times: tuple[int, ...], hidden: frozenset[Path]) -> tuple[Path, ...]:  # noqa: ARG001
    found: dict[Path, None] = {}
    for entry in entries:
        _add_entry(entry, hidden, found)
    return tuple(found)


def mentioned(argv: tuple[str, ...], hidden: frozenset[Path]) -> tuple[Path, ...]:
    """The folders of hidden places that a command names by absolute paths, and what the programs among them need.

    A path that is not there yet stands for its folder, where it may come to be.
    """
    found: dict[Path, None] = {}
    for text in argv:
        for word in _MENTION.findall(text):
            _add_target(Path(os.path.normpath(word)), hidden, found, _add_known)
    return tuple(found)


def _add_known(entry: Path, hidden: frozenset[Path], found: dict[Path, None]) -> None:
    """What a folder of programs needs is looked up anew only once something was added to it, or taken away."""
    with suppress(OSError):  # it may go away meanwhile, as what is looked at in it may
        found.update(dict.fromkeys(_program_folders((entry,), (entry.stat().st_mtime_ns,), hidden)))


def _add_entry(entry: Path, hidden: frozenset[Path], found: dict[Path, None]) -> None:
    """Add a folder of programs with its installation, its interpreter, and what its links and wrappers lead to."""
    if entry in SYSTEM or entry in found:
        return
    shown = _installation(entry, hidden)
    if _is_hidden(entry, hidden):
        if shown in found:
            return
        found[shown] = None
    for word in _venv(entry.parent):
        if _is_hidden(word, hidden) or _is_hidden(Path(os.path.realpath(word)), hidden):
            _add_entry(word, hidden, found)
    for target in _leads(entry):
        _add_target(target, hidden, found)


def _add_target(target: Path, hidden: frozenset[Path], found: dict[Path, None], add: Add = _add_entry) -> None:
    """Add what a program or a file needs, and the same of what it links to; `add` does it for its folder."""
    for path in dict.fromkeys((target, Path(os.path.realpath(target)))):
        if not _is_hidden(path, hidden) or _is_root(path, hidden):
            continue
        folder = path.parent
        if path.is_dir():
            found[path] = None
        elif folder.name in PROGRAMS and path.exists():
            add(folder, hidden, found)
        elif not _is_root(folder, hidden) and folder.is_dir():
            found[_package(folder)] = None
        elif path.exists():
            found[path] = None


def _installation(entry: Path, hidden: frozenset[Path]) -> Path:
    """The folder that holds a folder of programs and what belongs to it; the folder itself where that would be much."""
    parent = entry.parent
    loose = entry.name not in PROGRAMS or _is_root(parent, hidden) or any(parent == h / ".local" for h in homes())
    return entry if loose else parent


def _package(folder: Path) -> Path:
    """The package's own folder where a folder lies in a place for packages of a home."""
    for home in homes():
        for name in CONTAINERS:
            container = home / name
            if folder.is_relative_to(container) and folder != container:
                return container / folder.relative_to(container).parts[0]
    return folder


def _leads(entry: Path) -> Iterator[Path]:
    """Where the links of a folder of programs lead, and the absolute paths that its small scripts execute."""
    with suppress(OSError):
        for item in os.scandir(entry):
            with suppress(OSError):
                if item.is_symlink():
                    yield Path(os.path.realpath(item.path))
                elif item.is_file() and item.stat().st_size <= WRAPPER_BYTES:
                    yield from _wrapped(Path(item.path))


def _wrapped(script: Path) -> Iterator[Path]:
    text = script.read_bytes().decode("utf-8", "replace")
    if text.startswith("#!"):
        for line in _INTERPRETER.findall(text):
            yield from map(Path, re.findall(r"/[\w.@%+~/-]+", line))


def _venv(prefix: Path) -> Iterator[Path]:
    """The folder of the interpreter that a Python environment was made from."""
    with suppress(OSError):
        for line in (prefix / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "home" and value.strip().startswith("/"):
                yield Path(value.strip())


def _is_hidden(path: Path, hidden: frozenset[Path]) -> bool:
    return below(path, hidden)


def _is_root(path: Path, hidden: frozenset[Path]) -> bool:
    """Whether showing a folder would show a hidden one whole."""
    return any(root.is_relative_to(path) for root in hidden)
