"""One line per event of a round's ledger. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from ..workflows.gains import evaluation_text, noise_text, ratio_text
from ..workflows.model.event import Event
from ..workflows.model.round import event as ev
from ..workflows.model.round.plan import Metric
from ..workflows.model.round.trial import Evaluation
from .durations import show_duration
from .reasons import OUTCOME
from .round_words import CAUSES, LANE_ENDS, VERDICTS
from .talk import one_line, plural


def round_line(event: Event, metric: Metric | None) -> str:
    """What happened; empty for an event that is no round's."""
    return _round(event) or _lane(event) or _ticket(event, metric) or _close(event, metric)


def _round(event: Event) -> str:  # noqa: PLR0911 - one answer per kind of event
    match event:
        case ev.RoundStarted():
            plan = event.plan
            return f"round {plan.id} of campaign {plan.campaign} started: {plural(len(plan.lanes), 'lane')}"
        case ev.RoundReady():
            return f"incumbent {event.incumbent[:12]} is there" + ("" if event.sandbox else ", without a sandbox")
        case ev.QueuePaused():
            return f"{event.device} paused: {one_line(event.why, 120)}"
        case ev.QueueResumed():
            return f"{event.device} measures tickets again"
        case ev.RoundDecided():
            if event.incumbent is None:
                return "the incumbent stays"
            return f"new incumbent {event.incumbent[:12]}, of {', '.join(event.lanes)}"
        case ev.RoundRecorded():
            return f"recorded: {event.record.path}, sha256 {event.record.sha256[:12]}"
        case _:
            return ""


def _lane(event: Event) -> str:  # noqa: PLR0911 - one answer per kind of event
    match event:
        case ev.LaneStarted():
            return f"lane {event.lane}: its workspace is opened"
        case ev.LaneReady():
            failed = event.opened.failed
            detail = one_line(event.opened.detail, 120)
            return f"lane {event.lane}: " + (f"{CAUSES[failed]}: {detail}" if failed else "its workspace stands")
        case ev.BindingReserved():
            return f"lane {event.lane}: attempt {event.binding.ordinal} reserved"
        case ev.BindingClaimed():
            return f"lane {event.lane}: attempt {event.ordinal} launched"
        case ev.BindingSettled():
            words = OUTCOME[event.outcome.kind] or "ended"
            return f"lane {event.lane}: attempt {event.ordinal}: {words}, {show_duration(event.usage.wall_s)}"
        case ev.BindingCancelled():
            return f"lane {event.lane}: attempt {event.ordinal} not launched: {one_line(event.why, 120)}"
        case ev.LaneWaiting():
            until, said = datetime.fromtimestamp(event.until, UTC), one_line(event.outcome.detail, 100)
            words = f"lane {event.lane}: {OUTCOME[event.outcome.kind]}, goes on at {until:%H:%M:%S}"
            return f"{words}: {said}" if said else words
        case ev.LaneResumed():
            return f"lane {event.lane}: goes on"
        case ev.LaneEnded():
            detail = one_line(event.detail, 120)
            return f"lane {event.lane}: {LANE_ENDS[event.end]}" + (f": {detail}" if detail else "")
        case _:
            return ""


def _ticket(event: Event, metric: Metric | None) -> str:  # noqa: PLR0911 - one answer per kind
    match event:
        case ev.TicketQueued():
            return f"{event.submission.ticket} queued: {plural(event.submission.files, 'file')}"
        case ev.TicketRejected():
            detail = one_line(event.detail, 120)
            return f"{event.ticket} rejected: {CAUSES[event.cause]}" + (f": {detail}" if detail else "")
        case ev.TicketTaken():
            return f"{event.ticket} taken to {event.device}, measurement {event.measurement}"
        case ev.DeviceTurned():
            what = f"at {event.ticket or 'the incumbent against itself'}" if event.measurement else "free"
            return f"{event.device} is {what}"
        case ev.TicketPutBack():
            return f"{event.ticket} put back: {event.device}: {one_line(event.why, 120)}"
        case ev.TicketMeasured():
            took = show_duration(event.measurement.held_s)
            return f"{event.ticket}: {_found(event.evaluation, metric)}, {event.measurement.device} held {took}"
        case ev.GuardMeasured():
            verdict = "passed" if event.result.passed else f"failed: {one_line(event.result.why, 120)}"
            noise = f", noise {noise_text(event.noise, metric)}" if event.noise else ""
            return f"incumbent against itself on {event.measurement.device}: {verdict}{noise}"
        case _:
            return ""


def _close(event: Event, metric: Metric | None) -> str:
    match event:
        case ev.PicksMade():
            picks = ", ".join(f"{pick.lane} {evaluation_text(pick.evaluation, metric)}" for pick in event.picks)
            return f"picked, in the order of composition: {picks}" if picks else "no lane has a ticket that passes"
        case ev.StepComposed():
            step = event.step
            ratio = "" if step.interaction is None else f", ratio {ratio_text(step.interaction, step.interaction_log)}"
            return f"lane {step.lane} {step.result.value}: {_found(step.evaluation, metric)}{ratio}"
        case ev.HeadRerun():
            what = "best lane alone" if event.rerun.fallback else "head"
            return f"{what} measured anew: {_found(event.rerun.evaluation, metric)}"
        case _:
            return ""


def _found(evaluation: Evaluation, metric: Metric | None) -> str:
    return f"{VERDICTS[evaluation.verdict]}, {evaluation_text(evaluation, metric)}"
