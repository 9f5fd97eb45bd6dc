"""The steps of one attempt on its host: workspace (once there is a slot), agent, snapshot, close."""

from __future__ import annotations

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
from . import clock, slots
from .admission import Admission
from .agents import secrets
from .agents.preparing import AGENT, AgentRun, log_out
from .agents.running import run_supervised
from .artifacts import kept_plan
from .changes import read_changes
from .effect import effect, in_thread
from .exchange.arriving import arrive
from .exchange.bundles import publish
from .exchange.outputs import publish_outputs
from .home import Home
from .jobs import end_job
from .lanes.desk import clear_desk
from .lanes.probe import PROBE
from .measuring.measurements import drop_measuring
from .measuring.setup import JOB as SETUP
from .openings import opened
from .places import Place
from .prompts import agent_prompt
from .shared_setup import MADE_BY_SETUP
from .snapshots import take_candidate
from .store import Store
from .trials.processors import spare
from .trials.sides import drop_trial
from .workspaces.registry import close_workspace, provider_of

CLOSED = "closed"
"""In the folder of an attempt that holds nothing any more."""


class Attempts:
    """The attempt's activities; each is idempotent and finds what an earlier worker began."""

    def __init__(self, home: Home, admission: Admission) -> None:
        self._home = home
        self._admission = admission

    @effect
    async def open_workspace(self, request: OpenWorkspace) -> Workspace:
        """Make the workspace once this host has room, and set it up; no room and a failing set-up are values."""
        place, store = self._place(request), Store(self._home, request.store)
        if not await self._admission.enter(place.owner, clock.here(request.deadline, clock.offset())):
            return Workspace(path=None)
        place.folder.mkdir(parents=True, exist_ok=True)  # from here on the slot is used, however long the rest takes
        if request.exchange is not None:
            await in_thread(arrive, self._home, request, request.exchange)
        return await opened(store, place, request)

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
            deadline=clock.here(request.deadline, ahead),
            limit_s=request.limit_s,
            sandbox=request.sandbox,
            launch=request.launch,
            session=request.session,
            fork=request.fork,
            spend=request.spend,
            anew=agent_prompt(request.model_copy(update={"session": None})),
            cpus=await in_thread(_unmeasured, self._home, request.attempt.run),
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
        await self._admission.leave(self._place(request).owner)

    @effect
    async def close_attempt(self, request: CloseAttempt) -> None:
        """End what still runs of the attempt, remove its workspace, give its slot back."""
        await in_thread(close_attempt_folder, self._home, request)
        await self._admission.tell()
        if request.exchange is not None:
            await in_thread(publish_outputs, self._home, request.exchange, request.attempt)

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

    def _place(self, request: OpenWorkspace | RunAgent | YieldSlot) -> Place:
        return Place(self._home, request.attempt, self._home.attempt(request.attempt))


def _unmeasured(home: Home, run: str) -> tuple[int, ...]:
    """The processors that a round's agents keep to, since nothing is measured there; empty for all of them."""
    plan = kept_plan(home, run)
    return spare(plan.devices) if plan else ()


def close_attempt_folder(home: Home, request: CloseAttempt) -> None:
    """End everything of an attempt, remove its copies, give back slot and ports. Idempotent, whatever is left of it."""
    place = Place(home, request.attempt, home.attempt(request.attempt))
    store = Store(home, request.store)
    for job in (*place.folder.glob(f"{AGENT}*"), place.folder / SETUP, place.folder / PROBE):
        end_job(job)
    for measuring in ("measure", "gate", "review"):
        if (place.folder / measuring).exists():
            drop_measuring(store, place.folder / measuring)
    clear_desk(place.folder)
    drop_trial(store, place.folder)
    close_workspace(store, place.folder)
    for folder in (place.folder, place.folder / "review"):
        log_out(folder)
    place.release_ports()
    slots.release(home.slots, place.owner)
    if place.folder.exists():
        (place.folder / CLOSED).touch()
