"""A collection from look to end: find, choose, let go of each thing by a rename, then delete, and say what is true."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ...workflows.errors import OrchError, RefusedError
from ..git import GitError
from ..home import Home
from . import bases, exchanges, leavings, linked, runs, stores, trash
from .disk import free_bytes, freed_by
from .found import Collected, Found, KeptError, choose
from .scene import Scene

Finder = Callable[[Scene], Iterable[Found]]
Later = Callable[[Scene, frozenset[str]], Iterable[Found]]

FINDERS: tuple[Finder, ...] = (
    runs.held, runs.leavings, runs.strays, runs.results, bases.unused, leavings.rubbish, leavings.logs,
)  # fmt: skip
"""What can be told by looking."""

LATER: tuple[Later, ...] = (stores.unused, linked.outlived, stores.unpinned)
"""What depends on which runs are forgotten."""

ELSEWHERE: tuple[Later, ...] = (exchanges.leftovers,)
"""The same of what lies on no disk of this host: it makes no room here."""

CACHES: tuple[Finder, ...] = (bases.unused, leavings.rubbish)
"""What can be made again at any time: for want of room a worker lets go of it by itself."""


@dataclass(frozen=True)
class Policy:
    """How much is to go.

    Attributes:
        older_s: what may still be of use goes when it was not used for so many seconds; None keeps it.
        free: bytes that are to be free on the disk of the state directory; more goes, oldest first, until they are.
    """

    older_s: float | None = None
    free: int = 0


@dataclass(frozen=True)
class Plan:
    """What would go.

    Attributes:
        scene: what was known when it was made.
        found: the things, in the order in which they go.
        flaws: what could not be looked at.
    """

    scene: Scene
    found: tuple[Found, ...]
    flaws: tuple[Collected, ...] = ()

    def foreseen(self) -> list[Collected]:
        """The plan as if it had been carried out."""
        return [*(Collected(one.kind, one.path, one.bytes) for one in self.found), *self.flaws]


@dataclass
class _Finding:
    flaws: list[Collected] = field(default_factory=list)

    def all(self, look: partial[Iterable[Found]]) -> Iterator[Found]:
        try:
            yield from look()
        except (GitError, OSError, ValueError) as error:
            path = Path(getattr(error, "filename", None) or look.args[0].home.root)
            self.flaws.append(Collected(look.func.__name__, path, 0, flaw=str(error)))


def suspects(home: Home, *, pins: bool = False) -> frozenset[str]:
    """Runs that hold something here; whether they are dead is for the engine to say, one by one.

    With `pins` also those that have nothing but refs.
    """
    scene = Scene(home, frozenset())
    begun = (folder for folder in scene.open_runs() if scene.has_begun(folder))
    found = {folder.name for folder in begun} | {runs.run_of(holder) for _, holder in runs.holders(home)}
    if pins:
        found |= {run for store in scene.stores() for run in runs.pinned_runs(store) if not home.run(run).exists()}
    return frozenset(found)


def survey(home: Home, dead: frozenset[str], policy: Policy, finders: tuple[Finder, ...] = FINDERS) -> Plan:
    """Look and choose; nothing is changed. `dead` are suspects that the engine does not run; of others nobody asked."""
    scene, finding = Scene(home, dead), _Finding()
    want = policy.free - free_bytes(home.root) if policy.free else 0.0
    first = [one for find in finders for one in finding.all(partial(find, scene))]
    chosen = choose(first, older_s=policy.older_s, want=want, now=scene.now)
    if finders is FINDERS:
        gone = frozenset(one.run for one in chosen if one.kind in {"result", "ref"})
        later = [one for find in LATER for one in finding.all(partial(find, scene, gone))]
        want -= sum(one.bytes for one in chosen)
        away = [one for find in ELSEWHERE for one in finding.all(partial(find, scene, gone))]
        chosen += choose(away, older_s=policy.older_s, want=0.0, now=scene.now)  # first: it asks the stores
        chosen += choose(later, older_s=policy.older_s, want=want, now=scene.now)
    return Plan(scene, tuple(_apart(chosen)), tuple(finding.flaws))


def _apart(chosen: list[Found]) -> list[Found]:
    """Without what goes together with the run's or the store's whole folder that it lies in."""
    whole = [one.path for one in chosen if one.kind in {"result", "store"}]
    return [one for one in chosen if not any(path in one.path.parents for path in whole)]


def carry_out(plan: Plan) -> list[Collected]:
    """Let go of everything first, then delete; what stayed, and why, stands beside what went.

    RefusedError when another collection is at work.
    """
    with _turn(plan.scene.home):
        gone = [(one, *_let_go(one)) for one in plan.found]
        return [*(_end(one, paths, flaw) for one, paths, flaw in gone), *plan.flaws]


def collect(
    home: Home, dead: frozenset[str], policy: Policy | None = None, finders: tuple[Finder, ...] = FINDERS
) -> list[Collected]:
    """Look, and let go of what is found."""
    return carry_out(survey(home, dead, policy or Policy(), finders))


def _let_go(one: Found) -> tuple[tuple[Path, ...], str]:
    try:
        return tuple(one.remove()), ""
    except FileNotFoundError:
        return (), ""  # somebody else was faster
    except KeptError as error:
        return (), str(error)
    except OrchError as error:
        return (), error.message
    except (OSError, GitError) as error:
        return (), getattr(error, "strerror", None) or str(error)


def _end(one: Found, paths: tuple[Path, ...], flaw: str) -> Collected:
    """Delete what a thing was renamed to; only what is gone from the disk counts as freed."""
    whys = [flaw, *(why for path in paths if (why := trash.erase(path)))]
    left = freed_by(path for path in paths if os.path.lexists(path)) if paths else one.bytes if flaw else 0
    return Collected(one.kind, one.path, max(0, one.bytes - left), flaw="; ".join(filter(None, whys)))


@contextmanager
def _turn(home: Home) -> Iterator[None]:
    home.root.mkdir(parents=True, exist_ok=True)
    with (home.root / "gc.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RefusedError("another collection is at work", hint="wait for its end") from None
        yield
