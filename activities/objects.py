"""Bring objects of the user's repository into the store, so that the store needs nobody else's."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from .faults import explain
from .git import Git, GitError
from .repository import Repository

IMPORTED = "refs/user"
"""One ref per commit of the user's whose whole history is in the store."""


def borrowing(git: Git, repository: Repository) -> Git:
    """`git` with the user's objects readable, too."""
    return git.with_env(GIT_ALTERNATE_OBJECT_DIRECTORIES=_quoted(repository.objects))


def link_objects(repository: Repository, target: Path) -> bool:
    """Hard-link (else copy) every object file into `target`; return whether the whole history is sure to be there.

    Loose objects come first: one that is packed meanwhile is met again in its pack. Repositories that borrow objects,
    or lack a part of their history, are not linked at all.
    """
    target.mkdir(parents=True)
    source = repository.objects
    if (source / "info" / "alternates").exists() or is_shallow(repository) or is_partial(repository):
        return False
    folders = sorted(f for f in source.iterdir() if re.fullmatch("[0-9a-f]{2}", f.name) and f.is_dir())
    files = [file for folder in folders for file in folder.iterdir() if re.fullmatch("[0-9a-f]{38,62}", file.name)]
    loose = [_link(file, target / file.parent.name) for file in files]
    indexes = (source / "pack").glob("pack-*.idx")
    packs = [_link(idx.with_suffix(".pack"), target / "pack") and _link(idx, target / "pack") for idx in indexes]
    return all(loose) and all(packs)


def import_commit(git: Git, repository: Repository, commit: str) -> None:
    """Bring a commit with its history into the store of `git`, once. Call it under the store's lock.

    Of a partial clone only the commit's own tree comes: the rest may not be on this disk.
    """
    if git.ok("rev-parse", "-q", "--verify", f"{IMPORTED}/{commit}"):
        return
    known = git.text("for-each-ref", "--format=^%(objectname)", IMPORTED).split()
    add_shallow(git, _boundary(repository, commit))
    _pack(borrowing(git, repository), "--revs", wanted=[commit, *known])
    git.run("update-ref", f"{IMPORTED}/{commit}", commit)


def import_tree(git: Git, repository: Repository, tree: str, *, known: str | None) -> None:
    """Bring what a new tree holds beyond the commit `known` into the store, where it is not there yet."""
    reading = borrowing(git, repository)
    beyond = ["--not", known] if known else []
    ids = reading.run("rev-list", "--objects", "--no-object-names", tree, *beyond)
    found = git.run("cat-file", "--batch-check", stdin=ids).decode().splitlines()
    missing = [line.split()[0] for line in found if line.endswith(" missing")]
    if missing:
        _pack(reading, wanted=missing)


def is_shallow(repository: Repository) -> bool:
    """Whether a part of the history was never fetched."""
    return (repository.common_dir / "shallow").exists()


def is_partial(repository: Repository) -> bool:
    """Whether objects are fetched on demand."""
    return repository.git.ok("config", "--get-regexp", r"^(extensions\.partialclone|remote\..*\.promisor)$")


def _boundary(repository: Repository, commit: str) -> set[str]:
    if is_partial(repository):
        return {commit}
    return set((repository.common_dir / "shallow").read_text().split()) if is_shallow(repository) else set()


def add_shallow(git: Git, commits: set[str]) -> None:
    """Tell the store's git where its history ends."""
    path = Path(git.env["GIT_DIR"]) / "shallow"
    before = set(path.read_text().split()) if path.exists() else set()
    if commits - before:
        aside = path.with_name("shallow.new")
        aside.write_text("".join(f"{commit}\n" for commit in sorted(before | commits)))
        aside.replace(path)


def _pack(git: Git, *options: str, wanted: list[str]) -> None:
    """Write a pack with the wanted objects straight into the store; git puts it in place in one step."""
    base = Path(git.env["GIT_DIR"]) / "objects" / "pack" / "pack"
    stdin = "".join(f"{oid}\n" for oid in wanted).encode()
    try:
        git.run("pack-objects", "-q", "--non-empty", "--delta-base-offset", *options, str(base), stdin=stdin)
    except GitError as error:
        hint = "check the repository with `git fsck`; for a partial or sparse clone, first fetch all that HEAD needs"
        raise explain(error, "objects of the repository cannot be read", hint=hint) from error


def _link(file: Path, folder: Path) -> bool:
    """Link or copy a file into a folder; False when it vanished meanwhile."""
    folder.mkdir(exist_ok=True)
    try:
        try:
            os.link(file, folder / file.name)
        except FileNotFoundError:
            return False
        except OSError:
            shutil.copy2(file, folder / file.name)
    except FileNotFoundError:
        return False
    return True


def _quoted(path: Path) -> str:
    """A path as one entry of git's colon-separated list."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
