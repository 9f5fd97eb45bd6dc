"""Snapshots: the user's tree, or what an attempt left, as a commit in the store that a ref of the run pins."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..workflows.errors import RefusedError
from ..workflows.model.attempt import AttemptKey, Snapshot
from ..workflows.model.contract import Contract
from ..workflows.model.goal import Baseline
from .candidates import candidate_tree, setup_changes, upper_candidate
from .carry import carried_paths
from .changes import Change, display
from .faults import explain
from .git import Git, GitError
from .objects import borrowing, import_commit, import_tree
from .recording import nested_repositories, record_tree
from .repository import Repository
from .settings import check_filters
from .store import Store
from .trees import Trees
from .upper_changes import upper_changes
from .workspaces.overlay import OverlayProvider, is_overlay


def take_baseline(store: Store, repository: Repository, run: str, *, carried: Sequence[str] = ()) -> Baseline:
    """Record the user's tree (staged, dirty and untracked files included) and pin it as `refs/orch/<run>/baseline`.

    Untracked repositories inside, and untracked files at the carried paths or globs, are left out. An existing pin is
    returned unchanged. Raises RefusedError when a file or an object cannot be read or a required filter is missing.
    """
    ref, parent_ref = f"refs/orch/{run}/baseline", f"refs/orch/{run}/parent"
    if store.resolve(ref) is None:
        with store.lock():
            if repository.head:
                import_commit(store.git, repository, repository.head)
        commit = _baseline_commit(store, repository, run, carried)
        pin_new(store, {ref: commit} | ({parent_ref: repository.head} if repository.head else {}))
    commit, parent = store.git.text("rev-parse", ref), store.resolve(parent_ref)
    return Baseline(commit=commit, tree=store.tree_of(commit), parent=parent, dirty=commit != parent)


def take_candidate(  # noqa: PLR0913 - one fact each
    store: Store,
    workspace: Path,
    *,
    attempt: AttemptKey,
    commit: str,
    index: Path,
    contract: Contract,
    carried: Sequence[str],
    made: Sequence[Change] = (),
) -> Snapshot:
    """Record what lies in a workspace that was checked out from `commit`, and pin it as `refs/orch/<run>/<attempt>`.

    Neither the workspace's own index nor its `.git` is used: an agent may have changed them. Protected paths get their
    entries of `commit` back; untracked files at carried paths are left out. Call it when nothing runs in the workspace
    any more. An existing pin is returned unchanged.

    Args:
        store: where the snapshot goes.
        workspace: the working copy, as the provider's `open` returned it.
        attempt: whose snapshot.
        commit: what was checked out.
        index: the pristine index of that checkout.
        contract: names the protected paths.
        carried: the carried paths or their globs.
        made: what set-up changed, as `made_by_setup` told.
    """
    ref = f"refs/orch/{attempt.run}/{attempt.name}"
    with Trees(store.git) as trees:
        if (pinned := trees.commit_of(ref)) is not None:
            return _recall(store, pinned, base=commit)
        with _explained("the workspace cannot be recorded"):
            found = _found(
                store, workspace, commit, index, trees, protected=contract.protected, carried=carried, made=made
            )
    message = f"orch: {attempt.name} of {attempt.run}\n\n{found.model_dump_json()}\n"
    record = commit_tree(store.git, found.tree, [commit], message)
    if pin_new(store, {ref: record}):
        return found.model_copy(update={"commit": record if found.changed else commit})
    return _recall(store, store.git.text("rev-parse", ref), base=commit)


def take_view(store: Store, workspace: Path, *, commit: str, index: Path, carried: Sequence[str]) -> str:
    """Record what lies in a workspace at this moment, as a commit that nothing pins; whoever works there goes on.

    Repositories inside are left out: only at the end may they be taken apart.
    """
    with _explained("the workspace cannot be recorded"), _looking(store, workspace, commit, index) as (git, places):
        left_out = {os.fsencode(path) for place in places for path in carried_paths(place, carried)}
        record_tree(git, without=[*sorted(left_out), *nested_repositories(git)])
        tree = git.text("write-tree")
    return commit_tree(store.git, tree, [commit], "orch: a look at a workspace\n")


@contextmanager
def _looking(store: Store, workspace: Path, commit: str, index: Path) -> Iterator[tuple[Git, list[Path]]]:
    """Git that reads a workspace and writes nothing there, and the folders in which its files lie."""
    if not is_overlay(folder := workspace.parent):
        with _full(store, workspace, index) as git:
            yield git, [workspace]
        return
    provider = OverlayProvider()
    with tempfile.TemporaryDirectory(dir=store.path, prefix="index-") as private:
        env = {**store.git.env, "GIT_WORK_TREE": str(workspace), "GIT_INDEX_FILE": f"{private}/index"}
        git = Git(workspace, env, provider.entering(folder, (), view=True))
        git.run("read-tree", commit)
        yield git, [provider.written(folder), *provider.lower(folder)]


def made_by_setup(
    store: Store, workspace: Path, *, commit: str, index: Path, carried: Sequence[str]
) -> tuple[Change, ...]:
    """What set-up changed in a workspace that was checked out from `commit` and that no agent has touched yet."""
    with _explained("the workspace cannot be recorded"):
        if is_overlay(workspace.parent):
            with Trees(store.git) as trees:
                return tuple(upper_changes(store, workspace.parent, commit, trees, carried=carried).changes)
        with _full(store, workspace, index) as git:
            return tuple(setup_changes(git, commit, carried))


def _found(  # noqa: PLR0913 - one fact each
    store: Store,
    workspace: Path,
    commit: str,
    index: Path,
    trees: Trees,
    *,
    protected: Sequence[str],
    carried: Sequence[str],
    made: Sequence[Change],
) -> Snapshot:
    if workspace.is_symlink() or not workspace.is_dir():
        raise RefusedError(f"the workspace is gone: {display(workspace)}", hint="the agent removed or replaced it")
    if is_overlay(folder := workspace.parent):
        return upper_candidate(store, folder, commit, trees, protected=protected, carried=carried, made=made)
    with _full(store, workspace, index) as git:
        return candidate_tree(git, commit, index=index, protected=protected, carried=carried, made=made)


@contextmanager
def _full(store: Store, workspace: Path, index: Path) -> Iterator[Git]:
    """Git on a whole working copy and a copy of its pristine index."""
    with _private(store, index) as private:
        yield store.wary.at(workspace).with_env(GIT_WORK_TREE=workspace, GIT_INDEX_FILE=private)


def _baseline_commit(store: Store, repository: Repository, run: str, carried: Sequence[str]) -> str:
    """The user's HEAD when it says it all, else a new commit on top of it."""
    head = repository.head
    with _private(store, repository.git_dir / "index") as private, _explained("the working tree cannot be recorded"):
        git = borrowing(repository.git, repository).with_env(
            GIT_DIR=repository.git_dir,
            GIT_WORK_TREE=repository.top,
            GIT_INDEX_FILE=private,
            GIT_OBJECT_DIRECTORY=store.git_dir / "objects",
        )
        check_filters(repository, git)
        left_out = [os.fsencode(path) for path in carried_paths(repository.top, carried)]
        record_tree(git, without=[*nested_repositories(git), *left_out])
        tree = git.text("write-tree")
        if head and tree == store.tree_of(head):
            return head
        import_tree(store.git, repository, tree, known=head)
    return commit_tree(store.git, tree, [head] if head else [], f"orch: the working tree at the start of {run}\n")


def commit_tree(git: Git, tree: str, parents: Sequence[str], message: str) -> str:
    """Write a commit that nothing pins yet; return its id."""
    options = [part for parent in parents for part in ("-p", parent)]
    return git.text("-c", "i18n.commitEncoding=UTF-8", "commit-tree", tree, *options, stdin=message.encode())


def pin_new(store: Store, pins: Mapping[str, str]) -> bool:
    """Pin all of them or none; return whether they are pinned now: when another process was faster, its pins stand."""
    try:
        store.git.run("update-ref", "--stdin", stdin="".join(f"create {r} {c}\n" for r, c in pins.items()).encode())
    except GitError:
        if any(store.resolve(ref) is None for ref in pins):
            raise
        return False
    return True


def _recall(store: Store, record: str, *, base: str) -> Snapshot:
    """Read a snapshot back from its commit; one that changed nothing is the baseline's commit."""
    message = store.git.run("cat-file", "commit", record).partition(b"\n\n")[2]
    found = Snapshot.model_validate_json(message.splitlines()[-1])
    return found.model_copy(update={"commit": record if found.changed else base})


@contextmanager
def _private(store: Store, index: Path) -> Iterator[Path]:
    """A copy of an index to work on, its time kept: git tells by it which entries it must not trust."""
    with tempfile.TemporaryDirectory(dir=store.path, prefix="index-") as folder:
        private = Path(folder) / "index"
        with suppress(FileNotFoundError):
            shutil.copy2(index, private)
        yield private


@contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except GitError as error:
        raise explain(error, what, hint="mend what git says, or have the file ignored") from error
