"""The chain over a campaign's rounds: from incumbent to incumbent, each step measured anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...workflows.gains import evaluation_text, gain_text
from ...workflows.model.round.trial import Scale
from ...workflows.model.round.view import RoundView
from ..round_words import round_sentence
from ..talk import one_line
from .marks import cross, drawing, hint, label
from .markup import Html, el, join

GAP, LEFT, TOP, RISE = 170.0, 60.0, 60.0, 90.0

LEGEND = "each gain is the rerun's, below it that of all rounds so far; a cross: the round began from another incumbent"


@dataclass(frozen=True)
class _Stop:
    """A round with where it begins and ends: `total` is the gain of all rounds up to it, in the ledger's scale."""

    view: RoundView
    x: float
    before: float
    total: float
    broken: bool


def rounds_chain(rounds: Sequence[RoundView], current: str) -> Html:
    """The drawing; the round that is reported is named in bold. Nothing when no round was decided."""
    stops = list(_stops([view for view in rounds if view.decided]))
    if not stops:
        return Html("")
    highest = max(*(stop.total for stop in stops), 1e-9)
    parts = [_stop(stop, highest, bold=stop.view.id == current) for stop in reversed(stops)]
    first = stops[0].view.incumbent or ""
    root = (
        hint(f"incumbent {first}", el("circle", cx=LEFT, cy=_y(0.0, highest), r=9, class_="base")),
        label(first[:8], LEFT, _y(0.0, highest) + 26, "muted", "middle"),
    )
    width = LEFT + GAP * len(stops) + 70
    return drawing(width, TOP + RISE + 64, "incumbents of the campaign, round by round", *parts, *root)


def _stops(rounds: Sequence[RoundView]) -> Iterator[_Stop]:
    total, head = 0.0, None
    for n, view in enumerate(rounds, 1):
        found = view.confirmed
        before, total = total, total + (found.gain or 0.0 if found else 0.0)
        yield _Stop(view, LEFT + GAP * n, before, total, broken=head is not None and view.incumbent != head)
        head = view.new_incumbent or view.incumbent


def _y(total: float, highest: float) -> float:
    return TOP + RISE * (1 - max(total, 0.0) / highest)


def _stop(stop: _Stop, highest: float, *, bold: bool) -> Html:
    view, x, y, begin = stop.view, stop.x, _y(stop.total, highest), _y(stop.before, highest)
    half, won = x - GAP / 2, view.new_incumbent is not None
    way = f"M{x - GAP:.1f} {begin:.1f}C{half:.1f} {begin:.1f} {half:.1f} {y:.1f} {x:.1f} {y:.1f}"
    kept = [lane.id for lane in view.lanes if lane.kept]
    about = f"round {view.round}: {round_sentence(view.reason) if view.reason else view.phase.value}"
    scale = view.confirmed.scale if view.confirmed else Scale.LOG
    lines = (
        label(one_line(view.round, 18), x, y - 34, "strong" if bold else None, "middle"),
        label(evaluation_text(view.confirmed, view.metric) if won else "no gain", x, y - 18, "muted", "middle"),
        label(gain_text(stop.total, scale, view.metric) if won else "", x, y + 28, "strong", "middle"),
        label(one_line(", ".join(kept), 24), x, y + 44, "muted", "middle"),
    )
    return hint(
        about,
        el("path", d=way, class_="way" if won else "left"),
        cross(x - GAP + 24, begin, 6) if stop.broken else join(),
        el("circle", cx=x, cy=y, r=9, class_="won" if won else "none"),
        *lines,
    )
