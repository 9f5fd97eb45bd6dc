"""A round as Markdown for the Web UI: lanes, tickets and the composition, with what decided. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from .details import MAX_CHARS, agent_label, reason_text
from .gains import UNKNOWN, evaluation_text, gain_text, noise_text, ratio_text
from .markdown import cell, code, table
from .model.round.lane_view import LaneView, TicketView
from .model.round.ticket import TicketState
from .model.round.view import DeviceState, DeviceView, RoundPhase, RoundView
from .model.view import UsageView

LANES = ("lane", "plane", "agent", "state", "attempts", "tickets", "best", "cost")
TICKETS = ("ticket", "state", "gain", "waited", "why")
STEPS = ("step", "lane", "result", "alone", "here", "ratio (log)")

OWN = frozenset({RoundPhase.CALIBRATING, RoundPhase.COMPOSING})
"""When device sets are held without any ticket."""


def round_details(view: RoundView) -> str:
    """Render a round: status, noise, devices, lanes, composition, and the newest tickets that fit."""
    blocks = ["\n\n".join(_head(view))]
    if view.lanes:
        blocks.append(table(LANES, (_lane(view, lane) for lane in view.lanes)))
    if view.steps:
        blocks.append("### Composition\n\n" + table(STEPS, _steps(view)))
    blocks += [f"rerun: {line}" for line in _reruns(view)]
    text = "\n\n".join(blocks)
    return f"{text}\n\n### Tickets\n\n{_newest(view, MAX_CHARS - len(text))}" if view.tickets else text


def _newest(view: RoundView, room: int) -> str:
    """The newest tickets that fit, oldest first."""
    kept: list[tuple[str, ...]] = []
    for ticket in sorted(view.tickets, key=lambda one: one.at, reverse=True):
        each = _ticket(view, ticket)
        room -= sum(len(part) + 5 for part in each) + 5
        if room < 0 and kept:
            break
        kept.insert(0, each)
    missing = len(view.tickets) - len(kept)
    more = f"\n\n({missing} earlier tickets: `orch show {view.id}`)" if missing else ""
    return table(TICKETS, kept) + more


def _head(view: RoundView) -> Iterator[str]:
    why = f": {reason_text(view.reason)}" if view.reason else f": {view.phase.value}"
    yield f"**{view.status}**{why}"
    if view.plan_digest and view.incumbent:
        where = f"incumbent `{view.incumbent[:12]}`, plan `{view.plan_digest[:12]}`"
        yield f"round {view.round} of campaign {view.campaign}, {where}"
    if view.noise:
        yield f"noise of a pair: {cell(noise_text(view.noise, view.metric), 100)}"
    yield _queue(view)
    yield from (f"warning: {cell(warning, 200)}" for warning in view.warnings)
    if view.new_incumbent:
        gain = cell(evaluation_text(view.confirmed, view.metric), 60)
        yield f"new incumbent `{view.new_incumbent[:12]}`: {gain}"
    elif view.decided:
        yield "the incumbent stays"
    if view.record and view.record.moved:
        yield f"the campaign had moved on to `{view.record.moved[:12]}` meanwhile: this incumbent was not taken"
    if view.promoted:
        branch, refused = view.promoted.branch, view.promoted.refused
        where = f"branch {cell(branch, 200)}" if branch else view.promoted.mode.value
        yield f"not promoted to {where}: {reason_text(refused)}" if refused else f"promoted to {where}"


def _queue(view: RoundView) -> str:
    paused = f"paused ({cell(view.queue.why, 200)}), " if view.queue.paused else ""
    devices = "; ".join(_device(view, device) for device in view.devices)
    return f"queue: {paused}{view.queue.length} waiting" + (f"; {devices}" if devices else "")


def _device(view: RoundView, device: DeviceView) -> str:
    what = {
        DeviceState.IDLE: "",
        DeviceState.MEASURING: f" {device.ticket or 'the incumbent against itself'}",
        DeviceState.WAITING: f" with {device.ticket}: {cell(device.why, 100)}",
        DeviceState.PAUSED: f": {cell(device.why, 100)}",
    }[device.state]
    busy = "" if device.busy is None else f", held {device.busy:.0%} of the time"
    silent = view.phase in OWN or view.ended_at
    state = "" if device.state is DeviceState.IDLE and silent else f" {device.state.value}"
    return f"{device.name}{state}{what}{busy}"


def _lane(view: RoundView, lane: LaneView) -> tuple[str, ...]:
    begun = "not begun" if lane.deadline is None else lane.state.value
    state = lane.end.value.replace("_", " ") if lane.end else begun
    best = lane.best
    return (
        f"{'★ ' if lane.kept else ''}{lane.id}",
        lane.plane,
        code(agent_label(lane.agent), 60),
        state,
        f"{len(lane.attempts)}/{lane.max_attempts}",
        f"{len(lane.tickets)}/{lane.max_submissions}",
        cell(evaluation_text(best.evaluation if best else None, view.metric), 60),
        _cost(lane.usage),
    )


def _steps(view: RoundView) -> Iterator[tuple[str, ...]]:
    for number, step in enumerate(view.steps, 1):
        scale = step.evaluation.scale
        ratio = ratio_text(step.interaction, step.interaction_log)
        here = cell(evaluation_text(step.evaluation, view.metric), 60)
        alone = cell(gain_text(step.alone, scale, view.metric), 60)
        yield str(number), step.lane, step.result.value, alone, here, ratio


def _reruns(view: RoundView) -> Iterator[str]:
    for rerun in view.reruns:
        found, scale = rerun.evaluation, rerun.evaluation.scale
        verdict = found.verdict.value.replace("_", " ")
        gain = cell(evaluation_text(found, view.metric), 60)
        promised = cell(gain_text(rerun.steps, scale, view.metric), 60)
        fallback = "the best lane alone, " if rerun.fallback else ""
        yield f"{fallback}{', '.join(rerun.lanes)}: {verdict}, {gain} (its steps had shown {promised})"


def _ticket(view: RoundView, ticket: TicketView) -> tuple[str, ...]:
    if ticket.state is TicketState.REJECTED and ticket.cause:
        state, why = "rejected", f"{ticket.cause.value.replace('_', ' ')}: {ticket.detail}"
    elif ticket.evaluation:
        state, why = ticket.evaluation.verdict.value.replace("_", " "), ticket.evaluation.why
    else:
        state, why = ticket.state.value, "put back: a device set was busy" if ticket.put_back else ""
    gain = cell(evaluation_text(ticket.evaluation, view.metric), 60)
    wait = UNKNOWN if ticket.wait_s is None else f"{ticket.wait_s:.0f} s"
    return f"{'★ ' if ticket.picked else ''}{ticket.ticket}", state, gain, wait, cell(why, 160)


def _cost(usage: UsageView) -> str:
    parts = [f"${usage.usd:.2f}"] if usage.usd is not None else []
    parts += [f"{usage.tokens} tokens"] if usage.tokens is not None else []
    return ", ".join([*parts, f"{usage.wall_s:.0f} s"])
