"""The budget: the life of a binding by table, what may start by properties."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orch.workflows.model.budget import BindingState, BudgetLedger, Caps
from orch.workflows.model.reason import RunReason
from orch.workflows.model.usage import Usage
from orch.workflows.rules import budget

Step = Callable[[BudgetLedger], BudgetLedger]
ONE = Usage(tokens_in=10, usd=0.1)
STEPS: dict[str, Step] = {
    "claim": lambda ledger: budget.claim(ledger, 1),
    "settle": lambda ledger: budget.settle(ledger, 1, ONE),
    "settle_other": lambda ledger: budget.settle(ledger, 1, Usage(tokens_in=11)),
    "cancel": lambda ledger: budget.cancel(ledger, 1),
}


def reserved(count: int) -> BudgetLedger:
    return budget.reserve(BudgetLedger(), count)[0]


def settled(*usages: Usage) -> BudgetLedger:
    ledger = reserved(len(usages))
    for ordinal, usage in enumerate(usages, 1):
        ledger = budget.settle(budget.claim(ledger, ordinal), ordinal, usage)
    return ledger


def usd(*amounts: float) -> BudgetLedger:
    return settled(*(Usage(usd=amount) for amount in amounts))


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
    ledger = reserved(1)
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
        budget.claim(reserved(2), 7)


def test_a_negative_reservation_is_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        budget.reserve(BudgetLedger(), -1)


def test_ordinals_are_never_used_again() -> None:
    ledger, first = budget.reserve(BudgetLedger(), 2)
    ledger, second = budget.reserve(budget.cancel(ledger, 2), 2)
    assert (first, second) == ((1, 2), (3, 4))
    assert budget.reserve(ledger, 0) == (ledger, ())


@pytest.mark.parametrize(
    ("ledger", "caps", "wanted", "affordable"),
    [
        (BudgetLedger(), Caps(), 8, 8),
        (BudgetLedger(), Caps(usd=0.01), 8, 8),
        (reserved(3), Caps(tokens=1), 8, 8),
        (usd(0.1), Caps(usd=0.3), 8, 2),
        (usd(0.1, 0.1), Caps(usd=0.3), 8, 1),
        (usd(0.1, 0.1, 0.1), Caps(usd=0.3), 8, 0),
        (usd(0.1, 0.2), Caps(usd=1), 8, 3),
        (usd(5), Caps(usd=1), 8, 0),
        (usd(0.1), Caps(usd=1), 2, 2),
        (usd(0.1), Caps(tokens=5), 8, 8),
        (settled(ONE), Caps(usd=1, tokens=35), 8, 2),
        (budget.reserve(usd(1), 2)[0], Caps(usd=5), 8, 2),
        (budget.claim(budget.reserve(usd(1), 2)[0], 2), Caps(usd=5), 8, 2),
        (budget.cancel(budget.reserve(usd(1), 2)[0], 2), Caps(usd=5), 8, 3),
        (budget.reserve(usd(1), 9)[0], Caps(usd=5), 8, 0),
        (usd(1), Caps(usd=5), 0, 0),
    ],
)
def test_what_may_start_fits_with_what_is_running(
    ledger: BudgetLedger, caps: Caps, wanted: int, affordable: int
) -> None:
    assert budget.affordable(ledger, caps, wanted) == affordable


@pytest.mark.parametrize(
    ("ledger", "caps", "exceeded", "unaffordable"),
    [
        (BudgetLedger(), Caps(usd=1, tokens=1), None, None),
        (usd(0.1, 0.1), Caps(usd=0.3), None, None),
        (usd(0.2), Caps(usd=0.3), None, RunReason.BUDGET_USD),
        (usd(0.1, 0.1, 0.1), Caps(usd=0.3), RunReason.BUDGET_USD, RunReason.BUDGET_USD),
        (settled(ONE), Caps(usd=0.1, tokens=10), RunReason.BUDGET_TOKENS, RunReason.BUDGET_TOKENS),
        (settled(ONE), Caps(), None, None),
        (budget.claim(reserved(1), 1), Caps(usd=1), None, None),
    ],
)
def test_the_cap_in_the_way_is_named(
    ledger: BudgetLedger, caps: Caps, exceeded: RunReason | None, unaffordable: RunReason | None
) -> None:
    assert budget.exceeded(ledger, caps) is exceeded
    assert budget.unaffordable(ledger, caps) is unaffordable


def test_spend_is_the_sum_of_what_is_settled() -> None:
    ledger = budget.reserve(settled(Usage(tokens_in=1), Usage(usd=0.5, wall_s=2)), 3)[0]
    assert budget.spent(ledger) == Usage(tokens_in=1, usd=0.5, wall_s=2)
    assert budget.spent(reserved(1)) == Usage()


def test_the_worst_case_is_every_candidate_of_every_iteration() -> None:
    assert budget.worst_case(Caps(candidates=4, max_iterations=7)) == 28


USAGES = st.builds(Usage, usd=st.none() | st.floats(0, 100), tokens_in=st.none() | st.integers(0, 1000))
CAPS = st.builds(Caps, usd=st.none() | st.floats(0.01, 200), tokens=st.none() | st.integers(1, 3000))
ACTIONS = st.lists(
    st.tuples(st.sampled_from(["reserve", "claim", "settle", "cancel"]), st.integers(1, 8), USAGES), max_size=30
)


def play(actions: list[tuple[str, int, Usage]]) -> list[BudgetLedger]:
    """Every ledger on the way; illegal steps are refused and change nothing."""
    ledgers = [BudgetLedger()]
    for name, number, usage in actions:
        steps: dict[str, Step] = {
            "reserve": lambda ledger, n=number: budget.reserve(ledger, n % 3)[0],  # type: ignore[misc]
            "claim": lambda ledger, n=number: budget.claim(ledger, n),  # type: ignore[misc]
            "settle": lambda ledger, n=number, u=usage: budget.settle(ledger, n, u),  # type: ignore[misc]
            "cancel": lambda ledger, n=number: budget.cancel(ledger, n),  # type: ignore[misc]
        }
        try:
            ledgers.append(steps[name](ledgers[-1]))
        except ValueError:
            ledgers.append(ledgers[-1])
    return ledgers


@given(ACTIONS)
@settings(deadline=None)
def test_never_more_is_claimed_than_was_reserved_and_spend_only_grows(
    actions: list[tuple[str, int, Usage]],
) -> None:
    ledgers = play(actions)
    charged = {BindingState.CLAIMED, BindingState.SETTLED}
    for before, after in pairwise(ledgers):
        assert [b.ordinal for b in after.bindings] == list(range(1, len(after.bindings) + 1))
        was = {b.ordinal for b in before.bindings if b.state in charged}
        assert was <= {b.ordinal for b in after.bindings if b.state in charged}
        assert (budget.spent(before).tokens or 0) <= (budget.spent(after).tokens or 0)
        assert (budget.spent(before).usd or 0) <= (budget.spent(after).usd or 0)


@given(ACTIONS, st.integers(1, 8))
@settings(deadline=None)
def test_a_claimed_binding_cannot_be_cancelled(actions: list[tuple[str, int, Usage]], ordinal: int) -> None:
    ledger = play(actions)[-1]
    state = next((b.state for b in ledger.bindings if b.ordinal == ordinal), None)
    if state is BindingState.RESERVED:
        assert budget.cancel(ledger, ordinal).bindings[ordinal - 1].state is BindingState.CANCELLED
    else:
        with pytest.raises(ValueError, match=f"binding {ordinal}"):
            budget.cancel(ledger, ordinal)


@given(ACTIONS, CAPS, st.integers(0, 64))
@settings(max_examples=200, deadline=None)
def test_what_may_start_never_lets_the_estimate_pass_a_cap(
    actions: list[tuple[str, int, Usage]], caps: Caps, wanted: int
) -> None:
    ledger = play(actions)[-1]
    count = budget.affordable(ledger, caps, wanted)
    assert 0 <= count <= wanted
    running = sum(b.state in {BindingState.RESERVED, BindingState.CLAIMED} for b in ledger.bindings)
    done = [b.usage for b in ledger.bindings if b.state is BindingState.SETTLED]
    for cap, costs in ((caps.usd, [u.usd for u in done]), (caps.tokens, [u.tokens for u in done])):
        known = [Fraction(str(cost)) for cost in costs if cost is not None]
        if cap is not None and count > 0:
            assert sum(known) + max(known, default=Fraction(0)) * (running + count) <= Fraction(str(cap))
    if count < wanted:
        assert budget.affordable(ledger, caps, count + 1) == count
    if wanted:
        assert (count == 0) == (budget.unaffordable(ledger, caps) is not None)
