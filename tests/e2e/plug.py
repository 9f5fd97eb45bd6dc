"""Pulling the plug on a running engine: SIGKILL, at once and without warning, and what must not be left afterwards."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from temporalio.client import Client as Temporal
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError

from orch.activities.home import Home
from orch.worker import engine
from orch.worker.connection import connect
from orch.worker.records import read_server, read_worker
from orch.worker.state import open_state

VICTIMS = {"worker": (True, False), "engine": (False, True), "both": (True, True)}
"""Whether the worker and whether the server of the engine is killed, by what the case is called."""


STARTS = 'echo started >> "$(dirname "$ORCH_USAGE_FILE")/starts"'
"""The line of a scripted agent that tells of its start, beside its report of usage."""


@contextlib.contextmanager
def engine_of_its_own(folder: Path) -> Iterator[Home]:
    """An engine that may be killed, whose measurements wait for those of no other engine."""
    home = Home(folder / "state")
    open_state(home)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE"):
            patch.delenv(name, raising=False)
        patch.setenv("ORCH_LEASES", str(folder / "leases"))
        asyncio.run(engine.ensure_up(home))
        try:
            yield home
        finally:
            asyncio.run(engine.down(home))


@dataclass
class Plug:
    """What is killed, and at which steps it was killed so far."""

    home: Home
    worker: bool
    server: bool
    kills: list[int] = field(default_factory=list)

    def pull(self, step: int) -> None:
        """Kill it."""
        records = [read_worker(self.home) if self.worker else None, read_server(self.home) if self.server else None]
        for record in records:
            if record is not None:
                with contextlib.suppress(psutil.NoSuchProcess):
                    victim = psutil.Process(record.pid)
                    victim.kill()
                    victim.wait(30)
        self.kills.append(step)


async def disturb(home: Home, ids: list[str], next_plug: Callable[[], Plug], *, offset: int, stride: int) -> None:
    """Pull a plug at every `stride`-th recorded step, from `offset` on, until the first of these workflows has ended.

    Steps are the events that the engine has recorded of all of them together.
    """
    due, temporal = offset, await connect(home)
    while (step := await _recorded(temporal, ids)) is not None:
        if step >= due:
            next_plug().pull(step)
            due = step + stride
            await engine.ensure_up(home)
            temporal = await connect(home)
        await asyncio.sleep(0.01)


async def _recorded(temporal: Temporal, ids: list[str]) -> int | None:
    """How many events are recorded; None once the first workflow has ended."""
    total = 0
    for number, name in enumerate(ids):
        with contextlib.suppress(RPCError):
            description = await temporal.get_workflow_handle(name).describe()
            if not number and description.status is not WorkflowExecutionStatus.RUNNING:
                return None
            total += description.history_length
    return total


async def nothing_left(home: Home, run: str) -> None:
    """No workspace, no slot or port, no reserved tree and no process is left of a run that has ended."""
    async with asyncio.timeout(60):
        while not (home.run(run) / "closed").exists():
            await asyncio.sleep(0.1)
    assert not list(home.run(run).glob("attempts/**/tree"))
    assert not [path for path in (*home.slots.glob("*"), *home.ports.glob("*")) if path.name.isdigit()]
    assert not list(home.root.glob("stores/*/reserved/*"))
    assert processes_with(str(home.run(run))) == []


def processes_with(word: str) -> list[int]:
    """The processes that name it on their command line."""
    return [p.pid for p in psutil.process_iter(["cmdline"]) if word in " ".join(p.info["cmdline"] or [])]


def starts_in(attempt: Path) -> list[str]:
    """What the agents of an attempt wrote when they began, a line for each start; see `STARTS`."""
    path = attempt / "private" / "starts"
    return path.read_text().splitlines() if path.exists() else []
