"""The steps of one attempt on its host: slot, workspace, agent, snapshot, close."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path

from ..workflows.model.attempt import (
    AgentReport,
    CloseAttempt,
    OpenWorkspace,
    RunAgent,
    Slot,
    SlotRequest,
    Snapshot,
    TakeSnapshot,
    Workspace,
)
from ..workflows.model.verdict import Excerpt
from . import slots
from .agents.adapter import Reading
from .agents.registry import resolve
from .artifacts import write_whole
from .changes import read_changes, write_changes
from .effect import effect, in_thread, kill_requested
from .excerpts import excerpt
from .home import Home
from .jobs import Job, Step, StepResult, end_job, run_job
from .measuring.measurements import drop_measuring
from .measuring.setup import set_up
from .places import Place
from .prompts import agent_prompt
from .snapshots import made_by_setup, take_candidate
from .store import Store
from .workspaces.registry import workspaces

AGENT = "agent"
PROMPT = "prompt.md"
MADE_BY_SETUP = "made-by-setup"
PRIVATE = "private"
"""The agent's own folder for files that are no part of its work, such as its usage report."""

SLOT_POLL_S = 1.0
"""How often is looked for a slot that another process gave back; of this one's the waiting are told."""


class Attempts:
    """The attempt's activities; each is idempotent and finds what an earlier worker began."""

    def __init__(self, home: Home, slot_count: int) -> None:
        self._home = home
        self._slots = slot_count
        self._freed = asyncio.Condition()

    @effect
    async def claim_slot(self, request: SlotRequest) -> Slot:
        """Wait for room on this host and hold it for the attempt."""
        name = self._place(request).owner
        while (index := slots.claim(self._home.slots, name, self._slots)) is None:
            if request.deadline is not None and time.time() >= request.deadline:
                return Slot(index=None)
            left = SLOT_POLL_S if request.deadline is None else request.deadline - time.time()
            await self._slot_freed(within_s=min(SLOT_POLL_S, left))
        return Slot(index=index)

    @effect
    async def open_workspace(self, request: OpenWorkspace) -> Workspace:
        """Make the attempt's workspace and set it up; a failing set-up is a value."""
        place, store = self._place(request), Store(self._home, request.store)
        opened = place.folder / "opened"
        if not opened.exists():
            await in_thread(workspaces().open, store, place.folder, request.commit)
            opened.touch()
        writable = workspaces().writable(store, place.folder)
        try:
            setup, output = await set_up(
                place, place.folder / "tree", request.contract, writable, sandbox=request.sandbox
            )
        except asyncio.CancelledError:
            if kill_requested():
                await in_thread(end_job, place.folder / "setup")
            raise
        if setup is not None and setup.ok:
            await in_thread(self._note_setup, request)
        return Workspace(path=str(place.folder / "tree"), setup=setup, setup_output=output)

    @effect
    async def run_agent(self, request: RunAgent) -> AgentReport:
        """Start the agent under its supervisor, or attach to the one already running, and report how it ended."""
        place, agent = self._place(request), resolve(request.agent)
        prompt, private = place.folder / PROMPT, place.folder / PRIVATE
        await in_thread(_prepare, prompt, private, request)
        call = agent.adapter.call(agent.argument, private)
        tree = place.folder / "tree"
        writable = (tree, private, *workspaces().writable(Store(self._home, request.store), place.folder))
        step = Step(
            name=AGENT,
            argv=place.fenced(call.argv, *writable, sandbox=request.sandbox, network=True),
            cwd=tree,
            env=place.environment({"ORCH_PROMPT_FILE": str(prompt), **call.env}),
            timeout_s=max(0.0, request.deadline - time.time()),
            stdin=prompt,
        )
        try:
            (result,) = await run_job(place.folder / AGENT, Job(steps=(step,), deadline=request.deadline))
        except asyncio.CancelledError:
            if kill_requested():
                await in_thread(end_job, place.folder / AGENT)
            raise
        return report(place, result, agent.adapter.read(private, result.stdout))

    @effect
    async def take_snapshot(self, request: TakeSnapshot) -> Snapshot:
        """Record the workspace's tree in the store, protected paths restored."""
        return await in_thread(self._snapshot, request)

    @effect
    async def close_attempt(self, request: CloseAttempt) -> None:
        """End what still runs of the attempt, remove its workspace, give its slot back."""
        await in_thread(close_attempt_folder, self._home, request)
        async with self._freed:
            self._freed.notify_all()

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

    def _place(self, request: SlotRequest | OpenWorkspace | RunAgent) -> Place:
        return Place(self._home, request.attempt, self._home.attempt(request.attempt))


def report(place: Place, result: StepResult, reading: Reading) -> AgentReport:
    """Put together what the process did and what it said of itself; wall time is ours."""
    run_folder = place.home.run(place.key.run)

    def words(path: Path) -> Excerpt:
        return excerpt(path, run_folder=run_folder) if path.exists() else Excerpt()

    return AgentReport(
        exit=result.exit,
        usage=reading.usage.model_copy(update={"wall_s": round(result.wall_s, 3)}),
        session=reading.session,
        message=reading.message,
        stdout=words(result.stdout),
        stderr=words(result.stderr),
    )


def close_attempt_folder(home: Home, request: CloseAttempt) -> None:
    """End everything of an attempt, remove its copies, give back slot and ports. Idempotent, whatever is left of it."""
    place = Place(home, request.attempt, home.attempt(request.attempt))
    store = Store(home, request.store)
    for job in (AGENT, "setup"):
        end_job(place.folder / job)
    for measuring in ("measure", "gate", "review"):
        if (place.folder / measuring).exists():
            drop_measuring(store, place.folder / measuring)
    workspaces().close(store, place.folder)
    place.release_ports()
    slots.release(home.slots, place.owner)


def _prepare(prompt: Path, private: Path, request: RunAgent) -> None:
    private.mkdir(parents=True, exist_ok=True)
    if not prompt.exists():
        write_whole(prompt, agent_prompt(request))
