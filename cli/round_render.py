"""A round's view to lines of text: lanes, tickets, queue and devices, the composition and what was measured anew."""

from __future__ import annotations

from collections.abc import Iterator

from ..workflows.gains import evaluation_text, gain_text, noise_text, ratio_text, unit_text
from ..workflows.model.round.lane_view import LaneView, TicketView
from ..workflows.model.round.plan import Direction
from ..workflows.model.round.view import DeviceState, DeviceView, RerunView, RoundPhase, RoundView, StepView
from ..workflows.round_details import OWN
from .durations import show_duration
from .render import agent_name, cost, fitted, promotion_lines
from .round_words import (
    CAUSES,
    VERDICTS,
    interaction_words,
    lane_words,
    round_next_step,
    round_sentence,
    step_words,
    ticket_words,
)
from .talk import clean, one_line, plural

LANES = ("", "lane", "plane", "agent", "attempts", "tickets", "best", "cost", "time", "state")
TICKETS = ("", "ticket", "gain", "in unit", "waited", "held", "state")
STEPS = ("step", "lane", "alone", "here", "ratio (log)", "head", "result")

SPARE_OF_LANES = ("agent", "time", "plane", "cost", "attempts")
SPARE_OF_TICKETS = ("in unit", "held", "waited")
SPARE_OF_STEPS = ("head", "alone")
"""Columns that a narrow terminal does without, the first one first."""


SHUT = {
    RoundPhase.PREPARING: "not open yet",
    RoundPhase.CALIBRATING: "not open yet: the incumbent is measured against itself",
    RoundPhase.COMPOSING: "over: the composition is measured",
    RoundPhase.RECORDING: "over",
}
"""What the queue is when it takes no tickets."""


def round_lines(view: RoundView, *, link: str = "", width: int = 0) -> list[str]:
    """The whole round: head, lanes, tickets, composition, result, and one `next:` line; of a `width`, 0 for any."""
    lines = [*_head(view, link), "", *queue_lines(view)]
    tables = {
        "lanes": lane_table(view, width),
        "tickets": ticket_table(view, width),
        "composition": step_table(view, width),
    }
    for title, table in tables.items():
        lines += ["", title, *table] if table else []
    lines += ["", *_result(view)]
    step = round_next_step(view)
    return [*lines, f"next: {step}"] if step else lines


def queue_lines(view: RoundView) -> list[str]:
    """The queue, and each device set: what it does, and how much of the time it was held."""
    devices = [_device(view, device) for device in view.devices]
    return devices if view.ended_at else [f"queue: {_queue(view)}", *devices]


def _queue(view: RoundView) -> str:
    if view.phase in SHUT:
        return SHUT[view.phase]
    state = f"paused: {one_line(view.queue.why, 120)}" if view.queue.paused else "running"
    return f"{state}, {plural(view.queue.length, 'ticket')} waiting"


def lane_table(view: RoundView, width: int = 0) -> list[str]:
    """One line per lane."""
    rows = [_lane(view, lane) for lane in view.lanes]
    return fitted([LANES, *rows], width, SPARE_OF_LANES, 18) if rows else []


def ticket_table(view: RoundView, width: int = 0, newest: int = 0) -> list[str]:
    """One line per ticket, in the order in which they came; `newest` is how many at most, 0 for all."""
    tickets = sorted(view.tickets, key=lambda ticket: ticket.at)[-newest:]
    rows = [_ticket(view, ticket) for ticket in tickets]
    return fitted([TICKETS, *rows], width, SPARE_OF_TICKETS, 30) if rows else []


def step_table(view: RoundView, width: int = 0) -> list[str]:
    """One line per step of the composition."""
    rows = [_step(view, number, step) for number, step in enumerate(view.steps, 1)]
    return fitted([STEPS, *rows], width, SPARE_OF_STEPS, 30) if rows else []


def round_summary(view: RoundView) -> str:
    """The closing line: what became of the round, in words and counts."""
    why = f": {round_sentence(view.reason)}" if view.reason else f": {view.phase.value}"
    counts = f"{plural(len(view.tickets), 'ticket')} of {plural(len(view.lanes), 'lane')}, cost {cost(view.usage)}"
    return f"{view.status.value}{why} · {counts}, {show_duration(view.device_hours * 3600)} on devices"


def _head(view: RoundView, link: str) -> Iterator[str]:
    yield f"{view.id}  {view.status.value}"
    digest = f", plan {view.plan_digest[:12]}" if view.plan_digest else ""
    yield f"round: {view.round} of campaign {view.campaign}{digest}"
    yield f"tree: {clean(view.repo)}" + (f", incumbent {view.incumbent[:12]}" if view.incumbent else "")
    if view.metric and view.gates:
        better = "lower" if view.metric.direction is Direction.LOWER else "higher"
        gates = view.gates
        line = f" and {gates.rollback * 100:.3g}% of the value" if gates.rollback else ""
        yield f"metric: {view.metric.name} in {one_line(view.metric.unit)}, {better} is better"
        trials = f"{gates.pairs} pairs of {plural(gates.repetitions, 'run')}"
        yield f"gates: {trials}; a gain is at least {gates.sigmas:g} sigma{line}"
    if view.guards.measured:
        noise = noise_text(view.noise, view.metric) if view.noise else "unknown"
        failed = f", {view.guards.failed} failed" if view.guards.failed else ""
        yield f"noise of a pair: {noise} ({plural(view.guards.measured, 'A/A measurement')}{failed})"
    if view.sandbox is False:
        yield "sandbox: off"
    if link:
        yield f"web: {link}"
    for warning in view.warnings:
        yield f"warning: {one_line(warning)}"


def _device(view: RoundView, device: DeviceView) -> str:
    doing = {
        DeviceState.IDLE: "" if view.phase in OWN else "idle",
        DeviceState.MEASURING: f"measuring {device.ticket or 'the incumbent against itself'}",
        DeviceState.WAITING: f"waits with {device.ticket}: {one_line(device.why, 100)}",
        DeviceState.PAUSED: f"paused: {one_line(device.why, 100)}",
    }[device.state]
    ahead = f", next {device.ahead}" if device.ahead else ""
    busy = "" if device.busy is None else f", {device.busy:.0%} of the time since the first ticket"
    held = f"held {show_duration(device.held_s)} by {plural(device.measurements, 'measurement')}{busy}"
    now = f"{doing}{ahead}; " if doing and not view.ended_at else ""
    return f"device {device.name}: {now}{held}"


def _lane(view: RoundView, lane: LaneView) -> tuple[str, ...]:
    usage = lane.usage
    return (
        "★" if lane.kept else " ",
        lane.id,
        lane.plane,
        agent_name(lane.agent),
        f"{len(lane.attempts)}/{lane.max_attempts}",
        f"{len(lane.tickets)}/{lane.max_submissions}",
        evaluation_text(lane.best.evaluation, view.metric) if lane.best else "-",
        cost(usage) if usage.wall_s else "-",
        show_duration(usage.wall_s) if usage.wall_s else "-",
        lane_words(lane),
    )


def _ticket(view: RoundView, ticket: TicketView) -> tuple[str, ...]:
    found = ticket.evaluation
    return (
        "★" if ticket.picked else " ",
        ticket.ticket,
        evaluation_text(found, view.metric),
        unit_text(found.gain_unit, view.metric) if found else "-",
        "-" if ticket.wait_s is None else show_duration(ticket.wait_s),
        "-" if ticket.held_s is None else show_duration(ticket.held_s),
        ticket_words(ticket),
    )


def _step(view: RoundView, number: int, step: StepView) -> tuple[str, ...]:
    words = interaction_words(step)
    return (
        str(number),
        step.lane,
        gain_text(step.alone, step.evaluation.scale, view.metric),
        evaluation_text(step.evaluation, view.metric),
        ratio_text(step.interaction, step.interaction_log),
        step.commit[:12],
        step_words(step) + (f"; {words}" if words else ""),
    )


def _rerun(view: RoundView, rerun: RerunView) -> str:
    found = rerun.evaluation
    what = "the best lane alone" if rerun.fallback else "measured anew"
    gain = f"{evaluation_text(found, view.metric)}, {unit_text(found.gain_unit, view.metric)}"
    shown = {"steps": rerun.steps, "tickets": None if rerun.steps == rerun.tickets else rerun.tickets}
    told = [f"its {name} had shown {gain_text(sum_, found.scale, view.metric)}" for name, sum_ in shown.items() if sum_]
    bias = "".join(f"; {line}" for line in told)
    return f"{what}: {', '.join(rerun.lanes)}: {VERDICTS[found.verdict]}, {gain}{bias}"


def _result(view: RoundView) -> Iterator[str]:
    yield from (_rerun(view, rerun) for rerun in view.reruns)
    if view.rejects:
        words = {cause.value: text for cause, text in CAUSES.items()}
        yield "rejected: " + ", ".join(f"{words.get(cause, cause)} ({count})" for cause, count in view.rejects.items())
    yield round_summary(view)
    if view.new_incumbent:
        commits = plural(len(view.chain), "commit")
        yield f"new incumbent {view.new_incumbent[:12]}: {commits}, of {', '.join(view.composed)}"
    elif view.decided:
        yield f"the incumbent {(view.incumbent or '')[:12]} stays"
    if view.record and view.record.moved:
        yield f"the campaign had moved on to {view.record.moved[:12]} meanwhile: this incumbent was not taken"
    yield from promotion_lines(view.promoted)
