"""A lane's budget: the life of a binding by table, caps and crashes by a machine that plays any sequence of events."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from orch.workflows.model.budget import BindingState
from orch.workflows.model.round.lane import LaneBinding, LaneEnd, LaneLedger, binding_digest
from orch.workflows.model.round.plan import Entry, LaneBudget, LanePlan
from orch.workflows.model.usage import Usage
from orch.workflows.rules import lane_budget

ROUND = "a" * 64
FREE = Usage()
Step = Callable[[LaneLedger], LaneLedger]


def lane(**budget: Any) -> LanePlan:
    entry = Entry(id="e", plane="algorithm", hypothesis="h", headroom=0.5)
    return LanePlan(id="fast", entry=entry, globs=("src/**",), agent="claude", budget=LaneBudget(**budget))


def reserved(plan: LanePlan, ledger: LaneLedger | None = None) -> LaneLedger:
    ledger = ledger or LaneLedger()
    binding = lane_budget.offer(ledger, plan, ROUND, now=0, deadline=1)
    assert isinstance(binding, LaneBinding), binding
    return lane_budget.reserve(ledger, plan, ROUND, binding)


def settled(plan: LanePlan, *usages: Usage) -> LaneLedger:
    ledger = LaneLedger()
    for ordinal, usage in enumerate(usages, 1):
        ledger = lane_budget.settle(lane_budget.claim(reserved(plan, ledger), ordinal), ordinal, usage)
    return ledger


STEPS: dict[str, Step] = {
    "claim": lambda ledger: lane_budget.claim(ledger, 1),
    "settle": lambda ledger: lane_budget.settle(ledger, 1, Usage(tokens_in=3)),
    "settle_other": lambda ledger: lane_budget.settle(ledger, 1, Usage(tokens_in=4)),
    "cancel": lambda ledger: lane_budget.cancel(ledger, 1),
}


@pytest.mark.parametrize(
    ("path", "state"),
    [
        ("", BindingState.RESERVED),
        ("claim", BindingState.CLAIMED),
        ("claim settle", BindingState.SETTLED),
        ("claim settle settle", BindingState.SETTLED),
        ("cancel", BindingState.CANCELLED),
        ("settle", None),
        ("claim claim", None),
        ("claim cancel", None),
        ("cancel claim", None),
        ("cancel cancel", None),
        ("cancel settle", None),
        ("claim settle claim", None),
        ("claim settle cancel", None),
        ("claim settle settle_other", None),
    ],
)
def test_a_binding_goes_from_reserve_to_claim_to_settle(path: str, state: BindingState | None) -> None:
    ledger = reserved(lane(attempts=2, tokens=10))
    *legal, last = path.split() or [""]
    for name in legal:
        ledger = STEPS[name](ledger)
    if state is None:
        with pytest.raises(ValueError, match="binding 1 is"):
            STEPS[last](ledger)
    else:
        assert (STEPS[last](ledger) if last else ledger).bindings[0].state is state


def test_an_unknown_binding_is_refused() -> None:
    with pytest.raises(ValueError, match="binding 7 is unknown"):
        lane_budget.claim(reserved(lane()), 7)


def test_identity_is_the_digest_of_round_lane_and_ordinal() -> None:
    text = f'["{ROUND}","fast",3]'
    assert binding_digest(ROUND, "fast", 3) == hashlib.sha256(text.encode()).hexdigest()
    assert len({binding_digest(r, n, i) for r in (ROUND, "b" * 64) for n in ("a", "b") for i in (1, 2)}) == 8


@pytest.mark.parametrize("then", [[], ["claim"], ["claim", "settle"], ["cancel"]])
def test_the_very_same_binding_again_changes_nothing(then: list[str]) -> None:
    plan = lane(attempts=2, tokens=10)
    ledger = reserved(plan)
    first = ledger.bindings[0]
    for name in then:
        ledger = STEPS[name](ledger)
    assert lane_budget.reserve(ledger, plan, ROUND, first) == ledger


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tokens": 9}, "reserved with other facts"),
        ({"usd": 1.0}, "reserved with other facts"),
        ({"digest": "b" * 64}, "reserved with other facts"),
        ({"ordinal": 2}, "reserved with other facts"),
        ({"ordinal": 2, "digest": "b" * 64}, "not the one"),
        ({"ordinal": 3, "digest": binding_digest(ROUND, "fast", 3)}, "not the one"),
        ({"ordinal": 2, "digest": binding_digest(ROUND, "fast", 2), "tokens": 8}, "not the one"),
        ({"ordinal": 2, "digest": binding_digest(ROUND, "fast", 2), "state": BindingState.CLAIMED}, "not the one"),
    ],
)
def test_anything_else_under_the_same_identity_is_an_error(change: dict[str, Any], said: str) -> None:
    plan = lane(attempts=5, tokens=10)
    ledger = settled(plan, Usage(tokens_in=0))
    other = LaneBinding(**{"ordinal": 1, "digest": binding_digest(ROUND, "fast", 1), "tokens": 10, **change})
    with pytest.raises(ValueError, match=said):
        lane_budget.reserve(ledger, plan, ROUND, other)


@pytest.mark.parametrize(
    ("ledger", "budget", "refused"),
    [
        ((), {}, None),
        ((FREE,), {}, LaneEnd.ATTEMPTS),
        ((FREE, FREE), {"attempts": 3}, None),
        ((Usage(tokens_in=6, tokens_cached=4),), {"attempts": 2, "tokens": 10}, LaneEnd.TOKENS),
        ((Usage(tokens_in=6, tokens_cached=3),), {"attempts": 2, "tokens": 10}, None),
        ((Usage(tokens_in=60),), {"attempts": 2, "tokens": 10}, LaneEnd.TOKENS),
        ((Usage(usd=0.1), Usage(usd=0.1), Usage(usd=0.1)), {"attempts": 9, "usd": 0.3}, LaneEnd.USD),
        ((Usage(usd=0.1), Usage(usd=0.1)), {"attempts": 9, "usd": 0.3}, None),
        ((FREE,), {"attempts": 2, "tokens": 10}, LaneEnd.TOKENS),
        ((Usage(tokens_in=1),), {"attempts": 2, "tokens": 10, "usd": 1}, LaneEnd.USD),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_cap_in_the_way_is_named(
    ledger: tuple[Usage, ...], budget: dict[str, Any], refused: LaneEnd | None
) -> None:
    plan = lane(**budget)
    assert lane_budget.may_start(settled(plan, *ledger), plan, now=0, deadline=1) is refused


def test_an_open_binding_leaves_nothing_of_a_cap() -> None:
    plan = lane(attempts=9, usd=1)
    assert lane_budget.may_start(reserved(plan), plan, now=0, deadline=1) is LaneEnd.USD
    assert lane_budget.may_start(lane_budget.claim(reserved(plan), 1), plan, now=0, deadline=1) is LaneEnd.USD


@pytest.mark.parametrize(("now", "refused"), [(9.9, None), (10.0, LaneEnd.DEADLINE), (11.0, LaneEnd.DEADLINE)])
def test_nothing_is_reserved_from_the_deadline_on(now: float, refused: LaneEnd | None) -> None:
    assert lane_budget.may_start(LaneLedger(), lane(), now=now, deadline=10) is refused
    assert lane_budget.late(now, 10) is (refused is not None)


def test_the_worst_case_is_what_is_left() -> None:
    plan = lane(attempts=3, tokens=100, usd=0.5)
    ledger = reserved(plan, settled(plan, Usage(tokens_in=30, usd=0.2)))
    assert (ledger.bindings[1].tokens, ledger.bindings[1].usd) == (70, 0.3)
    assert lane_budget.charged(ledger) == (2, 100, 0.5)
    assert lane_budget.charged(lane_budget.cancel(ledger, 2)) == (2, 30, 0.2)
    assert lane_budget.used(ledger) == Usage(tokens_in=30, usd=0.2)


def test_amounts_are_the_decimal_numbers_that_were_written() -> None:
    plan = lane(attempts=4, usd=0.3)
    assert lane_budget.charged(settled(plan, Usage(usd=0.1), Usage(usd=0.1), Usage(usd=0.1))).usd == 0.3
    left = reserved(plan, settled(plan, Usage(usd=1e-17))).bindings[1].usd
    assert left is not None
    assert Fraction(str(left)) + Fraction("1e-17") <= Fraction("0.3")


def test_an_attempt_past_the_cap_is_not_reserved_by_anybody() -> None:
    plan = lane()
    ledger = settled(plan, FREE)
    other = LaneBinding(ordinal=2, digest=binding_digest(ROUND, "fast", 2))
    with pytest.raises(ValueError, match="one too many: attempts_used"):
        lane_budget.reserve(ledger, plan, ROUND, other)


def test_a_cancelled_attempt_keeps_its_ordinal() -> None:
    plan = lane(attempts=2, tokens=100)
    ledger = reserved(plan, lane_budget.cancel(reserved(plan), 1))
    assert [binding.ordinal for binding in ledger.bindings] == [1, 2]
    ledger = lane_budget.cancel(ledger, 2)
    assert lane_budget.may_start(ledger, plan, now=0, deadline=1) is LaneEnd.ATTEMPTS


OPEN = {BindingState.RESERVED, BindingState.CLAIMED}
CHARGED = {BindingState.CLAIMED, BindingState.SETTLED}
AMOUNTS = st.builds(
    Usage,
    usd=st.none() | st.floats(0, 3) | st.sampled_from([0.1, 1e-17]),
    tokens_in=st.none() | st.integers(0, 40),
    tokens_out=st.none() | st.integers(0, 10),
)
BUDGETS = st.fixed_dictionaries(
    {
        "attempts": st.integers(1, 6),
        "tokens": st.none() | st.integers(1, 100),
        "usd": st.none() | st.floats(0.01, 5) | st.sampled_from([0.3, 1]),
    }
)


class AnySequence(RuleBasedStateMachine):
    """Whatever is asked in whatever order, repeated, refused, or cut off by a crash and folded again from events."""

    def __init__(self) -> None:
        super().__init__()
        self.plan = lane()
        self.events: list[Step] = []
        self.ledger = LaneLedger()
        self.begun = False
        self.claimed: set[int] = set()
        self.overshot = {"tokens": Fraction(0), "usd": Fraction(0)}

    @precondition(lambda self: not self.begun)
    @rule(budget=BUDGETS)
    def begin(self, budget: dict[str, Any]) -> None:
        self.plan, self.begun = lane(**budget), True

    def _try(self, step: Step) -> bool:
        try:
            self.ledger = step(self.ledger)
        except ValueError:
            return False
        self.events.append(step)
        return True

    @precondition(lambda self: self.begun)
    @rule(now=st.floats(0, 20))
    def ask(self, now: float) -> None:
        offered = lane_budget.offer(self.ledger, self.plan, ROUND, now=now, deadline=10)
        if isinstance(offered, LaneEnd):
            assert (offered is LaneEnd.DEADLINE) == (now >= 10)
            return
        assert now < 10
        assert self._try(lambda ledger: lane_budget.reserve(ledger, self.plan, ROUND, offered))

    @precondition(lambda self: self.begun and self.ledger.bindings)
    @rule(data=st.data(), tokens=st.none() | st.integers(0, 200))
    def ask_again_or_for_another(self, data: st.DataObject, tokens: int | None) -> None:
        old = data.draw(st.sampled_from(self.ledger.bindings))
        first = LaneBinding(ordinal=old.ordinal, digest=old.digest, tokens=old.tokens, usd=old.usd)
        before = self.ledger
        again = first.model_copy(update={"tokens": tokens})
        assert self._try(lambda ledger: lane_budget.reserve(ledger, self.plan, ROUND, again)) == (again == first)
        assert self.ledger == before

    @rule(ordinal=st.integers(1, 7))
    def claim(self, ordinal: int) -> None:
        was = self._state(ordinal)
        assert self._try(lambda ledger: lane_budget.claim(ledger, ordinal)) == (was is BindingState.RESERVED)

    @rule(ordinal=st.integers(1, 7))
    def cancel(self, ordinal: int) -> None:
        was = self._state(ordinal)
        assert self._try(lambda ledger: lane_budget.cancel(ledger, ordinal)) == (was is BindingState.RESERVED)

    @rule(ordinal=st.integers(1, 7), usage=AMOUNTS)
    def settle(self, ordinal: int, usage: Usage) -> None:
        before = self.ledger
        if self._try(lambda ledger: lane_budget.settle(ledger, ordinal, usage)) and self.ledger != before:
            binding = before.bindings[ordinal - 1]
            for unit, told, worst in (("tokens", usage.tokens, binding.tokens), ("usd", usage.usd, binding.usd)):
                if told is not None and worst is not None:
                    self.overshot[unit] += max(Fraction(0), Fraction(str(told)) - Fraction(str(worst)))

    @rule()
    def crash(self) -> None:
        """All that is left is the events; they are folded anew."""
        folded = LaneLedger()
        for step in self.events:
            folded = step(folded)
        assert folded == self.ledger
        assert LaneLedger.model_validate_json(folded.model_dump_json()) == folded

    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """An event that is delivered twice changes nothing."""
        if self.events:
            step, before = data.draw(st.sampled_from(self.events)), self.ledger
            try:
                assert step(before) == before
            except ValueError:
                assert self.ledger == before

    @invariant()
    def no_cap_is_passed(self) -> None:
        budget, bindings = self.plan.budget, self.ledger.bindings
        assert len(bindings) <= budget.attempts
        assert [binding.ordinal for binding in bindings] == list(range(1, len(bindings) + 1))
        charges = {
            "tokens": [_charge(b, b.tokens, b.usage.tokens) for b in bindings],
            "usd": [_charge(b, b.usd, b.usage.usd) for b in bindings],
        }
        for unit, cap in (("tokens", budget.tokens), ("usd", budget.usd)):
            if cap is not None:
                assert sum(charges[unit]) - self.overshot[unit] <= Fraction(str(cap))

    @invariant()
    def what_was_claimed_is_charged(self) -> None:
        now = {b.ordinal for b in self.ledger.bindings if b.state in CHARGED}
        assert self.claimed <= now
        self.claimed = now

    def _state(self, ordinal: int) -> BindingState | None:
        return next((b.state for b in self.ledger.bindings if b.ordinal == ordinal), None)


def _charge(binding: LaneBinding, worst: float | None, told: float | None) -> Fraction:
    """By hand: open ones their worst case, settled ones what was told, else their worst case."""
    if binding.state in OPEN or (binding.state is BindingState.SETTLED and told is None):
        return Fraction(str(worst or 0))
    return Fraction(str(told)) if binding.state is BindingState.SETTLED else Fraction(0)


AnySequence.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
test_no_sequence_of_events_crashes_and_retries_passes_a_cap = AnySequence.TestCase
