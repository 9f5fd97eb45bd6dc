"""Grading inputs: what decides a measurement belongs to no candidate, and is as the frozen plan has it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from ...workflows.model.base import Sha
from ...workflows.model.round.plan import RoundPlan
from ..changes import display, parse_raw
from ..git import GitError
from ..measuring.inputs import FILES
from ..places import Place
from ..protection import ADDABLE, UNTOLD, added_protected, disturbed, matcher, matches, protected_changes
from ..store import Store
from ..workspaces.registry import provider_of

MOST = 500
"""Each is a mount, or two. Of more than these the comparison afterwards is the only defence."""

MAX_NAMES = 5

NEW = b"\x01new"
"""Stands for a file that is not there yet."""


def grading_globs(plan: RoundPlan) -> tuple[str, ...]:
    """The plan's protected paths, and the validator's files."""
    files = (re.sub(r"([\\*?\[\]!# ])", r"\\\1", file.path) for file in plan.gates.validator)
    return (*plan.protected, *(f"/{name}" for name in files))


def commit_flaw(store: Store, plan: RoundPlan, commit: Sha) -> str:
    """What of the grading inputs a commit has otherwise than the plan, in words; empty when nothing."""
    for file in plan.gates.validator:
        try:
            found = hashlib.sha256(store.git.run("cat-file", "blob", f"{commit}:{file.path}")).hexdigest()
        except GitError:
            return f"{file.path} of the validator is no file of the commit"
        if found != file.sha256:
            return f"{file.path} of the validator has the SHA-256 {found}"
    records = store.git.lines("diff-tree", "-r", "--raw", "-z", "--no-renames", plan.incumbent, commit)
    changed = protected_changes(parse_raw(records), grading_globs(plan))
    return f"the commit changes {named([change.name for change in changed])}" if changed else ""


def read_only_inputs(store: Store, plan: RoundPlan, commit: Sha) -> tuple[str, ...]:
    """The paths of a checkout that no step may write: grading inputs, and folders that hold nothing else."""
    globs = grading_globs(plan)
    if not globs:
        return ()
    spec, closed = matcher(globs), matcher([glob for glob in globs if not glob.startswith(ADDABLE)])
    entries = [entry.partition(b"\t") for entry in store.git.lines("ls-tree", "-r", "-z", commit)]
    open_ = {parent for _, _, name in entries if not matches(spec, name) for parent in _parents(name)}
    whole = not any(glob.startswith("!") for glob in globs)  # else a file that comes later may be open
    found: dict[bytes, None] = {}
    for mode, _, name in entries:
        if mode.startswith(FILES) and matches(spec, name):
            above = [p for p in _parents(name) if whole and p not in open_ and matches(closed, p + b"/" + NEW)]
            found[min(above, key=len, default=name)] = None
    return tuple(os.fsdecode(name) for name in list(found)[:MOST])


def touched(store: Store, place: Place, commit: Sha, plan: RoundPlan) -> tuple[list[bytes], list[bytes]]:
    """The grading inputs of a copy whose content changed or that compiled code hides, and those that are new or anew.

    A step may write the very same content, or add what a glob covers: if it does so in the base, too, it is a habit.
    What keeps git from telling counts as changed.
    """
    globs = grading_globs(plan)
    try:
        return _touched(store, place, commit, globs) if globs else ([], [])
    except GitError as error:
        if not error.overdue:
            raise
        return [UNTOLD], []


def _touched(store: Store, place: Place, commit: Sha, globs: Sequence[str]) -> tuple[list[bytes], list[bytes]]:
    changed, rewritten = disturbed(store, place.folder, commit, globs)
    written = provider_of(place.folder).written(place.folder)
    added = added_protected(store.wary, written, commit, globs)
    return [*changed, *_compiled(store, written, commit, globs)], [*rewritten, *added]


def named(names: Sequence[bytes]) -> str:
    """Some paths for people."""
    more = len(names) - MAX_NAMES
    shown = ", ".join(display(name) for name in names[:MAX_NAMES])
    return f"{shown} and {more} more" if more > 0 else shown


def _compiled(store: Store, written: Path, commit: Sha, globs: Sequence[str]) -> Iterator[bytes]:
    """What Python would load instead of a protected module: it compares times and sizes, which anybody can set."""
    spec = matcher(globs)
    for name in store.git.lines("ls-tree", "-r", "-z", "--name-only", commit):
        path = PurePosixPath(os.fsdecode(name))
        if path.suffix == ".py" and matches(spec, name):
            for found in (written / path.parent / "__pycache__").glob(f"{_literal(path.stem)}.*.pyc"):
                yield os.fsencode(found.relative_to(written))


def _literal(stem: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", stem)


def _parents(name: bytes) -> list[bytes]:
    parts = name.split(b"/")[:-1]
    return [b"/".join(parts[:count]) for count in range(1, len(parts) + 1)]
