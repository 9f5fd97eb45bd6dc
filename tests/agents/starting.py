"""Start runs of real agents against the model server: each run plays its own scenario, several go on at once."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orch import Client
from orch.activities import supervisor
from orch.activities.home import Home
from orch.workflows.model.view import RunView

from .model.server import ModelServer

VERIFY = ("test -f hello.txt",)
"""The ladder that the scenario `edit` climbs."""


@dataclass(frozen=True)
class Started:
    """A run that goes on, and the name under which the model server keeps what its agents asked."""

    id: str
    asked_as: str


class Runs:
    """Starts runs and waits for them.

    Args:
        client: of the engine.
        server: plays the model.
        projects: makes a fresh repository for each run.

    Attributes:
        ids: of all runs that were started.
    """

    def __init__(self, client: Client, server: ModelServer, projects: Iterator[Path]) -> None:
        self.client, self.server, self._projects = client, server, projects
        self.ids: list[str] = []

    @property
    def home(self) -> Home:
        """The state directory."""
        return self.client.home

    async def start(self, scenario: str, *agents: str, **options: Any) -> Started:
        """Start a goal whose agents find the model server in the environment, as a user's would find their provider."""
        name = f"{scenario}-{uuid.uuid4().hex[:6]}"
        given = {
            "goal": "write hello.txt",
            "repo": next(self._projects),
            "verify": VERIFY,
            "max_iterations": 1,
            "attempt_timeout": 60.0,
            **options,
        }
        with _environment(self.server.url(scenario, run=name)):
            run = await self.client.start_goal(agent=agents, **given)
        self.ids.append(run)
        return Started(run, name)

    async def result(self, started: Started) -> RunView:
        """Wait for the end."""
        return await self.client.result(started.id)

    async def run(self, scenario: str, *agents: str, **options: Any) -> RunView:
        """Start and wait."""
        return await self.result(await self.start(scenario, *agents, **options))

    def supervised(self, run: str) -> dict[int, str]:
        """The processes of a run's agents that live: supervisors and all they started, with their command lines."""
        found = {}
        for pid in supervisor.pids():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                marks = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if f"/runs/{run}/" in words + marks and supervisor.start_ticks(pid):
                found[pid] = words.strip()
        return found


@contextmanager
def _environment(url: str) -> Iterator[None]:
    names = {
        "ANTHROPIC_API_KEY": "test-key",
        "ANTHROPIC_BASE_URL": url,
        "OPENAI_API_KEY": "test-key",
        "OPENAI_BASE_URL": f"{url}/v1",
    }
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
