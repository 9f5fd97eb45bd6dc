"""What a round's hand-over is measured on: a lane's workspace with the wrapper, and the smallest round there can be."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio import workflow

from orch.activities.home import Home
from orch.activities.lanes import desk
from orch.activities.objects import import_commit
from orch.activities.repository import inspect
from orch.activities.store import Store
from orch.activities.workspaces.clone import CloneProvider
from orch.activities.workspaces.excluding import exclude
from orch.workflows.effects import WAIT, options, take_in
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.round.lane import TakeIn, TakenIn
from orch.workflows.model.round.plan import (
    Command,
    Commands,
    DeviceSet,
    Direction,
    Entry,
    Gates,
    LanePlan,
    Metric,
    RoundPlan,
)
from orch.workflows.model.round.ticket import Submission, TicketState, TicketStatus

RUN = "round-bench-r1"
MOST = 50
"""Submissions of one lane: as many as a plan may give it."""


@workflow.defn(name="Round")
class EmptyRound:
    """Queues what is submitted, and does nothing with it."""

    def __init__(self) -> None:
        self._states: dict[str, TicketStatus] = {}

    @workflow.run
    async def run(self, request: TakeIn) -> TakenIn:
        """Watch the lane's outbox until it is cancelled."""
        config = options(WAIT, queue=workflow.info().task_queue, summary="intake")
        return await workflow.execute_activity(take_in, request, **config)

    @workflow.query
    def tickets(self, lane: str) -> tuple[TicketStatus, ...]:
        """All of them; there is one lane."""
        return tuple(self._states.values())

    @workflow.update
    def submit(self, submission: Submission) -> TicketStatus:
        """Queue it."""
        state = TicketState.REJECTED if submission.refused else TicketState.QUEUED
        answer = TicketStatus(ticket=submission.ticket, state=state, detail=submission.detail)
        return self._states.setdefault(submission.ticket, answer)


@dataclass(frozen=True)
class Lane:
    """A lane on a repository.

    Attributes:
        home: the state directory.
        store: the repository's store.
        plan: the round's plan.
        tree: the lane's workspace.
    """

    home: Home
    store: Store
    plan: RoundPlan
    tree: Path

    @classmethod
    def make(cls, home: Home, repo: Path) -> Lane:
        """A lane that may write everything in the repository."""
        repository = inspect(repo)
        store = Store.of(home, repository)
        commit = repository.head or ""
        import_commit(store.git, repository, commit)
        plan = _plan(commit)
        folder = home.attempt(KEY)
        tree = CloneProvider().open(store, folder, commit)
        (tree / ".orch").mkdir()
        (tree / desk.PROGRAM).write_bytes(desk.program())
        (tree / desk.PROGRAM).chmod(0o755)
        facts = desk.facts(plan, plan.lanes[0], desk.make_desk(folder), time.time() + 86_400)
        (tree / desk.FACTS).write_text(facts)
        exclude(folder, "/.orch/")
        return cls(home, store, plan, tree)

    def request(self) -> TakeIn:
        """What starts its intake."""
        return TakeIn(attempt=KEY, store=self.store.key, plan=self.plan, lane="l", deadline=time.time() + 86_400)

    def edit(self, turn: int, count: int) -> None:
        """Change so many files, in another way each turn."""
        files = sorted(path for path in self.tree.rglob("file*") if path.is_file())
        for file in files[:: max(1, len(files) // count)][:count]:
            file.write_text(f"changed in turn {turn}\n")

    def submit(self) -> str:
        """Hand over, and return the ticket."""
        done = subprocess.run(
            [str(self.tree / desk.PROGRAM), "submit"], cwd=self.tree, capture_output=True, check=False
        )
        document: dict[str, Any] = json.loads(done.stdout)
        if "ticket" not in document:
            raise SystemExit(f"submit: {document}")
        return str(document["ticket"])

    def status(self) -> None:
        """What git says by itself."""
        subprocess.run(["git", "status", "--porcelain"], cwd=self.tree, capture_output=True, check=True)

    def told(self, ticket: str) -> Path:
        """Where the ticket's state is written up."""
        return self.home.attempt(KEY) / desk.DESK / desk.STATUS / f"{ticket}.json"


KEY = AttemptKey(run=RUN, iteration=1, candidate=1, binding=1)


def _plan(commit: str) -> RoundPlan:
    entry = Entry(id="e", plane="algorithm", hypothesis="faster", headroom=0.5)
    return RoundPlan(
        id="r1",
        campaign="bench",
        campaign_digest="0" * 64,
        incumbent=commit,
        metric=Metric(name="t", direction=Direction.LOWER, unit="ms"),
        gates=Gates(),
        devices=(DeviceSet(name="cpu"),),
        commands=Commands(benchmark=Command(run="true")),
        lanes=(LanePlan(id="l", entry=entry, globs=("**",), agent="cmd:true", submissions=MOST),),
    )
