"""The chain over a campaign's rounds: from incumbent to incumbent, each step measured anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...workflows.gains import evaluation_text, gain_text
from ...workflows.model.round.trial import Scale
from ..round_chain import ChainRound
from ..talk import one_line
from .marks import cross, drawing, hint, label
from .markup import Html, el, join

GAP, LEFT, TOP, RISE = 170.0, 60.0, 60.0, 90.0

LEGEND = "each gain is the rerun's, below it that of all rounds so far; a cross: the round began from another incumbent"


@dataclass(frozen=True)
class _Stop:
    """A round with where it begins and ends: `total` is the gain of all rounds up to it, in the ledger's scale."""

    round: ChainRound
    x: float
    before: float
    total: float
    broken: bool


def rounds_chain(rounds: Sequence[ChainRound], current: str) -> Html:
    """The drawing; the round that is reported is named in bold. Nothing for a campaign's only round."""
    stops = list(_stops(rounds))
    if len(stops) < 2:
        return Html("")
    highest = max(*(stop.total for stop in stops), 1e-9)
    parts = [_stop(stop, highest, bold=stop.round.run == current) for stop in reversed(stops)]
    first = stops[0].round.incumbent
    root = (
        hint(f"incumbent {first}", el("circle", cx=LEFT, cy=_y(0.0, highest), r=9, class_="base")),
        label(first[:8], LEFT, _y(0.0, highest) + 26, "muted", "middle"),
    )
    width = LEFT + GAP * len(stops) + 70
    return drawing(width, TOP + RISE + 64, "incumbents of the campaign, round by round", *parts, *root)


def _stops(rounds: Sequence[ChainRound]) -> Iterator[_Stop]:
    total, head = 0.0, None
    for n, one in enumerate(rounds, 1):
        found = one.confirmed
        before, total = total, total + (found.gain or 0.0 if found else 0.0)
        yield _Stop(one, LEFT + GAP * n, before, total, broken=head is not None and one.incumbent != head)
        head = one.new_incumbent or one.incumbent


def _y(total: float, highest: float) -> float:
    return TOP + RISE * (1 - max(total, 0.0) / highest)


def _stop(stop: _Stop, highest: float, *, bold: bool) -> Html:
    one, x, y, begin = stop.round, stop.x, _y(stop.total, highest), _y(stop.before, highest)
    half, won = x - GAP / 2, one.new_incumbent is not None
    way = f"M{x - GAP:.1f} {begin:.1f}C{half:.1f} {begin:.1f} {half:.1f} {y:.1f} {x:.1f} {y:.1f}"
    scale = one.confirmed.scale if one.confirmed else Scale.LOG
    lines = (
        label(one_line(one.name, 18), x, y - 34, "strong" if bold else None, "middle"),
        label(evaluation_text(one.confirmed, one.metric) if won else "no gain", x, y - 18, "muted", "middle"),
        label(gain_text(stop.total, scale, one.metric) if won else "", x, y + 28, "strong", "middle"),
        label(one_line(", ".join(one.kept), 24), x, y + 44, "muted", "middle"),
    )
    return hint(
        f"round {one.name}: {one.why}",
        el("path", d=way, class_="way" if won else "left"),
        cross(x - GAP + 24, begin, 6) if stop.broken else join(),
        el("circle", cx=x, cy=y, r=9, class_="won" if won else "none"),
        *lines,
    )
