"""The report of a round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...workflows.gains import error_text, evaluation_text, gain_text, noise_text, unit_text
from ...workflows.model.event import Event
from ...workflows.model.round.campaign import Revision
from ...workflows.model.round.event import RoundStarted
from ...workflows.model.round.plan import Direction, RoundPlan
from ...workflows.model.round.ticket import TicketState
from ...workflows.model.round.view import RoundView
from ..durations import show_duration
from ..render import cost
from ..round_chain import ChainRound
from ..round_words import CAUSES, round_sentence
from ..talk import plural
from .branches import branches
from .gains_plot import gains_plot
from .marks import LEGEND
from .markup import Html, el, join
from .page import code, facts, figure, page, section, table, tile
from .round_tables import (
    attempt_rows,
    guard_table,
    lane_table,
    rerun_table,
    revision_table,
    step_table,
    ticket_table,
)
from .rounds_chain import LEGEND as ROUNDS
from .rounds_chain import rounds_chain
from .timeline import LEGEND as TIMES
from .timeline import timeline


@dataclass(frozen=True)
class RoundReport:
    """A round with its events, all known rounds of its campaign, and what the campaign's record says of this one."""

    view: RoundView
    events: Sequence[Event]
    rounds: Sequence[ChainRound] = ()
    revisions: Sequence[Revision] = ()


def round_page(report: RoundReport) -> str:
    """The whole file."""
    view = report.view
    told = f"run {view.id}, {'ended ' + view.ended_at if view.ended_at else 'as far as it has come'}"
    return page(f"round {view.round} of {view.campaign}", _header(view), _sections(report), f"{told} · made by orch")


def _header(view: RoundView) -> Html:
    confirmed = view.confirmed
    kind = "good" if view.new_incumbent else "open" if not view.ended_at else "plain"
    why = round_sentence(view.reason) if view.reason else f"the round goes on: {view.phase.value}"
    gain = f"{evaluation_text(confirmed, view.metric)}: {why}" if confirmed else why
    return el(
        "header",
        el("p", "Optimization round", class_="kicker"),
        el("h1", view.round, el("small", f" of campaign {view.campaign}")),
        el("p", gain, class_=f"verdict {kind}"),
        [el("p", f"warning: {warning}", class_="warning") for warning in (*view.warnings, *_overtaken(view))],
        el("dl", list(_tiles(view)), class_="tiles"),
    )


def _overtaken(view: RoundView) -> Iterator[str]:
    if view.record and view.record.moved:
        yield f"the campaign had moved on to {view.record.moved[:12]} meanwhile: this incumbent was not taken"


def _tiles(view: RoundView) -> Iterator[Html]:
    if confirmed := view.confirmed:
        error = error_text(confirmed, view.metric)
        below = f"±{error}; {unit_text(confirmed.gain_unit, view.metric)}, measured anew"
        yield tile("Gain", gain_text(confirmed.gain, confirmed.scale, view.metric), below)
    tickets = view.tickets
    measured, rejected = (
        sum(ticket.state is state for ticket in tickets) for state in (TicketState.MEASURED, TicketState.REJECTED)
    )
    yield tile("Tickets", str(len(tickets)), f"{measured} measured, {rejected} rejected")
    shares = [device.busy for device in view.devices if device.busy is not None]
    busy = f", held {sum(shares) / len(shares):.0%} of the time" if shares else ""
    yield tile("Devices", show_duration(view.device_hours * 3600), f"{plural(len(view.devices), 'set')}{busy}")
    attempts = sum(len(lane.attempts) for lane in view.lanes)
    money, _, tokens = cost(view.usage).partition(" ") if view.usage.usd is not None else (cost(view.usage), "", "")
    tried = f"{plural(attempts, 'attempt')} of {plural(len(view.lanes), 'lane')}"
    yield tile("Agents", money, f"{tokens}; {tried}" if tokens else tried)
    if view.noise:
        failed = f", {view.guards.failed} failed" if view.guards.failed else ""
        sigma, _, rest = noise_text(view.noise, view.metric).partition(" at ")
        of = f"of {rest.partition(',')[0]}; {plural(view.guards.measured, 'A/A measurement')}{failed}"
        yield tile("Noise of a pair", sigma, of)


def _sections(report: RoundReport) -> Iterator[Html]:
    view, events = report.view, report.events
    if drawing := branches(view):
        yield section("Lanes and composition", figure(drawing, LEGEND))
    yield section("Composition", step_table(view), rerun_table(view), note=RATIOS if view.steps else "")
    if drawing := gains_plot(view):
        yield section("Gains", figure(drawing, BARS))
    yield section("Lanes", lane_table(view))
    yield section("Tickets", ticket_table(view, events), note=SAMPLES if view.tickets else "")
    if drawing := timeline(view, events):
        yield section("Agents and devices", figure(drawing, TIMES), _devices(view))
    yield section("The incumbent against itself", guard_table(view, events))
    yield section("Attempts", _attempts(view))
    yield section("Rejected", _rejects(view))
    yield section("Search plan", revision_table(view, report.revisions), note=REVISIONS if report.revisions else "")
    if drawing := rounds_chain(report.rounds, view.id):
        yield section("Rounds of the campaign", figure(drawing, ROUNDS))
    started = next((event for event in events if isinstance(event, RoundStarted)), None)
    if started:
        yield section("Plan", _plan(view, started.plan))


RATIOS = (
    "Alone is the gain of the lane's ticket by itself, here its gain on the head before. Their ratio is near 1 where "
    "the lane is orthogonal to those before, well below where it chases the same bottleneck, above where they "
    "reinforce each other."
)
BARS = (
    "A bar that reaches zero is no gain: it is as long, to each side, as the least gain that the noise lets count. "
    "Dashed: the rollback line, below which no gain is kept."
)
REVISIONS = "Where the entries of the campaign's search plan stand after this round."
SAMPLES = "Each point is a run of the benchmark: the incumbent above, the candidate below, a stroke at the mean."


def _devices(view: RoundView) -> Html:
    rows = [
        (
            one.name,
            str(one.measurements),
            show_duration(one.held_s),
            "-" if one.busy is None else f"{one.busy:.0%}",
            noise_text(one.noise, view.metric) if one.noise else "-",
        )
        for one in view.devices
    ]
    return table(("device set", "measurements", "held", "of the time", "noise of a pair"), rows, (1, 2, 3))


def _attempts(view: RoundView) -> Html:
    rows = [row for lane in view.lanes for row in attempt_rows(lane)]
    return table(("lane", "attempt", "agent", "cost", "time", "ended"), rows, (1, 3, 4))


def _rejects(view: RoundView) -> Html:
    words = {cause.value: text for cause, text in CAUSES.items()}
    rows = [(words.get(cause, cause), str(count)) for cause, count in view.rejects.items()]
    return table(("cause", "tickets"), rows, (1,), narrow=True)


def _plan(view: RoundView, plan: RoundPlan) -> Html:
    better = "lower" if plan.metric.direction is Direction.LOWER else "higher"
    gates = plan.gates
    commands = plan.commands.model_dump(exclude_none=True)
    shown = facts(
        [
            ("metric", f"{plan.metric.name} in {plan.metric.unit}, {better} is better"),
            ("gates", f"{gates.pairs} pairs of {plural(gates.repetitions, 'run')}, {gates.sigmas:g} sigma"),
            ("rollback", f"{gates.rollback * 100:.3g}%"),
            ("incumbent", code(plan.incumbent)),
            ("digest", code(view.plan_digest or "")),
            ("composition", plan.composition),
            ("deadline", show_duration(plan.deadline_s)),
            ("protected", ", ".join(plan.protected) or "nothing"),
            ("sandbox", {True: "on", False: "off", None: "-"}[view.sandbox]),
        ]
    )
    lines = join([join(el("h3", name.strip("_")), el("pre", each["run"])) for name, each in commands.items()])
    return join(shown, lines)
