"""What a run starts from, as far as a client can look at it: a working tree, or a URL that is fetched for that."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..workflows.errors import RefusedError
from ..workflows.model.goal import is_url

if TYPE_CHECKING:
    from ..activities.repository import Repository


@dataclass(frozen=True)
class Source:
    """The repository of a run.

    Attributes:
        repo: as the request names it: the top of the working tree, or the URL.
        root: a folder that shows its files.
        repository: the user's own; None for a URL.
        bytes: the size of the commit's files, for a URL.
        commit: what a URL stood for when it was looked at; empty for a working tree.
    """

    repo: str
    root: Path
    repository: Repository | None = None
    bytes: int = 0
    commit: str = ""


@contextmanager
def opened(repo: Path | str, ref: str, state: Path) -> Iterator[Source]:
    """Look at a repository; of a URL, what is new is fetched into its store, and its files are shown for the while.

    RefusedError when it cannot be used.
    """
    from ..activities.remote import is_remote

    if isinstance(repo, str) and is_remote(repo):
        with _fetched(repo, ref, state) as source:
            yield source
        return
    if ref:
        raise RefusedError(
            f"--ref {ref}: {repo} is a working tree, which is taken as it stands", hint="leave it out, or give a URL"
        )
    from ..activities.repository import inspect

    found = inspect(Path(repo))
    yield Source(str(found.top), found.top, found)


@contextmanager
def _fetched(url: str, ref: str, state: Path) -> Iterator[Source]:
    from ..activities.home import Home
    from ..activities.remote import fetch_remote, remote, tree_size
    from ..activities.workspaces.clone import CloneProvider
    from ..worker.state import open_state

    asked, home, provider = remote(url, ref), Home(state), CloneProvider()
    open_state(home)
    store, commit = fetch_remote(home, asked)
    with tempfile.TemporaryDirectory(dir=store.path, prefix="tmp") as folder:
        tree = provider.open(store, Path(folder), commit)
        yield Source(url, tree, bytes=tree_size(store, commit), commit=commit)


def check(source: Source, *, promote: str, carry: tuple[str, ...]) -> None:
    """Refuse of a URL what needs a working tree."""
    if not is_url(source.repo):
        return
    if promote != "none":
        raise RefusedError(
            f"--promote {promote}: {source.repo} has no working tree here",
            hint="leave it out; the result is brought by `orch diff ID | git apply`, or by git fetch from the store",
        )
    if carry:
        raise RefusedError(
            f"--carry {carry[0]}: carried paths lie in a working tree, {source.repo} has none here",
            hint="let --setup make them",
        )
