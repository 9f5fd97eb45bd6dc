"""What a set-up's outcome depends on, as one digest: the same inputs need no second set-up on this host."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..workflows.model.base import Sha
from ..workflows.model.contract import Contract


def setup_digest(contract: Contract, *, tree: Sha, carried: str, path: str = "") -> str:
    """The digest of a set-up line on a tree, with what is carried into it and where its programs are looked for.

    What it fetches from the network is not known here: a set-up that is to be done anew has to be another line.

    Args:
        contract: names the set-up and the globs of carried paths.
        tree: what is checked out.
        carried: `identity` of the carried paths.
        path: the run's PATH.
    """
    parts = (contract.setup, *contract.carry, tree, carried, path)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def identity(source: Path, paths: Iterable[Path]) -> str:
    """A digest of what lies at carried paths: names, kinds, modes, sizes, times, links; contents are not read.

    A change of a file shows in its change time, which nobody can set; reading a gigabyte would cost seconds.
    """
    found = hashlib.sha256()
    for path in sorted(paths):
        for name in _below(source, path):
            facts = (source / name).lstat()
            link = str((source / name).readlink()) if stat.S_ISLNK(facts.st_mode) else ""
            known = (facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)
            text = "\0".join((name, *map(str, known if not stat.S_ISDIR(facts.st_mode) else known[:1]), link))
            found.update(text.encode("utf-8", "surrogateescape") + b"\0\0")
    return found.hexdigest()


def _below(source: Path, path: Path) -> Iterator[str]:
    """A path and all below it, in order; a link that is carried itself is followed, as it is when it is copied."""
    if not os.path.lexists(source / path):
        return
    yield str(path)
    if (source / path).is_dir():
        for folder, folders, names in os.walk(source / path):
            folders.sort()
            inside = os.path.relpath(folder, source)
            yield from (str(Path(inside, name)) for name in sorted([*names, *folders]))
