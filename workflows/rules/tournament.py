"""The tournament: one order over an iteration's contenders, whatever the order they came in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import zip_longest
from typing import Literal

from ..model.ranking import Contender, Ranking, SignOff, Standing
from ..model.reason import CandidateReason, Datum, Reason
from ..model.usage import Usage

Unit = Literal["usd", "tokens"]

_SIGN_OFF = {SignOff.APPROVED: 0, SignOff.UNREVIEWED: 1, SignOff.VETOED: 2}

_BEHIND = {
    "evaluable": (CandidateReason.UNEVALUABLE, ""),
    "rungs": (CandidateReason.FEWER_RUNGS, "passed"),
    "lost_rungs": (CandidateReason.LOST_RUNGS, "lost"),
    "progress": (CandidateReason.LESS_PROGRESS, "progress"),
    "sign_off": (CandidateReason.VETOED, "sign_off"),
    "changed": (CandidateReason.UNCHANGED, ""),
    "cost": (CandidateReason.COSTLIER, "cost"),
    "index": (CandidateReason.LATER_INDEX, "index"),
}
"""Per key: the reason of who falls behind there, and the name of its own side in the reason's data."""


@dataclass(frozen=True, order=True)
class _Key:
    """What is compared, in this order; smaller is better, and the names are those of `decided_by`."""

    evaluable: int
    rungs: int
    lost_rungs: int
    progress: Fraction
    sign_off: int
    changed: int
    cost: tuple[bool, float]
    index: int


def rank(contenders: Sequence[Contender]) -> Ranking:
    """Order all contenders, the incumbent (index 0) among them, best first.

    The incumbent stays unless a candidate is evaluable and stands ahead of it: among trees that could not be
    measured it keeps the head, and a candidate that changed nothing stands behind it whatever it cost.

    Raises:
        ValueError: without the incumbent, or with an index twice.
    """
    incumbent = _incumbent(contenders)
    unit = _unit(contenders)
    ranked = sorted((_key(contender, incumbent, unit), contender) for contender in contenders)
    (best, winner), *rest = ranked
    decided_by = _first_difference(best, rest[0][0]) if rest else "only"
    won = Standing(index=winner.index, reason=Reason(code=CandidateReason.WON, data={"decided_by": decided_by}))
    lost = (Standing(index=c.index, reason=_reason(c, key, best, unit)) for key, c in rest)
    return Ranking(order=(won, *lost), decided_by=decided_by)


def _incumbent(contenders: Sequence[Contender]) -> Contender:
    indices = sorted(contender.index for contender in contenders)
    if indices != sorted(set(indices)) or 0 not in indices:
        raise ValueError(f"a ranking needs the incumbent (index 0) and every index once, not {indices}")
    return next(contender for contender in contenders if contender.index == 0)


def _key(contender: Contender, incumbent: Contender, unit: Unit) -> _Key:
    challenger = contender.index != 0
    cost = _cost(contender.usage, unit) if challenger else None
    return _Key(
        evaluable=0 if contender.evaluable else 1 + challenger,
        rungs=-sum(contender.passed),
        lost_rungs=_lost(contender, incumbent),
        progress=-contender.advance,
        sign_off=_SIGN_OFF[contender.signoff],
        # The incumbent has a step of its own, so that its cost is never compared.
        changed=(0 if contender.changed else 2) if challenger else 1,
        cost=(cost is None, cost or 0),
        index=contender.index,
    )


def _lost(contender: Contender, incumbent: Contender) -> int:
    """How many rungs that pass on the incumbent do not pass here; an unevaluable incumbent proves nothing."""
    if not incumbent.evaluable:
        return 0
    pairs = zip_longest(incumbent.passed, contender.passed[: len(incumbent.passed)], fillvalue=False)
    return sum(had and not has for had, has in pairs)


def _unit(contenders: Sequence[Contender]) -> Unit:
    """One unit for all: money when every comparable candidate reports it, else tokens."""
    comparable = [c for c in contenders if c.index != 0 and c.evaluable]
    return "usd" if all(c.usage.usd is not None for c in comparable) else "tokens"


def _cost(usage: Usage, unit: Unit) -> float | None:
    return usage.usd if unit == "usd" else usage.tokens


def _first_difference(best: _Key, other: _Key) -> str:
    names = (field.name for field in fields(_Key))
    return next(name for name in names if getattr(best, name) != getattr(other, name))


def _reason(contender: Contender, key: _Key, best: _Key, unit: Unit) -> Reason[CandidateReason]:
    """The first key at which a contender falls behind the winner, with both sides of the comparison."""
    name = _first_difference(best, key)
    if name == "evaluable" and _never_ran(contender):
        return Reason(code=CandidateReason.NOT_STARTED)
    code, own = _BEHIND[name]
    data: dict[str, Datum] = {own: _shown(key)[name], "winner": _shown(best)[name]} if own else {}
    return Reason(code=code, data=data | {"unit": unit} if name == "cost" else data)


def _never_ran(contender: Contender) -> bool:
    return contender.index != 0 and contender.tree is None and contender.usage == Usage()


def _shown(key: _Key) -> dict[str, Datum]:
    unknown, cost = key.cost
    return {
        "rungs": -key.rungs,
        "lost_rungs": key.lost_rungs,
        "progress": float(-key.progress),
        "sign_off": next(signoff.value for signoff, place in _SIGN_OFF.items() if place == key.sign_off),
        "cost": None if unknown else cost,
        "index": key.index,
    }
