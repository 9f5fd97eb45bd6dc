"""A repository that is given as a URL: asked and fetched with the user's own git settings, never written to."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from ..workflows.errors import RefusedError
from ..workflows.model.goal import Baseline
from .faults import explain
from .git import Git, GitError
from .home import Home
from .objects import IMPORTED
from .repository import check_git
from .settings import copy_own_settings
from .store import USED, Store, ensure_bare, readable_key
from .workspaces.gitdir import give_own

ANSWER_S = 30
"""Seconds for a remote to say which commit a name stands for."""

FETCH_S = 1500
"""Seconds for what is new of a remote to arrive; the first time that is all of it."""

SCHEMES = ("https", "http", "ssh", "git", "file")

_SCP = re.compile(r"[\w.-]+@[\w.-]+:[^:]+|[\w.-]{2,}:[^/:][^:]*")
_WITH_HOST = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_TIMED_OUT = {124, 137}
_COMING = "refs/coming"
_FETCH = (
    "-c", "fetch.writeCommitGraph=false",
    "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-prune",
    "--no-recurse-submodules", "--refmap=",
)  # fmt: skip


@dataclass(frozen=True)
class Remote:
    """A repository somewhere else.

    Attributes:
        url: as git takes it; it holds no secret.
        ref: a branch, a tag, a whole ref or a full commit id; empty for the remote's HEAD.
    """

    url: str
    ref: str = ""

    def __str__(self) -> str:
        return f"{self.url} at {self.ref}" if self.ref else self.url


def is_remote(text: str) -> bool:
    """Whether what the user gave is a URL, as git tells: not when a folder of that name is there."""
    return bool(_WITH_HOST.match(text) or (_SCP.fullmatch(text) and not Path(text).exists()))


def remote(url: str, ref: str = "") -> Remote:
    """Check a URL and a name without asking anybody; a URL with a secret is refused and not repeated."""
    parts = _parts(url) if _WITH_HOST.match(url) else None
    if parts and parts.scheme.lower() not in SCHEMES:
        raise RefusedError(
            f"{parts.scheme}:// is no way to a repository", hint=f"use {', '.join(SCHEMES)}, or user@host:path"
        )
    if parts and (parts.password is not None or (parts.username and parts.scheme.lower() in {"http", "https"})):
        raise RefusedError(
            f"the URL of the repository at {parts.hostname} holds a user or a password: it would be kept in ledgers",
            hint="leave it out: git asks your credential helper (git config credential.helper) or ssh agent",
        )
    if parts and (parts.query or parts.fragment):
        raise RefusedError(
            f"the URL of the repository at {parts.hostname} holds more than its place",
            hint="name a branch or commit with --ref; credentials belong in git's credential helper",
        )
    if any(ord(letter) <= ord(" ") for letter in url):
        raise RefusedError(f"{url!r} is no URL: it holds a space or a control character", hint="mend it")
    if ref and not _is_name(ref):
        raise RefusedError(f"--ref: {ref[:80]!r} is no name of a branch, tag or commit", hint="give e.g. main")
    return Remote(url, ref)


def store_for(home: Home, source: Remote) -> Store:
    """The store of a remote, whether it is there or not: one for each URL."""
    name = re.split(r"[/:]", source.url.rstrip("/"))[-1].removesuffix(".git")
    return Store(home, readable_key(name, source.url.rstrip("/").encode()))


def fetch_remote(home: Home, source: Remote) -> tuple[Store, str]:
    """Bring the remote's commit with its history into its store, as far as that is not there; return both.

    Raises:
        RefusedError: there is no answer in time, or no such commit; it names the URL.
    """
    check_git()
    store = store_for(home, source)
    if store.git_dir.is_dir() and _is_id(source.ref) and store.resolve(source.ref) == source.ref:
        with store.lock():  # a collection that began before has ended
            (store.path / USED).touch()
        return store, source.ref
    home.root.mkdir(parents=True, exist_ok=True)
    name, oid = _asked(store, source)
    ensure_bare(store, "sha1" if len(oid) == len("0" * 40) else "sha256")
    with store.lock():
        copy_own_settings(_alone(store), store.git_dir)
        (store.path / USED).touch()
        return store, store.resolve(oid) or _fetched(store, source, name)


def remote_baseline(home: Home, source: Remote, run: str) -> tuple[Store, Baseline]:
    """The remote's commit as a run's baseline, pinned as `refs/orch/<run>/baseline`; an existing pin stands."""
    store, ref = store_for(home, source), f"refs/orch/{run}/baseline"
    commit = store.resolve(ref) if store.git_dir.is_dir() else None
    if commit is None:
        store, commit = fetch_remote(home, source)
        store.pin(f"refs/orch/{run}/parent", commit)
        store.pin(ref, commit)
    return store, Baseline(commit=commit, tree=store.tree_of(commit), parent=commit)


def tree_size(store: Store, commit: str) -> int:
    """Bytes of the files of a commit."""
    sizes = (record.split(b"\t")[0].split()[3] for record in store.git.lines("ls-tree", "-r", "-l", "-z", commit))
    return sum(int(size) for size in sizes if size != b"-")


def _asked(store: Store, source: Remote) -> tuple[str, str]:
    """What to fetch, and the id that it stands for."""
    if _is_id(source.ref):
        wanted = [source.ref]
    else:
        name = source.ref or "HEAD"
        wanted = [name] if name == "HEAD" or name.startswith("refs/") else [f"refs/heads/{name}", f"refs/tags/{name}"]
    patterns = ["HEAD"] if _is_id(source.ref) else wanted
    status, out, err = _patient(store, ANSWER_S).attempt("ls-remote", "--", source.url, *patterns)
    if status:
        raise _unreadable(source, status, err, ANSWER_S)
    known = {name: oid for oid, name in (line.split("\t", 1) for line in out.decode("utf-8", "replace").splitlines())}
    if _is_id(source.ref):
        return source.ref, source.ref
    for name in wanted:
        if name in known:
            return name, known[name]
    if source.ref:
        raise RefusedError(
            f"{source.url} has no branch or tag {source.ref}",
            hint=f"`git ls-remote {source.url}` lists them; a commit is named by its full id",
        )
    raise RefusedError(f"{source.url} has no commit at its HEAD", hint="push one, or name a branch with --ref")


def _fetched(store: Store, source: Remote, name: str) -> str:
    git = _patient(store, FETCH_S, **store.sharing.env)
    status, _, err = git.attempt(*_FETCH, "--", source.url, f"+{name}:{_COMING}")
    if status in _TIMED_OUT:
        raise _unreadable(source, status, err, FETCH_S)
    if status and _is_id(name):
        raise RefusedError(
            f"{source.url} does not give commit {name}: {_said(err)}", hint="name a branch or tag that holds it"
        )
    if status:
        error = GitError(_FETCH, status, _said(err))
        raise explain(error, f"{source.url} cannot be fetched", hint=f"see what `git fetch {source.url}` says")
    commit = store.resolve(_COMING)
    store.git.run("update-ref", "-d", _COMING)
    if commit is None:
        raise RefusedError(f"{source} is no commit", hint="name a branch, a tag of a commit, or a full commit id")
    give_own(store, store.git_dir / "objects", commit)  # what a run made and the remote has by now was not fetched
    store.pin(f"{IMPORTED}/{commit}", commit)
    return commit


def _patient(store: Store, limit: int, **env: str) -> Git:
    """Git that asks nobody and ends in time, with all it started; on no repository unless `env` names one."""
    alone = _alone(store).with_env(**env, GIT_ASKPASS="", SSH_ASKPASS_REQUIRE="never")
    if not alone.ok("config", "core.sshCommand"):
        alone = alone.with_env(GIT_SSH_COMMAND="ssh -o BatchMode=yes -o ConnectTimeout=20")
    return replace(alone, prefix=("timeout", "--kill-after=5", str(limit)))


def _alone(store: Store) -> Git:
    """Git as it is for this user outside of all repositories."""
    root = store.home.root
    return Git(root, {"GIT_CEILING_DIRECTORIES": str(root.parent)})


def _unreadable(source: Remote, status: int, err: str, limit: int) -> RefusedError:
    why = f"no answer within {limit} s" if status in _TIMED_OUT else _said(err)
    return RefusedError(
        f"{source.url} cannot be read: {why}",
        hint=f"try `git ls-remote {source.url}` as the user who runs the worker, without a terminal to ask at",
    )


def _said(err: str) -> str:
    """What git said, on one line; a URL that its settings made of the given one may hold a secret."""
    lines = [line.removeprefix("fatal: ").strip() for line in err.splitlines() if line.strip()]
    return re.sub(r"//[^/@\s]*@", "//", "; ".join(lines))[:300] or "git says nothing"


def _parts(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise RefusedError(f"{url[:80]!r} is no URL: {error}", hint="mend it") from None


def _is_id(text: str) -> bool:
    return bool(re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text))


def _is_name(ref: str) -> bool:
    return not ref.startswith("-") and Git(Path("/")).ok("check-ref-format", "--allow-onelevel", ref)
