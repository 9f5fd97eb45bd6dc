"""What can be said of carried paths before a start: globs that are of no use, too much, and what is missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..workflows.errors import RefusedError
from .nearest import nearest
from .talk import clean, plural, size

if TYPE_CHECKING:
    from ..activities.repository import Repository

MAX_BYTES = 20 << 30
"""More than this is no dependency folder but a mistake."""

COPIES = 2
"""A carried path is copied at least into a workspace and into a measured copy; overlays all show one copy."""

USUAL = (".venv", "venv", "node_modules", ".env", ".env.local", ".tox", "vendor", "Pods")
"""What a fresh checkout commonly lacks and cannot run without."""

_AT_ONCE = 200
_LARGEST = 3


class Flaw(NamedTuple):
    """A glob that is of no use, and the mend."""

    number: int
    message: str
    mend: str


def check(found: Repository, globs: Sequence[str], *, free: int, copies: Callable[[], int] = lambda: COPIES) -> None:
    """Refuse globs that match nothing or only tracked files, and more than can be copied.

    `free` is in bytes; `copies` tells how many there will be, and is asked where that decides.
    """
    for flaw in flaws(found, globs):
        raise RefusedError(flaw.message, hint=flaw.mend)
    for message in too_much(found.top, globs, free=free, copies=copies):
        raise RefusedError(message, hint="carry less: name the folders that are needed, or give a set-up instead")


def copies(state: Path) -> int:
    """How often a run copies what it carries, by the provider of this host's workspaces."""
    from ..activities.home import Home
    from ..activities.workspaces.registry import choose
    from ..worker.state import open_state

    home = Home(state)
    open_state(home)
    return 1 if choose(home).name == "overlay" else COPIES


def flaws(found: Repository, globs: Sequence[str]) -> Iterator[Flaw]:
    """The globs that bring nothing to a workspace; one that only takes back others is not asked for more."""
    from ..activities.carry import carried_paths

    for index, glob in enumerate(globs):
        paths = [] if glob.startswith("!") else carried_paths(found.top, [glob])
        if glob.startswith("!"):
            continue
        if not paths:
            yield Flaw(index, f"carry: {glob!r} matches nothing in {found.top}", _offer(found, glob))
        elif not any((found.top / path).exists() for path in paths):
            yield Flaw(index, f"carry: {glob!r} is a link that leads nowhere", "mend the link, or drop the glob")
        elif not _has_untracked(found, paths):
            yield Flaw(
                index, f"carry: {glob!r} matches only tracked files", "drop it: every workspace has these already"
            )


def too_much(top: Path, globs: Sequence[str], *, free: int, copies: Callable[[], int]) -> Iterator[str]:
    """Why what is carried is too much, with its size and its largest folders; nothing when it is not."""
    from ..activities.carry import carried_paths

    sizes = _sizes(top, carried_paths(top, globs))
    total = sum(sizes.values())
    if total <= MAX_BYTES and (total * COPIES <= free or total * copies() <= free):
        return
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:_LARGEST]
    named = ", ".join(f"{clean(str(path))} {size(count)}" for path, count in largest)
    limit = (
        f"at most {size(MAX_BYTES)}"
        if total > MAX_BYTES
        else f"{size(free)} are free for {plural(copies(), 'copy')} or more"
    )
    yield f"carry: {size(total)} would be carried, {limit}; the largest: {named}"


def suggestions(found: Repository, globs: Sequence[str]) -> list[str]:
    """What is ignored, commonly needed, there, and not carried: a fresh workspace lacks it."""
    from ..activities.carry import carried_paths

    there = [Path(name) for name in USUAL if (found.top / name).exists()]
    there += sorted(path.relative_to(found.top) for path in found.top.glob("*/node_modules"))
    missing = [path for path in _ignored(found, there) if path not in set(carried_paths(found.top, globs))]
    return [
        f"not carried: {clean(str(path))} ({size(sum(_sizes(found.top, [path]).values()))}); "
        f"add --carry {clean(str(path))} if the checks need it"
        for path in missing
    ]


def _ignored(found: Repository, paths: list[Path]) -> list[Path]:
    stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
    _, out, _ = found.git.at(found.top).attempt("check-ignore", "-z", "--stdin", stdin=stdin)
    return [Path(os.fsdecode(name)) for name in out.split(b"\0") if name]


def _has_untracked(found: Repository, paths: Sequence[Path]) -> bool:
    git = found.git.at(found.top).with_env(GIT_LITERAL_PATHSPECS="1")
    chunks = (paths[start : start + _AT_ONCE] for start in range(0, len(paths), _AT_ONCE))
    return any(git.lines("ls-files", "-z", "--others", "--directory", "--", *map(str, chunk)) for chunk in chunks)


def _offer(found: Repository, glob: str) -> str:
    """The nearest of what git ignores at the top; else all of it."""
    names = [path.name for path in _ignored(found, [Path(entry.name) for entry in os.scandir(found.top)])]
    close = nearest(glob.strip("/"), names)
    listed = ", ".join(sorted(names)[:8])
    return f"did you mean {close!r}?" if close else f"ignored here: {listed or 'nothing'}"


def _sizes(top: Path, paths: Sequence[Path]) -> dict[Path, int]:
    """The room of each path, and of the folders in it apart; a path that is a link counts as what it leads to."""
    from ..activities.collecting.disk import freed_by

    found = dict[Path, int]()
    for path in paths:
        real = Path(os.path.realpath(top / path))
        for inner in sorted(real.iterdir()) if real.is_dir() else [real]:
            at = path / inner.name if inner.is_dir() and not inner.is_symlink() else path
            found[at] = found.get(at, 0) + freed_by([inner])
    return found
