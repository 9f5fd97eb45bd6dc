"""What was changed in an overlay workspace, from its upper directory alone; git decides about each file in it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .carry import carried_paths
from .changes import NOTHING, Change, display, joined
from .recording import below, open_nested, openable_rules, record_tree
from .store import Store
from .trees import Entry, Trees
from .workspaces.overlay import OverlayProvider, file_facts, pristine
from .workspaces.upper import Written, read_upper

_NONE = Entry(NOTHING, "")


@dataclass
class Changed:
    """What differs from the commit.

    Attributes:
        tree: the commit's tree.
        changes: in the order of their names.
        known: paths of the commit at which something was written, removed or put, changed or not.
        warnings: what cannot be recorded as it is.
    """

    tree: str
    changes: list[Change] = field(default_factory=list)
    known: list[bytes] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def upper_changes(
    store: Store, folder: Path, commit: str, trees: Trees, *, carried: Sequence[str] = (), nested: bool = False
) -> Changed:
    """What `git add -A` would change in the workspace of `folder`, an overlay, against `commit`.

    Args:
        store: whose objects are read and written.
        folder: the workspace's folder; nothing runs in it any more.
        commit: what it is compared with.
        trees: reads the commit's trees.
        carried: globs of untracked paths to leave out.
        nested: whether repositories of its own become plain folders; else git takes them for submodules.
    """
    provider = OverlayProvider()
    provider.settle(folder)
    upper, tree = provider.written(folder), trees.tree_of(commit)
    with _brought_back(upper, written := read_upper(upper, provider.lower(folder), trees, tree)):
        warnings, after = recorded(store, upper, written, carried, nested=nested)
    for name in written.lent - written.known.keys():
        after.pop(name, None)
    before = {**written.known, **written.gone}
    changes = [_change(name, before.get(name, _NONE), after.get(name, _NONE)) for name in sorted({*before, *after})]
    warnings += [f"{display(name)} is no file any more: recorded as deleted" for name in written.odd]
    kept = [change for change in changes if (change.old_mode, change.old_id) != (change.mode, change.id)]
    return Changed(tree, kept, sorted(before.keys() - written.lent), warnings)


def disturbed_upper(store: Store, folder: Path, commit: str) -> tuple[list[bytes], list[bytes]]:
    """Paths of the commit that an overlay changed since it was opened, and those that are other files than at first."""
    with Trees(store.git) as trees:
        found = upper_changes(store, folder, commit, trees)
    changed = [change.name for change in found.changes if change.old_mode != NOTHING]
    at_first = pristine(folder)
    facts = file_facts(OverlayProvider().written(folder), found.known)
    return changed, [name for name in found.known if name not in facts or facts[name] != at_first.get(name)]


def recorded(
    store: Store, upper: Path, written: Written, carried: Sequence[str] = (), *, nested: bool = False
) -> tuple[list[str], dict[bytes, Entry]]:
    """Have git look at a folder with an index that knows of what it holds; return warnings and what it found."""
    if written.empty:
        return [], {}
    with tempfile.TemporaryDirectory(dir=store.path, prefix="index-") as private:
        git = store.wary.at(upper).with_env(GIT_WORK_TREE=upper, GIT_INDEX_FILE=Path(private) / "index")
        if known := {**written.known, **_gone_attributes(written)}:
            lines = (f"{entry.mode} {entry.id}\t".encode() + name for name, entry in known.items())
            git.run("update-index", "-z", "--index-info", stdin=joined(lines))
        left_out = [os.fsencode(path) for path in carried_paths(upper, carried)]
        with openable_rules(upper):
            warnings = open_nested(git, left_out) if nested and written.nested else []
            record_tree(git, without=left_out)
        return warnings, dict(map(_staged, git.lines("ls-files", "-z", "--stage")))


def _gone_attributes(written: Written) -> dict[bytes, Entry]:
    """Files of attributes that were removed: git reads them from the index as long as they are there."""
    return {name: entry for name, entry in written.gone.items() if name.rpartition(b"/")[2] == b".gitattributes"}


def _staged(record: bytes) -> tuple[bytes, Entry]:
    facts, _, name = record.partition(b"\t")
    mode, oid, _ = facts.decode().split()
    return name, Entry(mode, oid)


def _change(name: bytes, before: Entry, after: Entry) -> Change:
    none = "0" * max(len(before.id), len(after.id))
    return Change(before.mode, after.mode, before.id or none, after.id or none, name)


@contextmanager
def _brought_back(upper: Path, written: Written) -> Iterator[None]:
    """Leave the upper directory as it was found."""
    try:
        yield
    finally:
        for name in written.lent:
            (upper / os.fsdecode(name)).unlink(missing_ok=True)


def without_conflicts(changes: Sequence[Change], undone: Sequence[Change]) -> list[Change]:
    """The changes that still fit once others are undone: what came back wins over what stands in its place."""
    back = {change.name for change in undone if change.old_mode != NOTHING}
    folders = {name[:at] for name in back for at in range(len(name)) if name[at : at + 1] == b"/"}
    return [c for c in changes if c.mode == NOTHING or not (c.name in folders or below(c.name, back))]
