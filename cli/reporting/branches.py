"""The branch layout of a round: lanes from one incumbent, tickets as points, the composition as a chain beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...workflows.gains import evaluation_text, gain_text, ratio_text
from ...workflows.model.round.composition import StepResult
from ...workflows.model.round.lane_view import LaneView
from ...workflows.model.round.view import RerunView, RoundView, StepView
from ..round_words import VERDICTS, lane_words, ticket_words
from ..talk import one_line
from .marks import cross, drawing, evaluation_mark, hint, label, ticket_mark
from .markup import Html, el, join

WIDTH, ROW, TOP = 1000.0, 68.0, 64.0
ROOT, BEGIN, FIRST, LAST, CHAIN = 40.0, 110.0, 260.0, 700.0, 772.0
"""Columns: the incumbent, where lanes begin, the first and last ticket, the chain."""


@dataclass(frozen=True)
class _Row:
    """A lane with its place, and its step where it has one."""

    lane: LaneView
    y: float
    step: StepView | None


def branches(view: RoundView) -> Html:
    """The drawing; lanes stand in the order of composition, those without a step below."""
    rows = _rows(view)
    if not rows:
        return Html("")
    end = TOP + ROW * len(rows)
    below = list(_outcome(view, end)) if view.steps or view.decided else []
    middle = (rows[0].y + rows[-1].y) / 2
    parts = [
        *(_branch(middle, row) for row in rows),
        _trunk(view, rows, middle, end),
        *(_link(view, row) for row in rows),
        *(_lane(view, row) for row in rows),
        *below,
        hint(f"incumbent {view.incumbent}", el("circle", cx=ROOT, cy=middle, r=9, class_="base")),
        label("incumbent", ROOT, middle + 26, "muted", "middle"),
    ]
    return drawing(WIDTH, end + ROW * len(below) - 16, f"lanes and composition of round {view.round}", *parts)


def _rows(view: RoundView) -> list[_Row]:
    steps = {step.lane: step for step in view.steps}
    order = [step.lane for step in view.steps]
    lanes = sorted(view.lanes, key=lambda lane: order.index(lane.id) if lane.id in order else len(order))
    return [_Row(lane, TOP + ROW * n, steps.get(lane.id)) for n, lane in enumerate(lanes)]


def _branch(middle: float, row: _Row) -> Html:
    half = (ROOT + BEGIN) / 2
    way = f"M{ROOT} {middle:.1f}C{half} {middle:.1f} {half} {row.y} {BEGIN} {row.y}H{_end(row.lane)}"
    return el("path", d=way, class_="track")


def _end(lane: LaneView) -> float:
    """Where the line of a lane stops: at its last ticket."""
    return _places(lane)[-1] if lane.tickets else FIRST - 20


def _places(lane: LaneView) -> list[float]:
    """Where a lane's tickets stand."""
    gap = min(108.0, (LAST - FIRST) / max(len(lane.tickets) - 1, 1))
    return [FIRST + gap * n for n in range(len(lane.tickets))]


def _lane(view: RoundView, row: _Row) -> Html:
    lane, y = row.lane, row.y
    name = el(
        "text",
        el("tspan", one_line(lane.id, 20), class_="strong"),
        el("tspan", f"  {one_line(lane.plane, 16)}", class_="muted"),
        x=BEGIN,
        y=y - 12,
    )
    places = _places(lane)
    near = len(places) > 1 and places[1] - places[0] < 52
    marks = [
        hint(f"{ticket.ticket}: {ticket_words(ticket)}", ticket_mark(ticket, x, y))
        for ticket, x in zip(lane.tickets, places, strict=True)
    ]
    gains = [
        label(gain_text(ticket.evaluation.gain, ticket.evaluation.scale, view.metric), x, y + 24, None, "middle")
        for ticket, x in zip(lane.tickets, places, strict=True)
        if ticket.evaluation and ticket.evaluation.gain is not None and (ticket.picked or not near)
    ]
    silent = None if lane.tickets else label(one_line(lane_words(lane), 50), FIRST - 8, y + 4, "muted")
    return join(hint(f"{lane.id}: {lane.entry}; {lane_words(lane)}", name), silent, marks, gains)


def _link(view: RoundView, row: _Row) -> Html:
    """From a lane's pick to its step in the chain."""
    step, lane, y = row.step, row.lane, row.y
    if step is None:
        return Html("")
    picked = (x for ticket, x in zip(lane.tickets, _places(lane), strict=True) if ticket.ticket == step.ticket)
    begin = next(picked, FIRST)
    texts = (
        label(line, CHAIN + 22, y - 3 + 17 * n, ("strong", "muted")[n]) for n, line in enumerate(_told(view, step))
    )
    about = f"step with {lane.id}: {VERDICTS[step.evaluation.verdict]}; {step.evaluation.why}"
    if step.result is StepResult.SKIPPED:
        way = el("path", d=f"M{begin:.1f} {y}H{CHAIN - 30}", class_="left")
        return hint(about, way, cross(CHAIN - 22, y, 6), *texts)
    way = el("path", d=f"M{begin:.1f} {y}H{CHAIN}", class_="way")
    return hint(about, way, el("circle", cx=CHAIN, cy=y, r=8, class_="node"), *texts)


def _told(view: RoundView, step: StepView) -> tuple[str, str]:
    """A step in two lines: what it gained on the head before, and its interaction ratio."""
    here = evaluation_text(step.evaluation, view.metric)
    if step.result is StepResult.FIRST:
        return here, "first: its ticket counts"
    ratio = ratio_text(step.interaction, step.interaction_log)
    return here, f"{step.result.value}, ratio {ratio}"


def _trunk(view: RoundView, rows: Sequence[_Row], middle: float, end: float) -> Html:
    """The chain: from the incumbent over every head that was kept to what was decided; broken where a rerun failed."""
    if not view.steps and not view.decided:
        return Html("")
    top = rows[0].y - 44
    begin = f"M{ROOT} {middle - 9:.1f}V{top + 10}q0 -10 10 -10H{CHAIN - 10}q10 0 10 10"
    stops = [end + ROW * n for n in range(len(view.reruns) + view.decided)]
    holds = [True, *(rerun.evaluation.passed for rerun in view.reruns)]
    kept = [row.y for row in rows if row.step and row.step.result is not StepResult.SKIPPED]
    ways = [el("path", d=f"{begin}V{(kept or stops)[-1]}", class_="way" if kept else "left")]
    if kept:
        for above, below, solid in zip((kept[-1], *stops), stops, holds, strict=False):
            ways.append(el("path", d=f"M{CHAIN} {above}V{below}", class_="way" if solid else "left"))
    return join(ways)


def _outcome(view: RoundView, y: float) -> Iterator[Html]:
    """Below the lanes: each head that was measured anew, then what is the incumbent from here on."""
    for rerun in view.reruns:
        yield _rerun(view, rerun, y)
        y += ROW
    if not view.decided:
        return
    won = view.new_incumbent
    lines = (f"new incumbent {won[:12]}", f"of {', '.join(view.composed)}") if won else ()
    texts = lines or ("the incumbent stays", (view.incumbent or "")[:12])
    yield join(
        el("circle", cx=CHAIN, cy=y, r=10, class_="won" if won else "base"),
        label(texts[0], CHAIN + 22, y - 2, "strong"),
        label(one_line(texts[1], 34), CHAIN + 22, y + 15, "muted"),
    )


def _rerun(view: RoundView, rerun: RerunView, y: float) -> Html:
    found = rerun.evaluation
    what = "best lane alone" if rerun.fallback else "head"
    promised = gain_text(rerun.steps, found.scale, view.metric)
    lines = (f"{evaluation_text(found, view.metric)}", f"its steps had shown {promised}")
    return hint(
        f"{', '.join(rerun.lanes)}: {VERDICTS[found.verdict]}; {found.why}",
        el("circle", cx=CHAIN, cy=y, r=11, class_="base"),
        evaluation_mark(found, CHAIN, y, 5),
        label(f"{what} measured anew", CHAIN - 22, y + 4, "muted", "end"),
        label(lines[0], CHAIN + 22, y - 2, "strong"),
        label(lines[1], CHAIN + 22, y + 15, "muted"),
    )
