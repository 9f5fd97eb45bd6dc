"""The budget of a lane: one binding for each launch of its agent, reserved, claimed, settled; nothing claimed is freed.

The worst case of a binding is all that is left of the lane's caps, so open bindings and what is charged already never
pass a cap together. A settled binding is charged what it used; where nobody reported that, its worst case. The ordinal
is never given back, so a cancelled binding counts among the attempts, but it used nothing: it was never launched.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import NamedTuple

from ..model.base import Digest
from ..model.budget import BindingState
from ..model.round.lane import LaneBinding, LaneEnd, LaneLedger, binding_digest
from ..model.round.plan import LanePlan
from ..model.usage import Usage


class Charge(NamedTuple):
    """What a lane is charged: attempts, tokens of every kind, US dollars."""

    attempts: int
    tokens: int
    usd: float


def may_start(ledger: LaneLedger, lane: LanePlan, *, now: float, deadline: float) -> LaneEnd | None:
    """Why no further attempt may be reserved (times in Unix seconds), or None."""
    return LaneEnd.DEADLINE if late(now, deadline) else _used_up(ledger, lane)


def late(now: float, deadline: float) -> bool:
    """Whether the deadline is over: asked when a binding is reserved, when it is claimed, and at the launch."""
    return now >= deadline


def offer(
    ledger: LaneLedger, lane: LanePlan, round_digest: Digest, *, now: float, deadline: float
) -> LaneBinding | LaneEnd:
    """The binding that the next attempt may reserve, or why there is none."""
    return may_start(ledger, lane, now=now, deadline=deadline) or _next(ledger, lane, round_digest)


def reserve(ledger: LaneLedger, lane: LanePlan, round_digest: Digest, binding: LaneBinding) -> LaneLedger:
    """Add the binding that was offered; the very same one again changes nothing, whatever became of it.

    Raises:
        ValueError: another one stands under its ordinal or digest, or it is not the one that the lane may have next.
    """
    same = [b for b in ledger.bindings if b.ordinal == binding.ordinal or b.digest == binding.digest]
    if same:
        if [_identity(b) for b in same] != [_identity(binding)]:
            raise ValueError(f"binding {binding.ordinal} is reserved with other facts: take a new ordinal")
        return ledger
    if used_up := _used_up(ledger, lane):
        raise ValueError(f"binding {binding.ordinal} is one too many: {used_up.value}")
    if binding != _next(ledger, lane, round_digest):
        raise ValueError(f"binding {binding.ordinal} is not the one that lane {lane.id} may have next")
    return LaneLedger(bindings=(*ledger.bindings, binding))


def claim(ledger: LaneLedger, ordinal: int) -> LaneLedger:
    """Charge a reserved binding for good. Not idempotent: whoever claims second must not launch."""
    return _move(ledger, ordinal, BindingState.RESERVED, BindingState.CLAIMED)


def settle(ledger: LaneLedger, ordinal: int, usage: Usage) -> LaneLedger:
    """Record what a claimed binding used; the same usage again changes nothing."""
    if any(b.ordinal == ordinal and b.state is BindingState.SETTLED and b.usage == usage for b in ledger.bindings):
        return ledger
    return _move(ledger, ordinal, BindingState.CLAIMED, BindingState.SETTLED, usage)


def cancel(ledger: LaneLedger, ordinal: int) -> LaneLedger:
    """Give up a reserved binding that was never launched; refused once it is claimed."""
    return _move(ledger, ordinal, BindingState.RESERVED, BindingState.CANCELLED)


def charged(ledger: LaneLedger) -> Charge:
    """What the lane is charged; a unit that has no cap is charged by what was reported alone."""
    return Charge(len(ledger.bindings), int(_tokens(ledger)), float(_usd(ledger)))


def used(ledger: LaneLedger) -> Usage:
    """What all bindings reported together, which settled ones do; None in a unit that nobody reported."""
    return reduce(lambda a, b: a + b, (binding.usage for binding in ledger.bindings), Usage())


def _used_up(ledger: LaneLedger, lane: LanePlan) -> LaneEnd | None:
    budget = lane.budget
    if len(ledger.bindings) >= budget.attempts:
        return LaneEnd.ATTEMPTS
    if budget.tokens is not None and budget.tokens - _tokens(ledger) < 1:
        return LaneEnd.TOKENS
    if budget.usd is not None and _floor(_exact(budget.usd) - _usd(ledger)) <= 0:
        return LaneEnd.USD
    return None


def _next(ledger: LaneLedger, lane: LanePlan, round_digest: Digest) -> LaneBinding:
    ordinal, budget = len(ledger.bindings) + 1, lane.budget
    return LaneBinding(
        ordinal=ordinal,
        digest=binding_digest(round_digest, lane.id, ordinal),
        tokens=None if budget.tokens is None else int(budget.tokens - _tokens(ledger)),
        usd=None if budget.usd is None else _floor(_exact(budget.usd) - _usd(ledger)),
    )


def _identity(binding: LaneBinding) -> tuple[int, Digest, int | None, float | None]:
    return binding.ordinal, binding.digest, binding.tokens, binding.usd


def _move(
    ledger: LaneLedger, ordinal: int, before: BindingState, after: BindingState, usage: Usage | None = None
) -> LaneLedger:
    now = next((binding for binding in ledger.bindings if binding.ordinal == ordinal), None)
    if now is None or now.state is not before:
        state = now.state.value if now else "unknown"
        raise ValueError(f"binding {ordinal} is {state}, so it cannot become {after.value}")
    moved = now.model_copy(update={"state": after, "usage": usage or now.usage})
    return LaneLedger(bindings=tuple(moved if b.ordinal == ordinal else b for b in ledger.bindings))


def _tokens(ledger: LaneLedger) -> Fraction:
    return _sum(ledger, lambda binding: binding.tokens, lambda usage: usage.tokens)


def _usd(ledger: LaneLedger) -> Fraction:
    return _sum(ledger, lambda binding: binding.usd, lambda usage: usage.usd)


def _sum(
    ledger: LaneLedger, worst: Callable[[LaneBinding], float | None], told: Callable[[Usage], float | None]
) -> Fraction:
    return sum((_charge(b, worst(b), told(b.usage)) for b in ledger.bindings), Fraction(0))


def _charge(binding: LaneBinding, worst: float | None, told: float | None) -> Fraction:
    """What one binding is charged in one unit."""
    if binding.state is BindingState.CANCELLED:
        return Fraction(0)
    known = told if binding.state is BindingState.SETTLED and told is not None else worst
    return Fraction(0) if known is None else _exact(known)


def _exact(amount: float) -> Fraction:
    """The decimal number that was written, so that three times 0.1 is 0.3."""
    return Fraction(str(amount))


def _floor(amount: Fraction) -> float:
    """The largest number of the machine's that is written no larger."""
    near = float(amount)
    return near if _exact(near) <= amount else math.nextafter(near, -math.inf)
