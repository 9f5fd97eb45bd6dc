"""The state that decisions read: a fold of the ledger, so that a resumed run decides as an uninterrupted one."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import singledispatchmethod
from typing import TypeVar

from .model.base import Sha
from .model.budget import BudgetLedger, Caps
from .model.candidate import Candidate, Failure
from .model.contract import Contract
from .model.event import (
    AttemptReplaced,
    AttemptStarted,
    BaselineMeasured,
    BaselineTaken,
    CandidateMeasured,
    Event,
    GateMeasured,
    HeadReviewed,
    IterationDecided,
    IterationStarted,
    NoteAdded,
    RunExtended,
    RunStarted,
    SealDecided,
)
from .model.outcome import Outcome
from .model.progress import IterationFacts
from .model.ranking import Contender, Ranking, SignOff
from .model.review import Decision, Review
from .model.usage import Usage
from .model.verdict import Verdict
from .rules import budget
from .rules.outcome import POLICIES
from .rules.stuck import failure_text

T = TypeVar("T")


@dataclass
class GoalState:
    """What a goal run knows; changed only by `apply`.

    Attributes:
        head: the head's (commit, tree) in the store.
        head_verdict: the verdict on the head's tree that the ranking reads: every rung, without short-circuit.
        gates: gate verdicts by tree.
        reviews: reviews by tree.
        started: the newest iteration's start.
        candidates: the candidates of the newest iteration.
        ranking: the newest iteration's ranking.
        history: one line of facts per finished iteration.
        notes: operator notes, oldest first.
        budget: the bindings of all attempts and reviews.
        claimed: the ordinals of bindings whose attempt was started.
        lead: the candidate whose tree is the head; None while that is the baseline's.
        failed: the agents that failed for good, with how.
        hosts: the hosts that attempts went to, without those that were lost since.
    """

    started_at: float = 0.0
    caps: Caps = field(default_factory=Caps)
    contract: Contract | None = None
    store: str = ""
    sandbox: bool = False
    baseline: tuple[Sha, Sha] | None = None
    head: tuple[Sha, Sha] | None = None
    head_verdict: Verdict | None = None
    seal: Decision | None = None
    ordinal: int = 0
    started: IterationStarted | None = None
    candidates: dict[int, Candidate] = field(default_factory=dict)
    ranking: Ranking | None = None
    gates: dict[Sha, Verdict] = field(default_factory=dict)
    reviews: dict[Sha, Review] = field(default_factory=dict)
    history: list[IterationFacts] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    budget: BudgetLedger = field(default_factory=BudgetLedger)
    claimed: set[int] = field(default_factory=set)
    lead: Candidate | None = None
    failed: dict[str, Outcome] = field(default_factory=dict)
    hosts: set[str] = field(default_factory=set)

    @singledispatchmethod
    def apply(self, event: Event) -> None:
        """Fold one event in; events that decide nothing change nothing."""

    @apply.register
    def _run_started(self, event: RunStarted) -> None:
        self.started_at = datetime.fromisoformat(event.at).timestamp()
        self.caps = event.caps

    @apply.register
    def _baseline_taken(self, event: BaselineTaken) -> None:
        self.contract, self.store, self.sandbox = event.contract, event.store, event.sandbox
        self.baseline = self.head = (event.commit, event.tree)

    @apply.register
    def _baseline_measured(self, event: BaselineMeasured) -> None:
        self.head_verdict = event.verdict

    @apply.register
    def _seal_decided(self, event: SealDecided) -> None:
        self.seal = event.decision

    @apply.register
    def _iteration_started(self, event: IterationStarted) -> None:
        self.ordinal, self.started = event.ordinal, event
        self.candidates = {}
        self.budget, _ = budget.reserve(self.budget, len(event.attempts))

    @apply.register
    def _attempt_started(self, event: AttemptStarted) -> None:
        self.claimed.add(event.attempt.binding)
        self.budget = budget.claim(self.budget, event.attempt.binding)

    @apply.register
    def _attempt_replaced(self, event: AttemptReplaced) -> None:
        self.hosts.discard(event.lost.host)
        self.budget = budget.settle(self.budget, event.lost.attempt.binding, event.lost.usage)
        self.budget, _ = budget.reserve(self.budget, 1)

    @apply.register
    def _candidate_measured(self, event: CandidateMeasured) -> None:
        candidate = event.candidate
        self.candidates[candidate.index] = candidate
        if candidate.host and candidate.failure is not Failure.HOST_LOST:
            self.hosts.add(candidate.host)
        if candidate.outcome is not None and POLICIES[candidate.outcome.kind].fatal:
            self.failed[candidate.agent] = candidate.outcome
        if candidate.attempt.binding in self.claimed:
            self.budget = budget.settle(self.budget, candidate.attempt.binding, candidate.usage)
        else:
            self.budget = budget.cancel(self.budget, candidate.attempt.binding)

    @apply.register
    def _iteration_decided(self, event: IterationDecided) -> None:
        self.ranking, self.head = event.ranking, (event.commit, event.tree)
        winner = self.candidates.get(event.ranking.winner)
        if winner is not None:
            self.head_verdict, self.lead = winner.verdict, winner
        self.history.append(
            IterationFacts.of(
                _known(self.started, "iteration"),
                event,
                tuple(self.candidates.values()),
                failure_text=failure_text(self.head_verdict),
            )
        )

    @apply.register
    def _gate_measured(self, event: GateMeasured) -> None:
        self.gates[event.verdict.tree] = event.verdict
        if not event.verdict.passed:
            self.history[-1] = self.history[-1].model_copy(update={"failure_text": failure_text(event.verdict)})

    @apply.register
    def _head_reviewed(self, event: HeadReviewed) -> None:
        self.reviews[event.tree] = event.review
        self.budget, (binding,) = budget.reserve(self.budget, 1)
        self.budget = budget.settle(budget.claim(self.budget, binding), binding, event.review.usage)
        if not event.review.approved:
            veto = {"vetoed": True, "failure_text": event.review.comment}
            self.history[-1] = self.history[-1].model_copy(update=veto)

    @apply.register
    def _note_added(self, event: NoteAdded) -> None:
        self.notes.append(event.note.text)

    @apply.register
    def _run_extended(self, event: RunExtended) -> None:
        raised = {name: value for name, value in event.extension.model_dump().items() if value is not None}
        self.caps = self.caps.model_copy(update=raised)

    @property
    def known_contract(self) -> Contract:
        """The frozen contract; a bug before the baseline was taken."""
        return _known(self.contract, "contract")

    @property
    def known_baseline(self) -> tuple[Sha, Sha]:
        """The baseline's (commit, tree); a bug before it was taken."""
        return _known(self.baseline, "baseline")

    @property
    def known_head(self) -> tuple[Sha, Sha]:
        """The head's (commit, tree); a bug before the baseline was taken."""
        return _known(self.head, "head")

    @property
    def usage(self) -> Usage:
        """Everything the run used: all attempts and all reviews."""
        return budget.spent(self.budget)

    @property
    def failing_verdict(self) -> Verdict | None:
        """The verdict that tells what the head still fails: a red gate before the ranking's own."""
        gate = self.gates.get(self.head[1]) if self.head else None
        return gate if gate is not None and not gate.passed else self.head_verdict

    @property
    def deadline(self) -> float | None:
        """The run's absolute deadline in Unix time; a restart resets nothing."""
        return None if self.caps.deadline_s is None else self.started_at + self.caps.deadline_s

    def signoff(self, tree: Sha | None) -> SignOff:
        """What the reviewer said of a tree."""
        review = self.reviews.get(tree) if tree else None
        if review is None:
            return SignOff.UNREVIEWED
        return SignOff.APPROVED if review.approved else SignOff.VETOED

    def contenders(self) -> tuple[Contender, ...]:
        """The incumbent and the newest iteration's candidates, as the tournament may see them."""
        candidates = (Contender.of_candidate(c, self.signoff(c.tree)) for c in self.candidates.values())
        incumbent = Contender(index=0, tree=self.head[1] if self.head else None)
        if self.head_verdict is not None:
            incumbent = Contender.of_incumbent(self.head_verdict, self.signoff(self.head_verdict.tree))
        return (incumbent, *candidates)


def _known(value: T | None, name: str) -> T:
    if value is None:
        raise LookupError(f"the run has no {name} yet")
    return value
