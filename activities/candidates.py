"""What an attempt left in its workspace, as a tree: nothing the agent did to git itself can bend it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..workflows.model.attempt import Snapshot
from .carry import carried_paths
from .changes import GITLINK, NOTHING, Change, display, parse_raw
from .git import Git
from .protection import ATTRIBUTES, bent_attributes, protected_changes, undo
from .recording import make_ordinary, nested_repositories, record_tree, trust_times, untouched

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
    warnings = _open_nested(git, left_out)
    odd = record_tree(git, without=left_out)
    warnings += [f"{display(name)} is no file any more: recorded as deleted" for name in odd]
    changes = _changes(git, commit)
    warnings += _inside_submodules(git, commit, changes, checkout)
    foreign = _not_by_agent(git, changes, index, made)
    own = [change for change in changes if change not in foreign]
    restored = protected_changes(own, protected)
    restored += bent_attributes(git, commit, [change for change in own if change not in restored], protected)
    if foreign or restored:
        undo(git, [*foreign, *restored])
        changes = _changes(git, commit)
    return Snapshot(
        commit=commit,
        tree=git.text("write-tree"),
        changed=len(changes),
        paths=tuple(display(change.name) for change in changes[:MAX_NAMES]),
        restored=_few([display(change.name) for change in restored]),
        warnings=_few(warnings),
    )


def _open_nested(git: Git, left_out: Sequence[bytes]) -> list[str]:
    """Turn repositories the agent made into plain folders, from the outermost inwards."""
    warnings = []
    while nested := [name for name in nested_repositories(git) if not _below(name, left_out)]:
        for name in nested:
            make_ordinary(git.cwd / os.fsdecode(name))
            warnings.append(f"{display(name)} is a repository of its own: its files are recorded, its history is not")
    return warnings


def _not_by_agent(git: Git, changes: Sequence[Change], index: Path, made: Sequence[Change]) -> set[Change]:
    """Changes that are none of the agent's work: moved submodule links, what set-up made, what git converted anew."""
    known = {(change.name, change.mode, change.id) for change in made}
    unchanged_since = {change for change in changes if (change.name, change.mode, change.id) in known}
    return unchanged_since | set(filter(_is_moved_link, changes)) | set(_converted(git, changes, index))


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
    return [f"changes inside the submodule {display(name)} are not recorded" for name in sorted(names)]


def _changed_since(folder: Path, checkout: int) -> bool:
    """Whether a file in the folder is newer than the checkout (in ns); carried files keep their older times."""
    files = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return any(file.lstat().st_mtime_ns > checkout for file in files)


def _converted(git: Git, changes: Sequence[Change], index: Path) -> list[Change]:
    """When attributes changed, the changes of files that were not touched.

    Git converts those anew that are as young as their index, which would make the tree depend on the clock.
    """
    if not any(change.name.rpartition(b"/")[2] == ATTRIBUTES for change in changes):
        return []
    same = {change.name: change for change in changes if NOTHING not in {change.old_mode, change.mode}}
    return [same[name] for name in untouched(git.with_env(GIT_INDEX_FILE=index), git.cwd, list(same))]


def setup_changes(git: Git, commit: str, carried: Sequence[str]) -> list[Change]:
    """What set-up changed in a workspace that no agent has touched yet."""
    record_tree(git, without=[os.fsencode(path) for path in carried_paths(git.cwd, carried)])
    return _changes(git, commit)


def _few(texts: list[str]) -> tuple[str, ...]:
    more = len(texts) - MAX_NAMES
    return (*texts[:MAX_NAMES], f"and {more} more") if more > 0 else tuple(texts)


def _changes(git: Git, commit: str) -> list[Change]:
    return parse_raw(git.lines("diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", commit))


def _below(name: bytes, folders: Sequence[bytes]) -> bool:
    return any(name == folder or name.startswith(folder + b"/") for folder in folders)
