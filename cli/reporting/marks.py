"""The marks of tickets and steps: their form tells what they are, colour only repeats it."""

from __future__ import annotations

from ...workflows.model.round.lane_view import TicketView
from ...workflows.model.round.ticket import TicketState
from ...workflows.model.round.trial import Evaluation, Judgement
from .markup import Html, el, join

LEGEND = (
    "● a gain · ○ no gain · ▽ a regression · □ no result · ✕ rejected · • not measured yet; a ring: the lane's pick"
)


def ticket_mark(ticket: TicketView, x: float, y: float) -> Html:
    """The mark of a ticket at a place."""
    ring = el("circle", cx=x, cy=y, r=11, class_="ring") if ticket.picked else None
    if ticket.state is TicketState.REJECTED:
        return join(cross(x, y), ring)
    if ticket.evaluation is None:
        return join(el("circle", cx=x, cy=y, r=3, class_="a"), ring)
    return join(evaluation_mark(ticket.evaluation, x, y), ring)


def evaluation_mark(found: Evaluation, x: float, y: float, size: float = 6) -> Html:
    """The mark of what a measurement showed."""
    match found.verdict:
        case Judgement.PASSED:
            return el("circle", cx=x, cy=y, r=size, class_="gain")
        case Judgement.REGRESSION:
            points = f"{x - size:.1f},{y - size + 1:.1f} {x + size:.1f},{y - size + 1:.1f} {x:.1f},{y + size:.1f}"
            return el("polygon", points=points, class_="worse")
        case Judgement.INVALID | Judgement.UNEVALUABLE:
            side = 2 * size - 2
            return el("rect", x=x - size + 1, y=y - size + 1, width=side, height=side, class_="worse")
        case _:
            return el("circle", cx=x, cy=y, r=size, class_="none")


def cross(x: float, y: float, size: float = 5) -> Html:
    """What was thrown out."""
    way = (
        f"M{x - size:.1f} {y - size:.1f}l{2 * size:.1f} {2 * size:.1f}m0 {-2 * size:.1f}l{-2 * size:.1f} {2 * size:.1f}"
    )
    return el("path", d=way, class_="cross")


def label(text: str, x: float, y: float, class_: str | None = None, anchor: str | None = None) -> Html:
    """A text at a place."""
    return el("text", text, x=x, y=y, class_=class_, text_anchor=anchor)


def hint(text: str, *children: Html) -> Html:
    """Marks with a text that is shown when one points at them."""
    return el("g", el("title", text), *children)


def drawing(width: float, height: float, about: str, *children: Html) -> Html:
    """A drawing of its own size; it may shrink with the page, down to what can still be read."""
    view = f"0 0 {width:.0f} {height:.0f}"
    style = f"width:100%;min-width:{min(width, 720):.0f}px;max-width:{width:.0f}px"
    return el("svg", *children, viewBox=view, role="img", aria_label=about, style=style)
