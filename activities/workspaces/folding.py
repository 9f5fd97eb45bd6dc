"""Names that differ in case alone: two files in git, one on a disk that does not tell them apart."""

from __future__ import annotations

import unicodedata

from ...workflows.errors import RefusedError
from ..changes import display
from ..store import Store

OTHER_CASE = "CoNfIg"
"""Git's own test of a disk: another spelling of a file that every repository has."""


def check_names(store: Store, commit: str) -> None:
    """Refuse a commit that the disk of the state directory cannot hold, before anything of it is written there.

    A checkout would write one file over the other, and a snapshot of it would be a change that nobody made.
    """
    if not (store.git_dir / OTHER_CASE).exists():
        return
    found = dict[str, tuple[bytes, bool]]()
    for record in store.git.lines("ls-tree", "-r", "-t", "-z", commit):
        facts, _, name = record.partition(b"\t")
        folder = b" tree " in facts
        other, both = found.setdefault(folded(name), (name, folder))
        if other != name and not (folder and both):
            raise RefusedError(
                f"the commit cannot be checked out: {display(other)} and {display(name)} "
                "are one file on the disk of the state directory",
                hint="point ORCH_STATE to a disk that tells upper case from lower case",
            )


def folded(name: bytes) -> str:
    """A name as such disks compare it: neither case nor the way that accents are written counts."""
    return unicodedata.normalize("NFD", name.decode("utf-8", "surrogateescape").casefold())
