"""Promotion to a branch: commits on top of the start, made in the user's repository, nothing else touched."""

from __future__ import annotations

from ..workflows.model.promotion import Promote, Promotion
from ..workflows.model.reason import Datum, PromotionReason, Reason
from .differences import differences
from .git import Git, GitError
from .repository import Repository
from .store import Store

_FETCH = (
    "-c", "protocol.version=2",  # gives any commit by id, so the store needs no ref for it
    "-c", "fetch.writeCommitGraph=false",
    "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-prune",
    "--no-recurse-submodules", "--refmap=",
)  # fmt: skip


def publish(repository: Repository, store: Store, request: Promote) -> Promotion:
    """Create the branch with the result's tree; done already when it stands there with that tree."""
    git, name = repository.git, request.target.branch
    if git.attempt("check-ref-format", "--branch", name)[:2] != (0, f"{name}\n".encode()):
        return _refused(request, PromotionReason.BRANCH_INVALID)
    tree = store.tree_of(request.new)
    present = _standing(git, name)
    begun = request.chain and present is not None and _moves(git, request)
    if present is not None and not begun:
        return _done(request, tree) if present == tree else _refused(request, PromotionReason.BRANCH_EXISTS)
    try:
        commit = request.new if request.chain else _squashed(store.git, request, tree)
        _create(git, store, request, commit, before=request.old if begun else "")
    except GitError as error:
        if _standing(git, name) != tree:  # else another attempt was faster
            place = str(repository.common_dir)
            return _refused(request, PromotionReason.NOT_WRITABLE, path=place, cause=error.stderr)
    return _done(request, tree, paths=len(differences(store.git, request.old, request.new)))


def _moves(git: Git, request: Promote) -> bool:
    """Whether the branch stands at the start, in no working tree that would not follow it."""
    ref = f"refs/heads/{request.target.branch}"
    used = f"branch {ref}".encode() in git.run("worktree", "list", "--porcelain").splitlines()
    return not used and git.attempt("rev-parse", "--verify", "--quiet", ref)[1].decode().strip() == request.old


def _create(git: Git, store: Store, request: Promote, commit: str, *, before: str) -> None:
    """Point the branch at a commit, if it still is at `before`; empty: if it still is not there."""
    git.run(*_FETCH, str(store.git_dir), commit)
    ref = f"refs/heads/{request.target.branch}"
    git.run("update-ref", "--no-deref", "-m", f"orch: {request.run}", ref, commit, before)


def _standing(git: Git, name: str) -> str | None:
    """The tree of a branch; None where the name is free, empty where it is not but holds no tree.

    Not free are also a name above or below another branch, and the branch of a worktree without commits.
    """
    ref = f"refs/heads/{name}"
    status, out, _ = git.attempt("rev-parse", "--verify", "--quiet", f"{ref}^{{tree}}")
    if status == 0:
        return out.decode().strip()
    others = git.text("for-each-ref", "--format=%(refname)", "refs/heads").splitlines()
    taken = any(f"{ref}/".startswith(f"{other}/") or other.startswith(f"{ref}/") for other in others)
    return "" if taken or f"branch {ref}".encode() in git.run("worktree", "list", "--porcelain").splitlines() else None


def _squashed(git: Git, request: Promote, tree: str) -> str:
    """One commit with the result's tree on the start; the same id each time, so a rerun adds no object."""
    if tree == git.text("rev-parse", f"{request.old}^{{tree}}"):
        return request.old
    date = git.text("show", "-s", "--format=@%ct +0000", request.new)
    dated = git.with_env(GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)
    return dated.text("commit-tree", tree, "-p", request.old, "-m", f"orch: {request.run}")


def _done(request: Promote, tree: str, *, paths: int = 0) -> Promotion:
    return Promotion(target=request.target, tree=tree, paths=paths)


def _refused(request: Promote, code: PromotionReason, **data: Datum) -> Promotion:
    return Promotion(target=request.target, refused=Reason(code=code, data={"branch": request.target.branch, **data}))
