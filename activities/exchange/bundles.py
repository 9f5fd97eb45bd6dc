"""Commits as git bundles in an artifact store, each keyed by its commit: whole once, then only what changed."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from ...workflows.errors import HostFaultError
from ...workflows.model.base import Sha, Value
from ...workflows.model.placement import Exchange
from ..artifacts import write_whole
from ..faults import explain
from ..git import GitError
from ..home import Home
from ..objects import IMPORTED, add_shallow
from ..settings import Carried, carried_settings, keep_settings
from ..store import Store, ensure_bare
from .depot import Depot, digest

LATEST = "refs/exchange"
"""`refs/exchange/<digest of URL and key>`: the baseline that was published last, to which the next ones are thin."""


class Parcel(Value):
    """What is published of one commit; written after the bundle, so that it names what is there.

    Attributes:
        commit: the commit.
        base: the published commit that the bundle builds on; empty for one that is whole.
        bundle: the bundle's SHA-256, which names it; empty when `base` holds everything.
        size: bytes of the bundle.
        form: the repository's object format.
        shallow: commits whose parents are not there, as in the user's repository.
        settings: what decides the content of a checkout; only with a baseline.
    """

    commit: Sha
    base: str = ""
    bundle: str = ""
    size: int = 0
    form: str = "sha1"
    shallow: tuple[str, ...] = ()
    settings: Carried | None = None


def records(home: Home) -> Path:
    """The folder with a file for each such ref that holds its exchange: by it `orch gc` finds what is ours."""
    return home.root / "exchanges"


def publish_baseline(store: Store, exchange: Exchange, commit: str) -> Parcel:
    """Publish a commit with all that a checkout of it needs on another host; thin to the one before."""
    name = sha256(f"{exchange.url} {exchange.key}".encode()).hexdigest()[:16]
    ref = f"{LATEST}/{name}"
    write_whole(records(store.home) / f"{name}.json", exchange.model_dump_json())
    before = store.resolve(ref)
    parcel = publish(store, exchange, commit, base=before or "", settings=carried_settings(store.git, store.git_dir))
    store.pin(ref, commit)
    return parcel


def publish(store: Store, exchange: Exchange, commit: str, *, base: str, settings: Carried | None = None) -> Parcel:
    """Publish a commit of the store, thin to `base` where that is published. Idempotent.

    Args:
        store: where the commit is.
        exchange: where it goes.
        commit: what is published.
        base: a commit that others may have; empty for none.
        settings: what decides the content of a checkout.
    """
    depot = Depot(exchange.url)
    known = _parcel(depot, exchange, commit)
    if known is not None and (settings is None or known.settings == settings):
        return known
    if known is None:
        known = _bundled(store, depot, exchange, commit, base if base and _parcel(depot, exchange, base) else "")
    parcel = known.model_copy(update={"settings": settings})
    depot.write(_name(exchange, commit), parcel.model_dump_json().encode())
    return parcel


def bring(store: Store, exchange: Exchange, commit: str, *, pin: str) -> None:
    """Bring a published commit, and what it builds on, into the store, once; make the store where there is none.

    Args:
        store: where the commit goes.
        exchange: where it comes from.
        commit: what is needed.
        pin: the ref that keeps it alive.

    Raises:
        HostFaultError: it is not published, or damaged.
    """
    with _alone(store):
        depot, missing = Depot(exchange.url), list[Parcel]()
        while commit and not _has(store, commit):
            missing.append(_published(depot, exchange, commit))
            commit = missing[-1].base
        for parcel in reversed(missing):
            _take_in(store, depot, exchange, parcel)
        if missing:
            store.pin(pin, missing[0].commit)


def refresh_settings(store: Store, exchange: Exchange, baseline: str) -> None:
    """Give a store that only the exchange fills the settings that were published with its newest baseline."""
    parcel = _published(Depot(exchange.url), exchange, baseline)
    if parcel.settings is not None:
        keep_settings(store.git_dir, parcel.settings)


def is_published(exchange: Exchange, commit: str) -> bool:
    """Whether a commit can be had here: the store can be read, and holds it."""
    return _parcel(Depot(exchange.url), exchange, commit) is not None


def _has(store: Store, commit: str) -> bool:
    return store.git_dir.is_dir() and store.resolve(commit) is not None


def _published(depot: Depot, exchange: Exchange, commit: str) -> Parcel:
    parcel = _parcel(depot, exchange, commit)
    if parcel is None:
        raise HostFaultError(f"commit {commit} is not in the artifact store", hint="see that nobody emptied it")
    return parcel


def _bundled(store: Store, depot: Depot, exchange: Exchange, commit: str, base: str) -> Parcel:
    git, shallow = store.git, store.git_dir / "shallow"
    parcel = Parcel(
        commit=commit,
        base=base,
        form=git.text("rev-parse", "--show-object-format"),
        shallow=tuple(shallow.read_text().split()) if shallow.exists() else (),
    )
    if base and git.ok("merge-base", "--is-ancestor", commit, base):
        return parcel
    with tempfile.TemporaryDirectory(dir=store.path, prefix="bundle-") as folder:
        file, ref = Path(folder) / "bundle", f"refs/exchange/new/{commit}"
        store.pin(ref, commit)
        try:
            git.run("bundle", "create", "-q", str(file), ref, *([f"^{base}"] if base else []))
        except GitError as error:
            raise explain(error, "the commit cannot be bundled", hint="check the repository with `git fsck`") from error
        finally:
            git.run("update-ref", "-d", ref)
        sum_ = digest(file)
        depot.put(f"{exchange.key}/bundles/{sum_}", file)
        return parcel.model_copy(update={"bundle": sum_, "size": file.stat().st_size})


def _take_in(store: Store, depot: Depot, exchange: Exchange, parcel: Parcel) -> None:
    ensure_bare(store, parcel.form)
    add_shallow(store.git, set(parcel.shallow))
    if not parcel.bundle:
        return
    with tempfile.TemporaryDirectory(dir=store.path, prefix="bundle-") as folder:
        file = Path(folder) / "bundle"
        depot.get(f"{exchange.key}/bundles/{parcel.bundle}", file, sha256=parcel.bundle)
        try:
            store.sharing.run("bundle", "unbundle", str(file))
        except GitError as error:
            raise explain(
                error, f"the bundle of {parcel.commit} cannot be taken in", hint="publish it again"
            ) from error
    if store.resolve(parcel.commit) is None:  # its name is a hash of its content: what git takes in is what was meant
        raise HostFaultError(f"the bundle of {parcel.commit} holds another commit", hint="publish it again")
    if not parcel.base:
        store.pin(f"{IMPORTED}/{parcel.commit}", parcel.commit)


def _parcel(depot: Depot, exchange: Exchange, commit: str) -> Parcel | None:
    found = depot.read(_name(exchange, commit))
    return None if found is None else Parcel.model_validate_json(found)


def _name(exchange: Exchange, commit: str) -> str:
    return f"{exchange.key}/commits/{commit}.json"


@contextmanager
def _alone(store: Store) -> Iterator[None]:
    """One import at a time, so that many attempts that start at once fetch a baseline once."""
    store.path.mkdir(parents=True, exist_ok=True)
    with (store.path / "importing").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
