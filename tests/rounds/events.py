"""Ledgers of rounds as they would be written, event by event: what views, reports and documents are tested on.

Samples come from a seeded noise model; `stories.py` tells whole rounds.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, TypeVar

from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.event import Event, RunEnded, RunPromoted
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.outcome import Outcome, OutcomeKind
from orch.workflows.model.promotion import PromoteMode, PromoteTarget, Promotion
from orch.workflows.model.reason import Reason, RunReason
from orch.workflows.model.round import event as ev
from orch.workflows.model.round.campaign import RoundRecord
from orch.workflows.model.round.composition import Pick, Rerun, Step, StepResult
from orch.workflows.model.round.lane import LaneBinding, LaneEnd, LaneOpened
from orch.workflows.model.round.plan import (
    Command,
    Commands,
    DeviceSet,
    Direction,
    Entry,
    Gates,
    LaneBudget,
    LanePlan,
    Metric,
    RoundPlan,
)
from orch.workflows.model.round.ticket import Cause, Submission
from orch.workflows.model.round.trial import Evaluation, GuardResult, Measurement, Noise, Scale
from orch.workflows.model.usage import Usage

from .bench import BASE_MS, OK, Bench

E = TypeVar("E", bound=Event)

BEGIN = datetime(2026, 3, 4, 9, 0, tzinfo=UTC).timestamp()


def sha(text: str) -> str:
    """A commit that a text stands for."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def lane(name: str, plane: str, stage: str, **facts: Any) -> LanePlan:
    """A lane that owns `src/NAME/**`."""
    given: dict[str, Any] = {
        "entry": Entry(id=f"faster-{name}", plane=plane, hypothesis=f"{name} does too much", stage=stage, headroom=0.2),
        "globs": (f"src/{name}/**",),
        "agent": f"cmd:sh agents/{name}.sh",
        "budget": LaneBudget(attempts=2, wall_s=1800),
    }
    return LanePlan(id=name, **{**given, **facts})


PLAN = RoundPlan(
    id="r1",
    campaign="parser",
    campaign_digest="c" * 64,
    incumbent=sha("incumbent"),
    metric=Metric(name="latency", direction=Direction.LOWER, unit="ms"),
    gates=Gates(pairs=8, repetitions=1, rollback=0.01),
    protected=("bench/**",),
    devices=(DeviceSet(name="cpu-a", cpus=(0,)), DeviceSet(name="cpu-b", cpus=(1,))),
    commands=Commands(benchmark=Command(run="python bench/run.py")),
    lanes=(
        lane("tokens", "algorithm", "lexing"),
        lane("cache", "memory", "lexing"),
        lane("output", "io", "writing"),
    ),
    deadline_s=7200,
)
"""Three lanes, two of which chase the same bottleneck, and two device sets."""


class Story:
    """A round as it happens: each call appends its events. `after` is how many seconds pass before."""

    def __init__(self, plan: RoundPlan = PLAN, *, run: str = "", seed: int = 1, promote: str = "none") -> None:
        self.plan = plan
        self.events: list[Event] = []
        self.now = BEGIN
        self.evaluations: dict[str, Evaluation] = {}
        self.bench = Bench(seed)
        self.head = plan.incumbent
        self.chain: tuple[str, ...] = ()
        self.composed: tuple[str, ...] = ()
        self._run = run or f"round-{plan.campaign}-{plan.id}"
        self._ordinals: dict[str, int] = {}
        self._last = self._guards = 0
        target = PromoteTarget.parse(promote)
        facts: dict[str, Any] = {"repo": "/home/me/parser", "plan": plan, "plan_digest": plan.digest, "promote": target}
        self.record(ev.RoundStarted, run=self._run, **facts)

    def record(self, kind: type[E], after: float = 1.0, **facts: Any) -> E:
        """Append one event."""
        self.now += after
        at = datetime.fromtimestamp(self.now, UTC).isoformat(timespec="milliseconds")
        event = kind(seq=len(self.events) + 1, at=at, **facts)
        self.events.append(event)
        return event

    def ready(self, *warnings: str, sandbox: bool = True) -> None:
        """The host holds the incumbent."""
        target = self.plan.incumbent
        baseline = sha("baseline") if self.promotes is PromoteMode.WORKTREE else None
        facts: dict[str, Any] = {"tree": sha("tree"), "baseline": baseline, "sandbox": sandbox, "warnings": warnings}
        self.record(ev.RoundReady, store="parser-1a2b", incumbent=target, **facts)

    @property
    def promotes(self) -> PromoteMode:
        """Where the round's result goes."""
        started = self.events[0]
        assert isinstance(started, ev.RoundStarted)
        return started.promote.mode

    def guard(self, *, drift: float = 0.0, device: str = "") -> None:
        """The incumbent is measured against itself; `drift` is a difference where there is none."""
        found = self.measure(self.plan.incumbent, self.plan.incumbent, 1.0, 1.0 - drift, device)
        self._guards += not drift
        pairs = len(found.pairs) * self._guards
        noise = (
            Noise(scale=Scale.LOG, sigma=self.bench.sigma, pairs=pairs, measurements=self._guards, base=BASE_MS)
            if pairs
            else None
        )
        why = f"sigma {self.bench.sigma:.4f}, difference {drift:.4f}"
        result = GuardResult(passed=not drift, noise=noise, why=why)
        self.record(ev.GuardMeasured, found.held_s, measurement=found, result=result, noise=noise)

    def pause(self, why: str, device: str = "cpu-a") -> None:
        """A device set measures no ticket from here on."""
        self.record(ev.QueuePaused, 0.0, device=device, why=why)

    def resume(self, device: str = "cpu-a") -> None:
        """It measures tickets again."""
        self.record(ev.QueueResumed, 0.0, device=device)

    def open(self, *lanes: str) -> None:
        """Lanes' workspaces are opened, their first agents launched."""
        for name in lanes or [one.id for one in self.plan.lanes]:
            index = [one.id for one in self.plan.lanes].index(name) + 1
            key = AttemptKey(run=self._run, iteration=1, candidate=index, binding=index)
            self.record(ev.LaneStarted, lane=name, attempt=key, deadline=BEGIN + self.plan.deadline_s)
            self.record(ev.LaneReady, 2.0, lane=name, opened=LaneOpened(path=f"/state/{name}/tree"))
            self.launch(name, 1)

    def launch(self, name: str, ordinal: int) -> None:
        """A lane's agent is launched."""
        digest = hashlib.sha256(f"{name}{ordinal}".encode()).hexdigest()
        self.record(ev.BindingReserved, 0.1, lane=name, binding=LaneBinding(ordinal=ordinal, digest=digest))
        self.record(ev.BindingClaimed, 0.1, lane=name, ordinal=ordinal)

    def settle(self, name: str, ordinal: int, kind: OutcomeKind = OutcomeKind.DONE, **usage: Any) -> None:
        """A lane's agent ended."""
        crashed = Exit(kind=ExitKind.FAILED, number=3)
        exit_ = crashed if kind is OutcomeKind.CRASHED else OK
        used = Usage(**{"tokens_in": 12_000, "tokens_out": 3_000, "usd": 0.21, "wall_s": 240.0, **usage})
        self.record(ev.BindingSettled, lane=name, ordinal=ordinal, usage=used, exit=exit_, outcome=Outcome(kind=kind))

    def rest(self, name: str, seconds: float) -> None:
        """A lane's provider asks it to wait."""
        outcome = Outcome(kind=OutcomeKind.RATE_LIMITED, detail="429")
        self.record(ev.LaneWaiting, lane=name, outcome=outcome, until=self.now + seconds)

    def go_on(self, name: str, after: float) -> None:
        """Its rest is over."""
        self.record(ev.LaneResumed, after, lane=name)

    def end(self, name: str, end: LaneEnd = LaneEnd.DONE, detail: str = "") -> None:
        """A lane stops."""
        self.record(ev.LaneEnded, lane=name, end=end, detail=detail)

    def submit(self, name: str, content: str, *, files: int = 2, after: float = 20.0) -> str:
        """A lane submits files; the ticket."""
        submission = self._submission(name, content, files, commit=sha(f"{name} {content}"), tree=sha(content))
        self.record(ev.TicketQueued, after, submission=submission)
        return submission.ticket

    def refuse(self, name: str, content: str, cause: Cause, detail: str) -> str:
        """A submission that is never queued; the ticket."""
        submission = self._submission(name, content, 1, refused=cause, detail=detail)
        facts: dict[str, Any] = {"cause": cause, "detail": detail, "submission": submission}
        self.record(ev.TicketRejected, 5.0, ticket=submission.ticket, lane=name, **facts)
        return submission.ticket

    def _submission(self, name: str, content: str, files: int, **facts: Any) -> Submission:
        digest = hashlib.sha256(f"{name} {content}".encode()).hexdigest()
        paths = tuple(f"src/{name}/part{n}.py" for n in range(files))
        ticket = f"{self.plan.id}-{name}-{digest[:8]}"
        return Submission(ticket=ticket, lane=name, digest=digest, paths=paths, files=files, bytes=900, **facts)

    def take(self, ticket: str, device: str = "cpu-a", *, ahead: bool = False) -> None:
        """A ticket leaves the queue for a device set, which turns to it unless it is built ahead."""
        if ticket not in self._ordinals:
            self._ordinals[ticket] = self._next()
        self.record(ev.TicketTaken, 0.5, ticket=ticket, device=device, measurement=self._ordinals[ticket])
        if not ahead:
            self.turn(ticket, device)

    def turn(self, ticket: str | None, device: str = "cpu-a") -> None:
        """A device set turns to a ticket that was built, or to the incumbent against itself."""
        ordinal = self._ordinals[ticket] if ticket else self._next()
        self.record(ev.DeviceTurned, 0.0, device=device, ticket=ticket, measurement=ordinal)

    def free(self, device: str = "cpu-a") -> None:
        """A device set is free; what it measured last is validated."""
        self.record(ev.DeviceTurned, 0.0, device=device)

    def put_back(self, ticket: str, why: str, device: str = "cpu-a") -> None:
        """The device set was not to be had."""
        self.record(ev.TicketPutBack, 30.0, ticket=ticket, device=device, why=why)

    def fail(self, ticket: str, name: str, cause: Cause, detail: str) -> None:
        """A taken ticket does not build, or the like."""
        self.record(ev.TicketRejected, 4.0, ticket=ticket, lane=name, cause=cause, detail=detail)

    def measured(self, ticket: str, name: str, factor: float, device: str = "cpu-a", **facts: Any) -> Evaluation:
        """A taken ticket has its verdict; `factor` is what it makes of the metric."""
        commit = next(
            e.submission.commit
            for e in self.events
            if isinstance(e, ev.TicketQueued) and e.submission.ticket == ticket and e.submission.commit
        )
        found = self.measure(self.plan.incumbent, commit, 1.0, factor, device, self._ordinals[ticket])
        evaluation = self.bench.evaluate(found).model_copy(update=facts)
        self.evaluations[ticket] = evaluation
        facts = {"measurement": found, "evaluation": evaluation}
        self.record(ev.TicketMeasured, found.held_s + 5, ticket=ticket, lane=name, **facts)
        return evaluation

    def measure(self, base: str, candidate: str, a: float, b: float, device: str = "", ordinal: int = 0) -> Measurement:
        """Measure two commits; a and b are what they make of the incumbent's value."""
        pairs = self.bench.pairs(self.plan.gates.pairs, a, b)
        held = round(sum(run.wall_s for pair in pairs for run in (*pair.a, *pair.b)), 3)
        name = device or self.plan.devices[0].name
        facts: dict[str, Any] = {"device": name, "host": "linux-x86_64", "held_s": held}
        return Measurement(base=base, candidate=candidate, ordinal=ordinal or self._next(), pairs=pairs, **facts)

    def _next(self) -> int:
        self._last += 1
        return self._last

    def pick(self, *tickets: tuple[str, str]) -> None:
        """The lanes' best tickets, as (lane, ticket), in the order in which they are composed."""
        picks = tuple(
            Pick(lane=name, ticket=ticket, commit=sha(ticket), evaluation=self.evaluations[ticket])
            for name, ticket in tickets
        )
        self.record(ev.PicksMade, picks=picks)

    def step(self, name: str, ticket: str, result: StepResult, factors: tuple[float, float] = (1.0, 1.0)) -> None:
        """A lane is laid on the head; of the first one the ticket's own measurement counts."""
        head = self.head
        commit, found, evaluation = sha(f"{head} {ticket}"), None, self.evaluations[ticket]
        facts: dict[str, Any] = {}
        if result is not StepResult.FIRST:
            found = self.measure(head, commit, *factors)
            alone, evaluation = evaluation, self.bench.evaluate(found)
            facts = {
                "interaction": (evaluation.gain_unit or 0.0) / (alone.gain_unit or 1.0),
                "interaction_log": (evaluation.gain or 0.0) / (alone.gain or 1.0),
            }
        step = Step(lane=name, ticket=ticket, base=head, commit=commit, result=result, evaluation=evaluation, **facts)
        self.record(ev.StepComposed, (found.held_s if found else 0.0) + 3, step=step, measurement=found)
        if result is not StepResult.SKIPPED:
            self.head, self.chain, self.composed = commit, (*self.chain, commit), (*self.composed, name)

    def rerun(self, factor: float, *, fallback: str = "") -> None:
        """The head, or a single lane, is measured anew."""
        if fallback:
            ticket = next(ticket for ticket in self.evaluations if f"-{fallback}-" in ticket)
            self.head, self.composed = sha(f"{self.plan.incumbent} {ticket}"), (fallback,)
            self.chain = (self.head,)
        found = self.measure(self.plan.incumbent, self.head, 1.0, factor)
        evaluation = self.bench.evaluate(found)
        rerun = Rerun(commit=self.head, lanes=self.composed, fallback=bool(fallback), evaluation=evaluation)
        self.record(ev.HeadRerun, found.held_s + 5, rerun=rerun, measurement=found)

    def finish(self, code: RunReason = RunReason.DONE, **data: Any) -> None:
        """The round is decided, promoted where it is to be, recorded, and ends."""
        won = code is RunReason.DONE
        facts: dict[str, Any] = {"lanes": self.composed, "chain": self.chain} if won else {}
        commit, tree = (self.head, sha(f"tree of {self.head}")) if won else (None, None)
        self.record(ev.RoundDecided, incumbent=commit, tree=tree, **facts)
        started = self.events[0]
        assert isinstance(started, ev.RoundStarted)
        if won and started.promote.mode is not PromoteMode.NONE:
            self.record(RunPromoted, promotion=Promotion(target=started.promote, tree=tree, paths=3))
        self.record(ev.RoundRecorded, record=RoundRecord(path="round-ledger.json", sha256="d" * 64, size=34_567))
        self.stop("succeeded" if won else "failed", code, **data)

    def stop(self, status: str, code: RunReason, **data: Any) -> None:
        """The run ends."""
        self.record(RunEnded, status=status, reason=Reason(code=code, data=data))
