"""What an attempt left in its workspace, as a tree: nothing the agent did to git itself can bend it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..workflows.model.attempt import Snapshot
from .carry import carried_paths
from .changes import GITLINK, NOTHING, Change, display, parse_raw
from .git import Git
from .protection import bent_attributes, protected_changes, undo
from .recording import open_nested, openable_rules, record_tree, trust_times
from .store import Store
from .trees import Trees
from .upper_changes import upper_changes, without_conflicts

MAX_NAMES = 20
"""How many paths, and how many warnings, a snapshot spells out: it travels in every history."""


def candidate_tree(
    git: Git, commit: str, *, index: Path, protected: Sequence[str], carried: Sequence[str], made: Sequence[Change]
) -> Snapshot:
    """Write what the work tree of `git` holds, its index being a private copy of `index`, as a tree after `commit`.

    What set-up made (`made`) and the agent left as it was is no change of the agent's.
    """
    checkout = index.stat().st_mtime_ns if index.exists() else 0
    if checkout:
        trust_times(git)
    else:
        git.run("read-tree", commit)
    left_out = [os.fsencode(path) for path in carried_paths(git.cwd, carried)]
    with openable_rules(git.cwd) as special:
        warnings = open_nested(git, left_out)
        odd = record_tree(git, without=left_out)
    changes = _changes(git, commit)
    odd += [change.name for change in changes if change.name in special]
    warnings += [f"{display(name)} is no file any more: recorded as deleted" for name in odd]
    warnings += _inside_submodules(git, commit, changes, checkout)
    foreign = _not_by_agent(changes, made)
    own = [change for change in changes if change not in foreign]
    restored = protected_changes(own, protected)
    restored += bent_attributes(git, commit, [change for change in own if change not in restored], protected)
    if foreign or restored:
        undo(git, [*foreign, *restored])
        changes = _changes(git, commit)
    return _snapshot(commit, git.text("write-tree"), changes, restored, made, warnings)


def upper_candidate(  # noqa: PLR0913 - one fact each
    store: Store,
    folder: Path,
    commit: str,
    trees: Trees,
    *,
    protected: Sequence[str],
    carried: Sequence[str],
    made: Sequence[Change],
) -> Snapshot:
    """The same of an overlay workspace, from what was written in it: what was not touched is not looked at."""
    found = upper_changes(store, folder, commit, trees, carried=carried, nested=True)
    moved = list(filter(_is_moved_link, found.changes))
    foreign = {*_left_as_made(found.changes, made), *moved}
    own = [change for change in found.changes if change not in foreign]
    restored = protected_changes(own, protected)
    restored += bent_attributes(store.wary, commit, [change for change in own if change not in restored], protected)
    undone = {*foreign, *restored}
    changes = without_conflicts([change for change in found.changes if change not in undone], list(undone))
    tree = trees.spliced(found.tree, changes)
    warnings = [*found.warnings, *_unrecorded(change.name for change in moved)]
    return _snapshot(commit, tree, changes, restored, made, warnings)


def _snapshot(
    commit: str,
    tree: str,
    changes: Sequence[Change],
    restored: Sequence[Change],
    made: Sequence[Change],
    warnings: Sequence[str],
) -> Snapshot:
    return Snapshot(
        commit=commit,
        tree=tree,
        changed=len(changes),
        paths=tuple(display(change.name) for change in changes[:MAX_NAMES]),
        restored=_few([display(change.name) for change in restored]),
        setup_changed=_few([display(change.name) for change in made if change.old_mode != NOTHING]),
        warnings=_few(warnings),
    )


def _left_as_made(changes: Sequence[Change], made: Sequence[Change]) -> set[Change]:
    """What set-up made and nobody changed since."""
    known = {(change.name, change.mode, change.id) for change in made}
    return {change for change in changes if (change.name, change.mode, change.id) in known}


def _not_by_agent(changes: Sequence[Change], made: Sequence[Change]) -> set[Change]:
    """Changes that are none of the agent's work: moved submodule links and what set-up made."""
    return _left_as_made(changes, made) | set(filter(_is_moved_link, changes))


def _is_moved_link(change: Change) -> bool:
    """Whether a submodule points to another commit, which would be gone with the workspace."""
    return change.old_mode == change.mode == GITLINK


def _inside_submodules(git: Git, commit: str, changes: Sequence[Change], checkout: int) -> list[str]:
    """Tell of new commits and changed files inside of submodules."""
    names = {change.name for change in changes if _is_moved_link(change)}
    if git.ok("cat-file", "-e", f"{commit}:.gitmodules"):
        links = [record for record in git.lines("ls-files", "-z", "--stage") if record.startswith(GITLINK.encode())]
        paths = [record.partition(b"\t")[2] for record in links]
        names |= {name for name in paths if _changed_since(git.cwd / os.fsdecode(name), checkout)}
    return _unrecorded(sorted(names))


def _unrecorded(submodules: Iterable[bytes]) -> list[str]:
    return [f"changes inside the submodule {display(name)} are not recorded" for name in submodules]


def _changed_since(folder: Path, checkout: int) -> bool:
    """Whether a file in the folder is newer than the checkout (in ns); carried files keep their older times."""
    files = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return any(file.lstat().st_mtime_ns > checkout for file in files)


def setup_changes(git: Git, commit: str, carried: Sequence[str]) -> list[Change]:
    """What set-up changed in a workspace that no agent has touched yet."""
    trust_times(git)
    with openable_rules(git.cwd):
        record_tree(git, without=[os.fsencode(path) for path in carried_paths(git.cwd, carried)])
    return _changes(git, commit)


def _few(texts: Sequence[str]) -> tuple[str, ...]:
    more = len(texts) - MAX_NAMES
    return (*texts[:MAX_NAMES], f"and {more} more") if more > 0 else tuple(texts)


def _changes(git: Git, commit: str) -> list[Change]:
    return parse_raw(git.lines("diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", commit))
