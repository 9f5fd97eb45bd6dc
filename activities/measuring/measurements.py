"""The `measure` activity: a contract on one tree, in a fresh copy that no agent ever saw."""

from __future__ import annotations

import asyncio
import platform
from collections import defaultdict
from pathlib import Path

from ...workflows.model.attempt import Measure
from ...workflows.model.exit import Exit
from ...workflows.model.verdict import RungResult, Verdict
from ..artifacts import write_whole
from ..carried_layer import carried_layer
from ..effect import effect, in_thread, kill_requested
from ..exchange.arriving import arrive
from ..home import Home
from ..jobs import end_job, run_job
from ..places import Place
from ..store import Store
from ..workspaces import Layers
from ..workspaces.registry import close_workspace, open_workspace
from .ladder import JOB, ladder_job, rung_result
from .setup import set_up
from .tampering import note_additions, tampered


def host_class() -> str:
    """What kind of host a verdict was measured on."""
    return f"{platform.system()}-{platform.machine()}".lower()


class Measurements:
    """Measures trees; identical trees of a run are measured once, unless a gate asks afresh."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @effect
    async def measure(self, request: Measure) -> Verdict:
        """Run the contract's rungs in a fresh copy of a commit; red and unevaluable are values."""
        place = Place(self._home, request.attempt, measuring_folder(self._home, request))
        if request.exchange is not None:
            await in_thread(arrive, self._home, request, request.exchange)
        if request.gate:
            return await self._measured(request, place)
        kept = self._home.run(request.attempt.run) / "verdicts" / f"{request.tree}.json"
        async with self._locks[str(kept)]:
            if kept.exists():
                verdict = Verdict.model_validate_json(kept.read_text(encoding="utf-8"))
                return verdict.model_copy(update={"reused": True})
            verdict = await self._measured(request, place)
            if verdict.evaluable:
                write_whole(kept, verdict.model_dump_json())
            return verdict

    async def _measured(self, request: Measure, place: Place) -> Verdict:
        done = place.folder / "verdict.json"
        if not done.exists():
            verdict = await self._fresh(request, place)
            write_whole(done, verdict.model_dump_json())
        await in_thread(self._drop_copy, request, place)
        return Verdict.model_validate_json(done.read_text(encoding="utf-8"))

    async def _fresh(self, request: Measure, place: Place) -> Verdict:
        try:
            store = Store(self._home, request.store)
            tree = await in_thread(_open_once, store, place.folder, request)
            setup, _ = await set_up(place, tree, request.contract, (), sandbox=request.sandbox)
            if setup is not None and not setup.ok:
                return _verdict(request, setup, (), ())
            await in_thread(note_additions, store, place, request)
            job = await in_thread(ladder_job, place, request.contract, gate=request.gate, sandbox=request.sandbox)
            steps = await run_job(place.folder / JOB, job)
            rungs = tuple(rung_result(place, number, step) for number, step in enumerate(steps))
            return _verdict(request, setup, rungs, await in_thread(tampered, store, place, request))
        except asyncio.CancelledError:
            if kill_requested():
                await in_thread(self._drop_copy, request, place)
            raise

    def _drop_copy(self, request: Measure, place: Place) -> None:
        drop_measuring(Store(self._home, request.store), place.folder)
        if request.attempt.candidate == 0:
            place.release_ports()


def measuring_folder(home: Home, request: Measure) -> Path:
    """Where a measurement lives: ranking and gate never share a copy."""
    return home.attempt(request.attempt) / ("gate" if request.gate else "measure")


def drop_measuring(store: Store, folder: Path) -> None:
    """End what still runs of a measurement and remove its copy; its verdict and logs stay. Idempotent."""
    for job in ("setup", JOB):
        end_job(folder / job)
    close_workspace(store, folder)


def _open_once(store: Store, folder: Path, request: Measure) -> Path:
    opened = folder / "opened"
    if not opened.exists():
        carried = carried_layer(store, request.attempt.run, request.contract.carry)
        open_workspace(store, folder, request.commit, Layers(below=carried), measuring=True)
        opened.touch()
    return folder / "tree"


def _verdict(request: Measure, setup: Exit | None, rungs: tuple[RungResult, ...], tampered: tuple[str, ...]) -> Verdict:
    return Verdict(
        tree=request.tree,
        contract_digest=request.contract.digest,
        host=host_class(),
        rungs=rungs,
        rungs_total=len(request.contract.rungs),
        tampered=tampered,
        setup=setup,
    )
