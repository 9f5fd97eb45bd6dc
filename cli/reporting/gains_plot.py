"""Gains with their errors on one axis: tickets, steps and reruns, against zero and the rollback line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...workflows.gains import evaluation_text, share
from ...workflows.model.round.plan import Direction
from ...workflows.model.round.trial import Evaluation, Scale
from ...workflows.model.round.view import RoundView
from ..round_words import VERDICTS
from .axes import Axis
from .marks import drawing, evaluation_mark, hint, label
from .markup import Html, el, join

WIDTH, ROW, TOP, LEFT, RIGHT = 1000.0, 24.0, 30.0, 300.0, 850.0
MOST = 60
"""Tickets that are drawn; of more the picks and the newest."""


@dataclass(frozen=True)
class _Line:
    """One evaluation under its name; `strong` are those that decided."""

    name: str
    evaluation: Evaluation
    strong: bool = False


def gains_plot(view: RoundView) -> Html:
    """The drawing; nothing when nothing was measured."""
    lines = [line for line in _lines(view) if line.evaluation.gain is not None]
    if not lines or view.gates is None:
        return Html("")
    sigmas, bounds = view.gates.sigmas, []
    for line in lines:
        low, high = _range(view, line.evaluation, sigmas)
        bounds += [low, high]
    axis = Axis.over(min(*bounds, 0.0), max(*bounds, 0.0), LEFT, RIGHT)
    bottom = TOP + ROW * len(lines)
    percent = lines[0].evaluation.scale is Scale.LOG
    return drawing(
        WIDTH,
        bottom + 28,
        "gains with their errors",
        axis.grid(TOP - 10, bottom, _percent if percent else _number),
        _rollback(view, axis, bottom) if percent else Html(""),
        *(_row(view, axis, line, TOP + ROW * (n + 0.5), sigmas) for n, line in enumerate(lines)),
    )


def _percent(value: float) -> str:
    return f"{value:+.{0 if abs(value * 100 - round(value * 100)) < 1e-6 else 1}%}" if value else "0"


def _number(value: float) -> str:
    return f"{value:+.3g}" if value else "0"


def _lines(view: RoundView) -> Iterator[_Line]:
    tickets = [ticket for ticket in view.tickets if ticket.evaluation]
    newest = {ticket.ticket for ticket in sorted(tickets, key=lambda ticket: ticket.at)[-MOST:]}
    for ticket in tickets:
        if ticket.evaluation and (ticket.picked or ticket.ticket in newest):
            yield _Line(ticket.ticket, ticket.evaluation, ticket.picked)
    for step in view.steps[1:]:
        yield _Line(f"{step.lane} on the head before it", step.evaluation)
    for rerun in view.reruns:
        yield _Line(f"measured anew: {', '.join(rerun.lanes)}", rerun.evaluation, strong=True)


def _range(view: RoundView, found: Evaluation, sigmas: float) -> tuple[float, float]:
    """The gain less and plus what would have counted as one, as the axis has it."""
    gain, error = found.gain or 0.0, sigmas * (found.error or 0.0) if found.needed is None else found.needed
    return _value(view, found, gain - error), _value(view, found, gain + error)


def _value(view: RoundView, found: Evaluation, gain: float) -> float:
    if found.scale is Scale.DIFFERENCE:
        return gain
    return share(gain, view.metric.direction if view.metric else Direction.LOWER)


def _rollback(view: RoundView, axis: Axis, bottom: float) -> Html:
    line = view.gates.rollback if view.gates else 0.0
    if not line:
        return Html("")
    x = axis.at(line)
    return hint(f"gains below {line:.3g} are not kept", el("path", d=f"M{x:.1f} {TOP - 10}V{bottom}", class_="left"))


def _row(view: RoundView, axis: Axis, line: _Line, y: float, sigmas: float) -> Html:
    found = line.evaluation
    low, high = (axis.at(value) for value in _range(view, found, sigmas))
    x = axis.at(_value(view, found, found.gain or 0.0))
    kind = "bar" if found.passed else "bar worse" if (found.gain or 0) < 0 else "bar none"
    bar = el("path", d=f"M{low:.1f} {y - 4:.1f}v8M{low:.1f} {y:.1f}H{high:.1f}M{high:.1f} {y - 4:.1f}v8", class_=kind)
    strong = "strong" if line.strong else None
    return hint(
        f"{line.name}: {VERDICTS[found.verdict]}; {found.why}",
        label(_fit(line.name), LEFT - 14, y + 4, strong, "end"),
        join(bar, evaluation_mark(found, x, y, 5)),
        label(evaluation_text(found, view.metric), RIGHT + 14, y + 4, strong),
    )


def _fit(name: str, most: int = 44) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
