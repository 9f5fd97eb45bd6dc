"""The pilot's frozen rule: P is faster, slower, or not to be distinguished.

Faster: in every pair P reaches f·G* before S does, the median of the time ratios P/S is below the threshold, and P's
final gain is not lower. Slower: the same with the arms exchanged. Anything else, and fewer than three complete pairs,
is not distinguishable. A run that never reaches f·G* is censored at the exhaustion of its budget: all that is known
of its time is that it is longer, so it loses to a run that was there by then, and its bound stands in the ratio, which
then understates the difference. (The seed's section 7. That a gain is lower is told by two standard errors of what
was measured: two measurements of the same tree differ, too.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..estimation.moments import median
from ..model.round.pilot import Arm, Decision, PilotRule, PilotRun, Spread, Verdict
from ..model.round.plan import Direction
from ..model.round.trial import Scale

PAIRS = 3
"""Fewer pairs decide nothing."""

Pair = tuple[PilotRun, PilotRun]
"""The runs of P and S in one repetition."""


def order(repetitions: int) -> Iterator[tuple[Arm, int]]:
    """The runs as they are made, P S S P P S …: what drifts with time falls on both arms."""
    for pair in range(repetitions):
        arms = (Arm.PARALLEL, Arm.SERIAL)
        yield from ((arm, pair) for arm in (arms if pair % 2 == 0 else reversed(arms)))


def needed(rule: PilotRule, direction: Direction, scale: Scale, base: float) -> float:
    """f·G* in the ledger's scale: a log ratio, or a difference from the incumbent's value `base`."""
    share = rule.fraction * rule.target
    if scale is Scale.DIFFERENCE:
        return share * abs(base)
    if direction is Direction.HIGHER:
        return math.log1p(share)
    return -math.log1p(-share) if share < 1 else math.inf


def decide(runs: Sequence[PilotRun], rule: PilotRule) -> Decision:
    """Apply the rule; the order in which the runs are given does not matter."""
    pairs = _pairs(runs)
    verdict, why = _verdict(pairs, rule)
    ratios = [ratio for pair in pairs if (ratio := _ratio(*pair)) is not None]
    arms = {arm: [run for run in runs if run.arm is arm] for arm in Arm}
    return Decision(
        verdict=verdict,
        why=why,
        ratio=spread(ratios) if ratios and len(ratios) == len(pairs) else None,
        times={arm: spread([_bound(run) for run in its]) for arm, its in arms.items() if its},
        gains={arm: spread([run.gain for run in its]) for arm, its in arms.items() if its},
        censored={arm: sum(run.reached_s is None for run in its) for arm, its in arms.items() if its},
    )


def spread(values: Sequence[float]) -> Spread:
    """Median and range of at least one value."""
    return Spread(median=median(values), low=min(values), high=max(values))


def _verdict(pairs: Sequence[Pair], rule: PilotRule) -> tuple[Verdict, str]:
    if len(pairs) < PAIRS:
        return Verdict.OPEN, f"{len(pairs)} complete pairs, and fewer than {PAIRS} decide nothing"
    failed = ""
    for verdict, sides in ((Verdict.FASTER, pairs), (Verdict.SLOWER, [(s, p) for p, s in pairs])):
        why = _against(sides, rule)
        if why is None:
            first, other = ("P", "S") if verdict is Verdict.FASTER else ("S", "P")
            return verdict, f"{first} was first in all {len(pairs)} pairs, and its gain is not below {other}'s"
        failed = failed or why
    return Verdict.OPEN, failed


def _against(sides: Sequence[Pair], rule: PilotRule) -> str | None:
    """Why the first side of these pairs is not the faster one; None when it is."""
    one, other = sides[0][0].arm.value, sides[0][1].arm.value
    behind = [a.pair + 1 for a, b in sides if not _first(a, b)]
    if behind:
        return f"{one} did not reach the target before {other} in pair {', '.join(map(str, behind))}"
    ratio = median([_bound(a) / _bound(b) for a, b in sides])
    if ratio >= rule.threshold:
        return f"the median time ratio {one}/{other} {ratio:.2f} is not below {rule.threshold:g}"
    if _lower([a for a, _ in sides], [b for _, b in sides], rule.sigmas):
        return f"{one} was first in all pairs, but its final gain is lower than {other}'s"
    return None


def _first(a: PilotRun, b: PilotRun) -> bool:
    """Whether `a` reached the target, and `b` had not by then."""
    return a.reached_s is not None and a.reached_s < _bound(b)


def _lower(one: Sequence[PilotRun], other: Sequence[PilotRun], sigmas: float) -> bool:
    """Whether the median final gain of the first runs is below the others' by so many standard errors."""
    gap = median([run.gain for run in other]) - median([run.gain for run in one])
    error = math.hypot(*(median([run.error or 0.0 for run in runs]) for runs in (one, other)))
    return gap > sigmas * error


def _pairs(runs: Sequence[PilotRun]) -> list[Pair]:
    """The repetitions of which both runs are there, in order."""
    by_place = {(run.arm, run.pair): run for run in runs}
    numbers = sorted({run.pair for run in runs})
    both = ((by_place.get((Arm.PARALLEL, n)), by_place.get((Arm.SERIAL, n))) for n in numbers)
    return [(p, s) for p, s in both if p and s]


def _ratio(p: PilotRun, s: PilotRun) -> float | None:
    """The time of P by that of S; a bound where one is censored, None where both are or S took no time."""
    censored = p.reached_s is None and s.reached_s is None
    return None if censored or not _bound(s) else _bound(p) / _bound(s)


def _bound(run: PilotRun) -> float:
    """Its time to the target, or the time it was censored at."""
    return run.ended_s if run.reached_s is None else run.reached_s
