"""A submission laid on the incumbent, recorded as git itself would record it in a checkout.

The files lie in a folder of their own, with the rules (.gitignore, .gitattributes) that the incumbent has above them,
and git decides about each through an index that holds only these paths: as a snapshot of an overlay does, so nothing
has to be checked out, and the tree is the one that `git add -A` gives.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ...workflows.model.round.ticket import Cause
from ..changes import NOTHING, Change, display
from ..protection import ATTRIBUTES, bending, filtered
from ..store import Store
from ..trees import Entry, Trees
from ..upper_changes import recorded
from ..workspaces.upper import Written
from .incumbent import Laid
from .manifest import LINK, MODES, Flaw

RULES = (b".gitignore", ATTRIBUTES)

_NONE = Entry(NOTHING, "")


def laid_tree(
    store: Store, trees: Trees, incumbent: str, laid: Laid, top: Path, own: Callable[[bytes], bool]
) -> str | Flaw:
    """The id of the incumbent's tree with the submission's files, which lie below `top`, or why git takes none of it.

    Raises GitError when git cannot read them at all.
    """
    if gained := _filtered(store, incumbent, laid, top):
        return Flaw(Cause.GIT_PATH, f"{display(gained[0])} would get a filter, which runs outside of the sandbox")
    after = _after(store, laid, top)
    for entry in laid.manifest.written:
        if entry.path not in after:
            return Flaw(Cause.OUT_OF_SCOPE, f"git ignores {display(entry.path)}")
    changes = _changes(laid, after)
    bent = bending(store.git, incumbent, changes, lambda names: [name for name in names if not own(name)])
    if bent:
        return Flaw(Cause.GIT_PATH, f"{display(bent[0].name)} changes what git makes of files outside of the lane")
    if not changes:
        return Flaw(Cause.NO_CHANGE, "the files are the incumbent's")
    tree = trees.spliced(trees.tree_of(incumbent), changes)
    meant = {entry.path for entry in laid.manifest.entries}
    if stray := [name for name in store.changed(incumbent, tree) if name not in meant or not own(name)]:
        return Flaw(Cause.OUT_OF_SCOPE, f"with it {display(stray[0])} changes")
    return tree


def _filtered(store: Store, incumbent: str, laid: Laid, top: Path) -> list[bytes]:
    """The paths that the submission's rules give a filter, asked before git reads any file of it: then it would run."""
    changes = []
    for entry in laid.manifest.entries:
        if entry.path.rpartition(b"/")[2] == ATTRIBUTES:
            there = top / os.fsdecode(entry.path)
            oid = "" if entry.deleted else store.git.text("hash-object", "-w", "--no-filters", "--", str(there))
            mode, none = (NOTHING if entry.deleted else "100644"), "0" * len(incumbent)
            changes.append(Change(NOTHING, mode, none, oid or none, entry.path))
    return filtered(store.git, incumbent, changes, list(laid.written)) if changes else []


def _after(store: Store, laid: Laid, top: Path) -> dict[bytes, Entry]:
    """What git sees of the submission's files."""
    written = Written(empty=not laid.written)
    for path in laid.written:
        entry = laid.tree.at(path)
        if entry and entry.mode in MODES:
            written.known[path] = entry
    written.gone = {path: entry for path in laid.deleted if (entry := laid.tree.at(path))}
    written.lent = {path for folder in (b"", *laid.folders) for path in _lent(laid, folder, top)}
    return recorded(store, top, written)[1]


def _lent(laid: Laid, folder: bytes, top: Path) -> Sequence[bytes]:
    """Put the incumbent's rules of a folder beside the files; return their paths."""
    lent = []
    for name in RULES:
        path, entry = (folder + b"/" + name if folder else name), laid.tree.folder(folder).get(name)
        if entry and entry.mode in MODES - {LINK} and path not in laid.written and path not in laid.deleted:
            target = top / os.fsdecode(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(laid.tree.target(entry))
            lent.append(path)
    return lent


def _changes(laid: Laid, after: dict[bytes, Entry]) -> list[Change]:
    found = []
    for entry in laid.manifest.entries:
        there = laid.tree.at(entry.path)
        before = there if there and not there.is_tree else _NONE
        now = _NONE if entry.deleted else after[entry.path]
        if before != now:
            none = "0" * max(len(before.id), len(now.id))
            found.append(Change(before.mode, now.mode, before.id or none, now.id or none, entry.path))
    return found
