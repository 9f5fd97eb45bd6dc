"""The steps of one attempt on its host: workspace (once there is a slot), agent, snapshot, close."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from ..workflows.model.attempt import (
    AgentReport,
    CloseAttempt,
    OpenWorkspace,
    RunAgent,
    Snapshot,
    TakeSnapshot,
    Workspace,
    YieldSlot,
)
from ..workflows.model.contract import SecretUse
from ..workflows.model.exit import Exit, ExitKind
from . import clock, slots
from .agents import secrets
from .agents.preparing import AGENT, AgentRun, log_out
from .agents.running import run_supervised
from .carried_layer import carried_layer
from .changes import read_changes, write_changes
from .effect import effect, ended_if_cancelled, in_thread
from .exchange.arriving import arrive
from .exchange.bundles import publish
from .exchange.outputs import publish_outputs
from .home import Home
from .jobs import end_job
from .lanes.desk import clear_desk
from .measuring.measurements import drop_measuring
from .measuring.setup import JOB as SETUP
from .measuring.setup import set_up
from .places import Place
from .prompts import agent_prompt
from .shared_setup import MADE_BY_SETUP, shared_setup
from .snapshots import made_by_setup, take_candidate
from .store import Store
from .trials.sides import drop_trial
from .workspaces import TREE, Layers
from .workspaces.registry import close_workspace, open_workspace, provider_of

CLOSED = "closed"
"""In the folder of an attempt that holds nothing any more."""

SLOT_POLL_S = 1.0
"""How often is looked for a slot that another process gave back; of this one's the waiting are told."""


class Attempts:
    """The attempt's activities; each is idempotent and finds what an earlier worker began."""

    def __init__(self, home: Home, slot_count: int) -> None:
        self._home = home
        self._slots = slot_count
        self._freed = asyncio.Condition()

    @effect
    async def open_workspace(self, request: OpenWorkspace) -> Workspace:
        """Make the workspace once this host has room, and set it up; no room and a failing set-up are values."""
        place, store = self._place(request), Store(self._home, request.store)
        if not await self._slot(place.owner, request.deadline, clock.offset()):
            return Workspace(path=None)
        place.folder.mkdir(parents=True, exist_ok=True)  # from here on the slot is used, however long the rest takes
        if request.exchange is not None:
            await in_thread(arrive, self._home, request, request.exchange)
        return await self._opened(store, place, request)

    @effect
    async def run_agent(self, request: RunAgent) -> AgentReport:
        """Start the agent under its supervisor, or attach to the one already running, and report how it ended."""
        place, ahead = self._place(request), clock.offset()
        run = AgentRun(
            place,
            request.agent,
            agent_prompt(request),
            provider_of(place.folder).writable(Store(self._home, request.store), place.folder),
            await in_thread(secrets.given, self._home, request.attempt.run, SecretUse.AGENT),
            deadline=request.deadline + ahead,
            sandbox=request.sandbox,
            launch=request.launch,
            session=request.session,
            fork=request.fork,
            spend=request.spend,
            anew=agent_prompt(request.model_copy(update={"session": None})),
        )
        return clock.report_of((await run_supervised(run)).report, ahead)

    @effect
    async def take_snapshot(self, request: TakeSnapshot) -> Snapshot:
        """Record the workspace's tree in the store, protected paths restored."""
        snapshot = await in_thread(self._snapshot, request)
        if request.exchange is not None:
            store = Store(self._home, request.store)
            await in_thread(publish, store, request.exchange, snapshot.commit, base=request.commit)
        return snapshot

    @effect
    async def yield_slot(self, request: YieldSlot) -> None:
        """Give the attempt's slot back while it rests."""
        await in_thread(slots.release, self._home.slots, self._place(request).owner)
        async with self._freed:
            self._freed.notify_all()

    @effect
    async def close_attempt(self, request: CloseAttempt) -> None:
        """End what still runs of the attempt, remove its workspace, give its slot back."""
        await in_thread(close_attempt_folder, self._home, request)
        async with self._freed:
            self._freed.notify_all()
        if request.exchange is not None:
            await in_thread(publish_outputs, self._home, request.exchange, request.attempt)

    async def _opened(self, store: Store, place: Place, request: OpenWorkspace) -> Workspace:
        """Open the workspace, or find it as it was before a rest: what was shared then may be gone by now."""
        ready = place.folder / "ready"
        if ready.exists():
            setup = Exit(kind=ExitKind.OK) if request.contract.setup else None
            return Workspace(path=str(place.folder / TREE), setup=setup)
        workspace = await self._set_up(store, place, request)
        if workspace.setup is None or workspace.setup.ok:
            ready.touch()
        return workspace

    async def _set_up(self, store: Store, place: Place, request: OpenWorkspace) -> Workspace:
        """Open the workspace over what others have set up already, or set it up by itself; each step is done once."""
        tree, opened = str(place.folder / TREE), place.folder / "opened"
        carried = await in_thread(carried_layer, store, request.attempt.run, request.contract.carry)
        shared = await shared_setup(store, place, request, carried) if request.contract.setup else None
        if shared and shared.layers is None:
            return Workspace(path=tree, setup=shared.exit, setup_output=shared.output)
        if not opened.exists():
            layers = shared.layers if shared and shared.layers else Layers(below=carried)
            await in_thread(open_workspace, store, place.folder, request.commit, layers)
            opened.touch()
        if shared:
            return Workspace(path=tree, setup=shared.exit)
        writable = provider_of(place.folder).writable(store, place.folder)
        async with ended_if_cancelled(place.folder / SETUP):
            setup, output = await set_up(
                place, place.folder / TREE, request.contract, writable, sandbox=request.sandbox
            )
        if setup is not None and setup.ok:
            await in_thread(self._note_setup, request)
        return Workspace(path=tree, setup=setup, setup_output=output)

    async def _slot(self, owner: str, deadline: float | None, ahead: float) -> bool:
        """Hold a slot, or the one it has; False when the deadline passed before there was one."""
        while slots.claim(self._home.slots, owner, self._slots) is None:
            left = SLOT_POLL_S if deadline is None else deadline + ahead - time.time()
            if left <= 0:
                return False
            await self._slot_freed(within_s=min(SLOT_POLL_S, left))
        return True

    async def _slot_freed(self, *, within_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s), self._freed:
                await self._freed.wait()

    def _snapshot(self, request: TakeSnapshot) -> Snapshot:
        folder = self._home.attempt(request.attempt)
        return take_candidate(
            Store(self._home, request.store),
            folder / "tree",
            attempt=request.attempt,
            commit=request.commit,
            index=folder / "index",
            contract=request.contract,
            carried=request.contract.carry,
            made=read_changes(folder / MADE_BY_SETUP),
        )

    def _note_setup(self, request: OpenWorkspace) -> None:
        """Remember what set-up made, before any agent is there to change it."""
        folder = self._home.attempt(request.attempt)
        if not (folder / MADE_BY_SETUP).exists():
            made = made_by_setup(
                Store(self._home, request.store),
                folder / "tree",
                commit=request.commit,
                index=folder / "index",
                carried=request.contract.carry,
            )
            write_changes(folder / MADE_BY_SETUP, made)

    def _place(self, request: OpenWorkspace | RunAgent | YieldSlot) -> Place:
        return Place(self._home, request.attempt, self._home.attempt(request.attempt))


def close_attempt_folder(home: Home, request: CloseAttempt) -> None:
    """End everything of an attempt, remove its copies, give back slot and ports. Idempotent, whatever is left of it."""
    place = Place(home, request.attempt, home.attempt(request.attempt))
    store = Store(home, request.store)
    for job in (*place.folder.glob(f"{AGENT}*"), place.folder / SETUP):
        end_job(job)
    for measuring in ("measure", "gate", "review"):
        if (place.folder / measuring).exists():
            drop_measuring(store, place.folder / measuring)
    drop_trial(store, place.folder)
    clear_desk(place.folder)
    close_workspace(store, place.folder)
    for folder in (place.folder, place.folder / "review"):
        log_out(folder)
    place.release_ports()
    slots.release(home.slots, place.owner)
    if place.folder.exists():
        (place.folder / CLOSED).touch()
