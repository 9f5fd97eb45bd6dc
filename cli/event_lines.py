"""One line per event of a ledger, for a terminal that cannot redraw and for `orch ledger`. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from ..workflows.model import event as ev
from ..workflows.model.round.event import RoundStarted
from .durations import show_duration
from .reasons import DECIDED_BY, OUTCOME, sentence
from .render import agent_name
from .round_event_lines import round_line
from .round_words import round_sentence
from .talk import one_line, plural


def event_line(event: ev.Event, begun: ev.Event | None = None) -> str:
    """What happened, on one line; `begun` is the ledger's first event: it tells which kind of run this is."""
    if isinstance(begun, RoundStarted):
        return f"{event.at[11:19]}  {_in_round(event, begun)}"
    return f"{event.at[11:19]}  {_what(event)}"


def _in_round(event: ev.Event, begun: RoundStarted) -> str:
    if isinstance(event, ev.RunEnded):
        return f"{event.status}: {round_sentence(event.reason)}"
    return round_line(event, begun.plan.metric) or _what(event)


def _what(event: ev.Event) -> str:  # noqa: PLR0911 - one answer per kind of event
    match event:
        case ev.RunStarted():
            return f"run {event.run} started: {one_line(event.goal, 80)}"
        case ev.BaselineTaken():
            return f"baseline {event.tree[:12]} taken{', uncommitted edits included' if event.dirty else ''}"
        case ev.BaselineMeasured():
            return f"baseline measured: {event.verdict.rungs_passed} of {event.verdict.rungs_total} rungs pass"
        case ev.IterationStarted():
            return f"iteration {event.ordinal}: {plural(len(event.attempts), 'candidate')} from {event.tree[:12]}"
        case ev.AttemptStarted():
            return f"candidate {event.attempt.candidate}: {agent_name(event.agent)} started"
        case ev.CandidateMeasured():
            return _measured(event)
        case ev.AttemptReplaced():
            return f"candidate {event.attempt.candidate}: its host {event.lost.host} is lost, it begins anew elsewhere"
        case ev.IterationDecided():
            return _decided(event)
        case ev.RunEnded():
            return f"{event.status}: {sentence(event.reason)}"
        case _:
            return _other(event)


def _waiting(event: ev.AttemptWaiting) -> str:
    until = datetime.fromtimestamp(event.until, UTC)
    said = one_line(event.outcome.detail, 100)
    words = f"candidate {event.attempt.candidate}: {OUTCOME[event.outcome.kind]}, goes on at {until:%H:%M:%S}"
    return f"{words}: {said}" if said else words


def _measured(event: ev.CandidateMeasured) -> str:
    candidate = event.candidate
    took = show_duration(candidate.usage.wall_s)
    if candidate.verdict is None:
        why = candidate.failure.value.replace("_", " ") if candidate.failure else "no verdict"
        detail = one_line(candidate.failure_detail, 120)
        return f"candidate {candidate.index}: {why}" + (f": {detail}" if detail not in {"", why} else "")
    changed = plural(candidate.snapshot.changed if candidate.snapshot else 0, "path")
    return (
        f"candidate {candidate.index}: {candidate.verdict.rungs_passed} of {candidate.verdict.rungs_total} rungs pass, "
        f"{changed} changed, {took}"
    )


def _decided(event: ev.IterationDecided) -> str:
    winner = event.ranking.winner
    if winner == 0:
        return f"iteration {event.ordinal}: the head stays, no candidate is better"
    key = DECIDED_BY.get(event.ranking.decided_by, event.ranking.decided_by)
    return f"iteration {event.ordinal}: candidate {winner} won: {key}"


def _other(event: ev.Event) -> str:  # noqa: PLR0911 - one answer per kind of event
    match event:
        case ev.AttemptWaiting():
            return _waiting(event)
        case ev.AttemptResumed():
            return f"candidate {event.attempt.candidate}: {agent_name(event.agent)} goes on"
        case ev.SealRequested():
            return f"waiting for approval of contract {event.contract_digest[:12]}"
        case ev.SealDecided():
            return "contract approved" if event.decision.approved else "contract rejected"
        case ev.GateMeasured():
            return f"gate on {event.verdict.tree[:12]}: {'passed' if event.verdict.passed else 'red'}"
        case ev.HeadReviewed():
            word = "approved" if event.review.approved else "vetoed"
            return f"review: {word} {one_line(event.review.comment, 100)}".rstrip()
        case ev.NoteAdded():
            return f"note: {one_line(event.note.text, 100)}"
        case ev.RunExtended():
            raised = event.extension.model_dump(exclude_none=True)
            return "extended: " + ", ".join(f"{name} {value}" for name, value in raised.items())
        case ev.RunPromoted():
            return _promoted(event)
        case _:
            return event.type.replace("_", " ")


def _promoted(event: ev.RunPromoted) -> str:
    promotion = event.promotion
    if promotion.refused is not None:
        return f"not promoted to {promotion.target}: {sentence(promotion.refused)}"
    return f"promoted to {promotion.target}: {plural(promotion.paths, 'path')}"
