"""The tables of a round's report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...workflows.details import agent_label
from ...workflows.gains import UNKNOWN, error_text, evaluation_text, gain_text, noise_text, ratio_text, unit_text
from ...workflows.model.event import Event
from ...workflows.model.round import event as ev
from ...workflows.model.round.campaign import Revision
from ...workflows.model.round.lane_view import LaneView, TicketView
from ...workflows.model.round.plan import EntryStatus
from ...workflows.model.round.ticket import TicketState
from ...workflows.model.round.trial import Evaluation, Judgement, Measurement, Scale
from ...workflows.model.round.view import RoundView
from ..durations import show_duration
from ..render import cost
from ..round_words import VERDICTS, interaction_words, lane_words, step_words, ticket_words
from ..talk import one_line
from .markup import Child, Html, el, join
from .page import code, grouped, mark, table
from .samples import samples

KINDS = {
    Judgement.PASSED: "good",
    Judgement.REGRESSION: "bad",
    Judgement.INVALID: "bad",
    Judgement.UNEVALUABLE: "bad",
}


def lane_table(view: RoundView) -> Html:
    """One row per lane."""
    rows = [
        (
            el("b", lane.id) if lane.kept else lane.id,
            el("span", lane.entry, class_="keep"),
            lane.plane,
            lane.stage or UNKNOWN,
            el("code", agent_label(lane.agent), class_="agent"),
            f"{len(lane.attempts)}/{lane.max_attempts}",
            f"{len(lane.tickets)}/{lane.max_submissions}",
            evaluation_text(lane.best.evaluation, view.metric) if lane.best else UNKNOWN,
            cost(lane.usage) if lane.usage.wall_s else UNKNOWN,
            lane_words(lane),
        )
        for lane in view.lanes
    ]
    headings = ("lane", "entry", "plane", "stage", "agent", "attempts", "tickets", "best", "cost", "ended")
    return table(headings, rows, (5, 6, 7, 8))


def ticket_table(view: RoundView, events: Sequence[Event]) -> Html:
    """All tickets, lane by lane."""
    found = {event.ticket: event.measurement for event in events if isinstance(event, ev.TicketMeasured)}
    headings = ("ticket", "result", "gain", "in unit", "order effect", "waited", "held", "samples")
    groups = (
        (lane.id, [_ticket(view, ticket, found.get(ticket.ticket)) for ticket in lane.tickets]) for lane in view.lanes
    )
    return grouped(headings, groups, (2, 3, 4, 5, 6))


def _ticket(view: RoundView, ticket: TicketView, found: Measurement | None) -> tuple[Child, ...]:
    evaluation = ticket.evaluation
    return (
        code(ticket.ticket),
        _state(ticket),
        evaluation_text(evaluation, view.metric),
        unit_text(evaluation.gain_unit, view.metric) if evaluation else UNKNOWN,
        _order(view, evaluation),
        UNKNOWN if ticket.wait_s is None else show_duration(ticket.wait_s),
        UNKNOWN if ticket.held_s is None else show_duration(ticket.held_s),
        samples(found, view.metric),
    )


def _state(ticket: TicketView) -> Html:
    evaluation = ticket.evaluation
    if evaluation is None:
        kind = "bad" if ticket.state is TicketState.REJECTED else "open"
        word, _, rest = ticket_words(ticket).partition(": ")
        return join(mark(word, kind), " ", rest)
    kind = KINDS.get(evaluation.verdict, "plain")
    picked = join(" ", mark("picked", "open")) if ticket.picked else None
    why = None if evaluation.passed else el("div", one_line(evaluation.why, 200), class_="note")
    return el("div", mark(VERDICTS[evaluation.verdict], kind), picked, why, title=evaluation.why)


def _order(view: RoundView, found: Evaluation | None) -> str:
    """By how much the order of a pair changed the gain, as the error of a gain is shown."""
    if found is None or found.order_effect is None:
        return UNKNOWN
    return error_text(found.model_copy(update={"error": found.order_effect}), view.metric)


def step_table(view: RoundView) -> Html:
    """One row per step of the composition."""
    rows = [
        (
            str(number),
            step.lane,
            code(step.ticket),
            gain_text(step.alone, step.evaluation.scale, view.metric),
            evaluation_text(step.evaluation, view.metric),
            ratio_text(step.interaction, step.interaction_log),
            code(step.commit[:12]),
            join(step_words(step), _said(interaction_words(step))),
        )
        for number, step in enumerate(view.steps, 1)
    ]
    headings = ("step", "lane", "ticket", "alone", "here", "ratio (log)", "head", "result")
    return table(headings, rows, (0, 3, 4, 5))


def _said(words: str) -> Html | None:
    return el("div", words, class_="note") if words else None


def rerun_table(view: RoundView) -> Html:
    """What was promised for a head beside what it showed when it was measured anew."""
    rows = []
    for rerun in view.reruns:
        found, scale = rerun.evaluation, rerun.evaluation.scale
        rows.append(
            (
                join("best lane alone: " if rerun.fallback else "head: ", ", ".join(rerun.lanes)),
                gain_text(rerun.tickets, scale, view.metric),
                gain_text(rerun.steps, scale, view.metric),
                evaluation_text(found, view.metric),
                unit_text(found.gain_unit, view.metric),
                mark(VERDICTS[found.verdict], KINDS.get(found.verdict, "plain")),
            )
        )
    headings = ("measured anew", "its tickets had shown", "its steps had shown", "gain", "in unit", "result")
    return join(el("h3", "Measured anew"), table(headings, rows, (1, 2, 3, 4))) if rows else Html("")


def guard_table(view: RoundView, events: Sequence[Event]) -> Html:
    """The A/A measurements, with the noise that was known after each."""
    rows = [
        (
            event.at[11:19],
            event.measurement.device,
            mark("passed", "good") if event.result.passed else mark("failed", "bad"),
            noise_text(event.noise, view.metric) if event.noise else UNKNOWN,
            one_line(event.result.why, 200),
            samples(event.measurement, view.metric),
        )
        for event in events
        if isinstance(event, ev.GuardMeasured)
    ]
    return table(("at", "device set", "result", "noise from here on", "why", "samples"), rows)


def revision_table(view: RoundView, rows: Sequence[Revision]) -> Html:
    """One row per entry: what the campaign's record says of it since this round."""
    kinds = {EntryStatus.KEPT: "good", EntryStatus.REJECTED: "bad", EntryStatus.PLANNED: "open"}
    found = [
        (
            el("span", row.entry, class_="keep"),
            row.lane,
            mark(row.status.value, kinds[row.status]),
            gain_text(row.gain, _scale(view, row.ticket), view.metric),
            one_line(row.why, 300),
            one_line(row.condition, 200) or UNKNOWN,
        )
        for row in rows
    ]
    return table(("entry", "lane", "is now", "gain", "why", "condition"), found, (3,))


def _scale(view: RoundView, ticket: str) -> Scale:
    """The scale of a ticket's gain."""
    found = (one.evaluation.scale for one in view.tickets if one.ticket == ticket and one.evaluation)
    return next(found, Scale.LOG)


def attempt_rows(lane: LaneView) -> Iterator[tuple[Child, ...]]:
    """One row per launch of a lane's agent."""
    for attempt in lane.attempts:
        words = attempt.outcome.replace("_", " ") or attempt.state.value
        detail = f": {one_line(attempt.detail, 120)}" if attempt.detail else ""
        usage = attempt.usage
        yield (
            lane.id,
            str(attempt.ordinal),
            code(agent_label(lane.agent)),
            cost(usage) if usage.wall_s else UNKNOWN,
            show_duration(usage.wall_s) if usage.wall_s else UNKNOWN,
            f"{words}{detail}" + (f" ({attempt.exit})" if attempt.exit not in {"", "ok"} else ""),
        )
