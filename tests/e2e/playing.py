"""A round of the running system, told by its ledger."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from orch import Client
from orch.workflows.model.event import Event, RunEnded
from orch.workflows.model.round.event import (
    BindingSettled,
    LaneEnded,
    RoundDecided,
    StepComposed,
    TicketMeasured,
    TicketQueued,
    TicketRejected,
)
from orch.workflows.model.round.lane import LaneEnd
from orch.workflows.model.round.ticket import Cause
from orch.workflows.model.round.trial import Judgement

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Played:
    """A round that has ended.

    Attributes:
        run: its id.
        repo: the user's repository.
        plan: the round plan's file.
        events: its ledger.
        before: what `look` saw of the repository before the round.
    """

    run: str
    repo: Path
    plan: Path
    events: tuple[Event, ...]
    before: dict[str, str] = field(default_factory=dict)

    def all(self, kind: type[Kind]) -> list[Kind]:
        """All events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def only(self, kind: type[Kind]) -> Kind:
        """The one event of a kind."""
        (found,) = self.all(kind)
        return found

    @property
    def decided(self) -> RoundDecided:
        """The decision."""
        return self.only(RoundDecided)

    @property
    def reason(self) -> str:
        """The code with which the run ended."""
        reason = self.only(RunEnded).reason
        return reason.code.value if reason else ""

    def queued(self, lane: str) -> list[str]:
        """The tickets of a lane that came into the queue."""
        return [e.submission.ticket for e in self.all(TicketQueued) if e.submission.lane == lane]

    def measured(self, lane: str) -> list[TicketMeasured]:
        """The measurements of a lane's tickets."""
        return [event for event in self.all(TicketMeasured) if event.lane == lane]

    def verdicts(self, lane: str) -> list[Judgement]:
        """What they showed."""
        return [event.evaluation.verdict for event in self.measured(lane)]

    def causes(self, lane: str) -> list[Cause]:
        """Why tickets of a lane were rejected."""
        return [event.cause for event in self.all(TicketRejected) if event.lane == lane]

    def steps(self) -> dict[str, StepComposed]:
        """The steps of the composition, by lane."""
        return {event.step.lane: event for event in self.all(StepComposed)}

    def ends(self) -> dict[str, LaneEnd]:
        """How the lanes ended."""
        return {event.lane: event.end for event in self.all(LaneEnded)}

    def exits(self, lane: str) -> list[str]:
        """How the agents of a lane ended."""
        return [str(event.exit) for event in self.all(BindingSettled) if event.lane == lane]


async def play(client: Client, rounds: ModuleType, folder: Path, lanes: Sequence[Any], **overrides: Any) -> Played:
    """Run a round of these lanes at the synthetic repository, of a campaign of its own; see `write_plan`.

    `model` changes what the benchmark reads, `start` are further fields of the round's options, `look` takes the
    fingerprint of the repository.
    """
    model, start = overrides.pop("model", {}), overrides.pop("start", {})
    look: Callable[[Path], dict[str, str]] = overrides.pop("look", lambda _: {})
    repo = rounds.synthetic(folder / "repo", **model)
    campaign = {"campaign": f"c-{uuid.uuid4().hex[:8]}", **overrides.pop("campaign", {})}
    plan = rounds.write_plan(folder / "plans", repo, lanes, campaign=campaign, **overrides)
    before = look(repo)
    return replace(await played(client, repo, plan, **start), before=before)


async def played(client: Client, repo: Path, plan: Path, **start: Any) -> Played:
    """Run the round of a plan's file to its end."""
    run = await client.start_round(plan, repo=repo, **start)
    return Played(run, repo, plan, tuple([event async for event in client.events(run)]))
