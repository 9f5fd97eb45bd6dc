"""A round on the real engine, by a worker whose every task of it is a replay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.client import Client, WorkflowHandle
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from orch.worker.assembly import BUGS
from orch.workflows.host import host_queue
from orch.workflows.model.event import EVENT, Event
from orch.workflows.model.round.request import RoundRequest
from orch.workflows.round import Round

from .round_host import RoundHost

Kind = TypeVar("Kind")

SOON = timedelta(seconds=0.1)
"""Between heartbeats, by which a cancellation is heard."""


@dataclass
class OneRound:
    """A round that is run.

    Attributes:
        client: of the engine.
        host: does its steps.
        request: starts it.
    """

    client: Client
    host: RoundHost
    request: RoundRequest

    @property
    def handle(self) -> WorkflowHandle[Any, Any]:
        """The workflow."""
        return self.client.get_workflow_handle(self.request.run)

    async def start(self) -> None:
        """Begin."""
        await self.client.start_workflow(
            Round.run,
            self.request,
            id=self.request.run,
            task_queue=host_queue(self.request.host),
            execution_timeout=timedelta(seconds=100),
        )

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        """A worker that keeps no workflow in memory: each task of it is a replay."""
        async with Worker(
            self.client,
            task_queue=host_queue(self.request.host),
            workflows=[Round],
            activities=self.host.activities,
            workflow_runner=UnsandboxedWorkflowRunner(),
            workflow_failure_exception_types=BUGS,
            max_cached_workflows=0,
            max_concurrent_workflow_task_polls=1,
            nonsticky_to_sticky_poll_ratio=1.0,
            max_heartbeat_throttle_interval=SOON,
            default_heartbeat_throttle_interval=SOON,
        ):
            yield

    async def whole(self) -> None:
        """Run it to its end by one worker."""
        await self.start()
        async with self.worker():
            await self.handle.result()

    async def until(self, name: str, times: int = 1) -> None:
        """Until an activity was begun so often."""
        async with asyncio.timeout(60):
            while len(self.host.of(name)) < times:
                await asyncio.sleep(0.02)

    @property
    def events(self) -> list[Event]:
        """The ledger of a round that has ended, as its host has it."""
        return [EVENT.validate_python(event) for event in self.host.events]

    def all(self, kind: type[Kind]) -> list[Kind]:
        """The events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def only(self, kind: type[Kind]) -> Kind:
        """The one event of a kind."""
        (found,) = self.all(kind)
        return found
