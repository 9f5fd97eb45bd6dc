"""The budget: bindings are reserved, claimed and settled; what is claimed stays charged whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import reduce

from ..model.budget import Binding, BindingState, BudgetLedger, Caps
from ..model.reason import RunReason
from ..model.usage import Usage

_OPEN = {BindingState.RESERVED, BindingState.CLAIMED}


def reserve(ledger: BudgetLedger, count: int) -> tuple[BudgetLedger, tuple[int, ...]]:
    """Add `count` bindings; their ordinals follow the last one and are never used again."""
    if count < 0:
        raise ValueError(f"{count} bindings cannot be reserved: give 0 or more")
    first = max((binding.ordinal for binding in ledger.bindings), default=0) + 1
    ordinals = tuple(range(first, first + count))
    return BudgetLedger(bindings=(*ledger.bindings, *(Binding(ordinal=n) for n in ordinals))), ordinals


def claim(ledger: BudgetLedger, ordinal: int) -> BudgetLedger:
    """Charge a reserved binding: from here on it can only be settled."""
    return _move(ledger, ordinal, BindingState.RESERVED, Binding(ordinal=ordinal, state=BindingState.CLAIMED))


def settle(ledger: BudgetLedger, ordinal: int, usage: Usage) -> BudgetLedger:
    """Record what a claimed binding used; the same usage again changes nothing."""
    settled = Binding(ordinal=ordinal, state=BindingState.SETTLED, usage=usage)
    if settled in ledger.bindings:
        return ledger
    return _move(ledger, ordinal, BindingState.CLAIMED, settled)


def cancel(ledger: BudgetLedger, ordinal: int) -> BudgetLedger:
    """Give a reserved binding back; refused once it is claimed."""
    return _move(ledger, ordinal, BindingState.RESERVED, Binding(ordinal=ordinal, state=BindingState.CANCELLED))


def spent(ledger: BudgetLedger) -> Usage:
    """What all settled bindings used together; None in a unit that nobody reported."""
    return reduce(lambda a, b: a + b, (binding.usage for binding in _settled(ledger)), Usage())


def affordable(ledger: BudgetLedger, caps: Caps, wanted: int) -> int:
    """How many of `wanted` more attempts may start.

    Known spend and the estimate for every open and every new attempt stay within each cap. The estimate is
    the largest cost settled so far; before anything is known, nothing is refused.
    """
    rooms = (_room(ledger, cap, code) for code, cap in _caps(caps))
    return max(0, min([wanted, *(room for room in rooms if room is not None)]))


def exceeded(ledger: BudgetLedger, caps: Caps) -> RunReason | None:
    """The first cap that known spend has reached: nothing is left of it."""
    return next((code for code, cap in _caps(caps) if sum(_costs(ledger, code)) >= cap), None)


def unaffordable(ledger: BudgetLedger, caps: Caps) -> RunReason | None:
    """The first cap that leaves no room for one more attempt, by the estimate of `affordable`."""
    rooms = ((code, _room(ledger, cap, code)) for code, cap in _caps(caps))
    return next((code for code, room in rooms if room is not None and room < 1), None)


def worst_case(caps: Caps) -> int:
    """The most attempts a run can start, lost hosts aside."""
    return caps.candidates * caps.max_iterations


def _move(ledger: BudgetLedger, ordinal: int, before: BindingState, after: Binding) -> BudgetLedger:
    now = next((binding for binding in ledger.bindings if binding.ordinal == ordinal), None)
    if now is None or now.state is not before:
        state = now.state.value if now else "unknown"
        raise ValueError(f"binding {ordinal} is {state}, so it cannot become {after.state.value}")
    return BudgetLedger(bindings=tuple(after if b.ordinal == ordinal else b for b in ledger.bindings))


def _settled(ledger: BudgetLedger) -> Iterator[Binding]:
    return (binding for binding in ledger.bindings if binding.state is BindingState.SETTLED)


def _caps(caps: Caps) -> Iterator[tuple[RunReason, Fraction]]:
    if caps.tokens is not None:
        yield RunReason.BUDGET_TOKENS, Fraction(caps.tokens)
    if caps.usd is not None:
        yield RunReason.BUDGET_USD, _exact(caps.usd)


def _room(ledger: BudgetLedger, cap: Fraction, code: RunReason) -> int | None:
    """How many new attempts fit under one cap; None while there is no estimate."""
    costs = list(_costs(ledger, code))
    estimate = max(costs, default=Fraction(0))
    if estimate == 0:
        return None
    running = sum(binding.state in _OPEN for binding in ledger.bindings)
    return int((cap - sum(costs)) // estimate) - running


def _costs(ledger: BudgetLedger, code: RunReason) -> Iterator[Fraction]:
    known = (_cost(binding.usage, code) for binding in _settled(ledger))
    return (cost for cost in known if cost is not None)


def _cost(usage: Usage, code: RunReason) -> Fraction | None:
    amount = usage.usd if code is RunReason.BUDGET_USD else usage.tokens
    return None if amount is None else _exact(amount)


def _exact(amount: float) -> Fraction:
    """The decimal number that was written, so that three times 0.1 is 0.3."""
    return Fraction(str(amount))
