"""What this host's runs left in artifact stores: bundles and outputs that no run here needs any more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from ...workflows.errors import OrchError
from ...workflows.model.placement import Exchange
from .. import artifacts
from ..exchange.bundles import LATEST, Parcel, records
from ..exchange.depot import Depot, Stored
from ..store import Store
from .found import Found, KeptError
from .runs import pinned_runs
from .scene import GRACE_S, Scene, store_of

ID = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")
"""A commit in a ledger."""

Files = Mapping[str, Stored]


def leftovers(scene: Scene, gone: frozenset[str]) -> Iterator[Found]:
    """What the runs of this state directory published and none of them needs once those in `gone` are forgotten.

    What others published lies under keys of their own and is not looked at. The baseline that was published last is
    spare: the next one builds on it. A store that is away is told of when its turn comes by age.
    """
    for record in sorted(records(scene.home).glob("*.json")):
        published = _Published(scene, record)
        if scene.busy(published.store.key):
            continue
        try:
            yield from published.leftovers(gone)
        except OrchError as error:
            away, used = partial(_away, error.message), record.stat().st_mtime
            yield Found("exchange", record, 0, used, away, store=published.store.key, spare=True)


@dataclass(frozen=True)
class _Published:
    """What was published of one repository in one artifact store.

    Attributes:
        scene: what is known.
        record: the file that says so.
    """

    scene: Scene
    record: Path

    @cached_property
    def exchange(self) -> Exchange:
        return Exchange.model_validate_json(self.record.read_text(encoding="utf-8"))

    @cached_property
    def depot(self) -> Depot:
        return Depot(self.exchange.url)

    @cached_property
    def store(self) -> Store:
        return Store(self.scene.home, self.exchange.key.rpartition(".")[0])

    def leftovers(self, gone: frozenset[str]) -> Iterator[Found]:
        files = self.depot.files(self.exchange.key)
        needed = self._needed(files, gone)
        stale = self._stale(files, needed | self._chain(files, self._latest()))
        rest = {name: file for name, file in files.items() if name not in stale}
        place = self.depot.folder(self.exchange.key) or self.record
        size, key = sum(file.size for file in stale.values()), self.store.key
        if stale:
            yield Found("exchange", place, size, self.scene.now, partial(self._remove_stale, gone), store=key)
        if not needed:
            used = max((file.used for file in rest.values()), default=self.record.stat().st_mtime)
            size, step = sum(file.size for file in rest.values()), partial(self._remove_all, gone)
            yield Found("exchange", place, size, used, step, store=key, spare=True)

    def _needed(self, files: Files, gone: frozenset[str]) -> frozenset[str]:
        """The files of the runs that are kept: their outputs, and the commits that their ledgers and pins name."""
        runs = [r for r in self.scene.runs() if r.name not in gone and store_of(r) in {self.store.key, None}]
        names, store = {run.name for run in runs}, self.store
        commits = {commit for run in runs for commit in ID.findall(_ledger(run))}
        for run in pinned_runs(store) - gone:
            commits.update(store.git.text("for-each-ref", "--format=%(objectname)", f"refs/orch/{run}/").split())
        folders = tuple(f"{self.exchange.key}/outputs/{name}/" for name in names)
        return self._chain(files, commits) | {name for name in files if name.startswith(folders)}

    def _chain(self, files: Files, commits: Iterable[str]) -> frozenset[str]:
        """The files of commits, as far as they are published, and of those that their bundles build on."""
        found, waiting, key = set[str](), set(commits), self.exchange.key
        while waiting:
            name = f"{key}/commits/{waiting.pop()}.json"
            data = self.depot.read(name) if name in files and name not in found else None
            if data is not None:
                parcel = Parcel.model_validate_json(data)
                found |= {name, f"{key}/bundles/{parcel.bundle}"}
                waiting |= {parcel.base} if parcel.base else set()
        return frozenset(found)

    def _stale(self, files: Files, kept: frozenset[str]) -> Files:
        before = self.scene.now - GRACE_S
        return {name: file for name, file in files.items() if name not in kept and file.used < before}

    def _latest(self) -> list[str]:
        commit = self.store.resolve(self._ref) if self.store.git_dir.is_dir() else None
        return [commit] if commit else []

    @property
    def _ref(self) -> str:
        return f"{LATEST}/{self.record.stem}"

    def _remove_stale(self, gone: frozenset[str]) -> Iterable[Path]:
        """Look once more, while no run can begin."""
        with self.scene.alone(self.store):
            files = self.depot.files(self.exchange.key)
            kept = self._needed(files, self._forgotten(gone)) | self._chain(files, self._latest())
            self.depot.remove(sorted(self._stale(files, kept), key=_order))
        return ()

    def _remove_all(self, gone: frozenset[str]) -> Iterable[Path]:
        with self.scene.alone(self.store):
            files = self.depot.files(self.exchange.key)
            if self._needed(files, self._forgotten(gone)):
                raise KeptError("a run needs it")
            self.depot.remove(sorted(files, key=_order))
            if self._latest():
                self.store.git.run("update-ref", "-d", self._ref)
            self.record.unlink()
        return ()

    def _forgotten(self, gone: frozenset[str]) -> frozenset[str]:
        """Those of the runs that were to be forgotten that are."""
        return frozenset(run for run in gone if not self.scene.home.run(run).exists())


def _order(name: str) -> tuple[bool, str]:
    """What names bundles goes before them, so that nobody is sent to one that is gone."""
    return "/commits/" not in name, name


def _ledger(run: Path) -> str:
    path = run / artifacts.LEDGER
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _away(why: str) -> Iterable[Path]:
    raise KeptError(why)
