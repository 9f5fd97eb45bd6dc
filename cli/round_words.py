"""What became of lanes, tickets and steps in words, and the step that helps after a round."""

from __future__ import annotations

from datetime import datetime

from ..workflows.model.reason import Reason, RunReason
from ..workflows.model.round.composition import StepResult
from ..workflows.model.round.lane import LaneEnd
from ..workflows.model.round.lane_view import LaneState, LaneView, TicketView
from ..workflows.model.round.ticket import Cause, TicketState
from ..workflows.model.round.trial import Judgement
from ..workflows.model.round.view import RoundView, StepView
from .reasons import sentence
from .talk import one_line

ENDS = {
    RunReason.DONE: "a new incumbent, measured anew and better than the old one",
    RunReason.NO_GAIN: "no gain was confirmed: the incumbent stays",
    RunReason.INCUMBENT_FAILS: "the incumbent itself cannot be measured",
    RunReason.TOO_NOISY: "the incumbent differs from itself: too noisy to measure anything",
    RunReason.PREFLIGHT_FAILED: "the round was refused before any agent started",
    RunReason.PROMOTION_REFUSED: "a new incumbent, but not promoted",
    RunReason.AGENT_UNUSABLE: "no agent of the round can work",
}
"""What an end means for a round, where it is not what it means for a goal."""

LANE_ENDS = {
    LaneEnd.DONE: "done",
    LaneEnd.DEADLINE: "its deadline passed",
    LaneEnd.ATTEMPTS: "all attempts used",
    LaneEnd.TOKENS: "token budget used",
    LaneEnd.USD: "money budget used",
    LaneEnd.NOT_OPENED: "no workspace",
    LaneEnd.AGENT_UNUSABLE: "its agent cannot work",
    LaneEnd.CANCELLED: "cancelled",
    LaneEnd.BROKEN: "a fault of orch",
}
LANE_STATES = {
    LaneState.WAITING: "not begun",
    LaneState.OPENING: "opening",
    LaneState.OPEN: "no agent at work",
    LaneState.WORKING: "agent at work",
    LaneState.RESTING: "waits for its provider",
    LaneState.ENDED: "over",
}
CAUSES = {
    Cause.MALFORMED: "malformed submission",
    Cause.HASH_MISMATCH: "content other than its hash",
    Cause.OUT_OF_SCOPE: "outside of its globs",
    Cause.PROTECTED: "a protected path",
    Cause.LINK_ESCAPES: "a link that leads out",
    Cause.SUBMODULE: "a submodule",
    Cause.GIT_PATH: "a path of git",
    Cause.CASE_COLLISION: "names that differ in case alone",
    Cause.OVERSIZE: "too large",
    Cause.NO_CHANGE: "no change",
    Cause.CAP: "past the lane's submissions",
    Cause.LANE_DEADLINE: "past the lane's deadline",
    Cause.ROUND_OVER: "past the round's end",
    Cause.SETUP_FAILED: "set-up failed",
    Cause.PROBE_FAILED: "the probe failed",
    Cause.BUILD_FAILED: "the build failed",
    Cause.SMOKE_FAILED: "the smoke test failed",
    Cause.TAMPERED: "it changed what it is measured by",
    Cause.HOST_FAULT: "the host failed",
}
VERDICTS = {
    Judgement.PASSED: "a gain",
    Judgement.NOT_MEASURED: "within the noise",
    Judgement.BELOW_ROLLBACK: "too small to keep",
    Judgement.REGRESSION: "a regression",
    Judgement.INCONCLUSIVE: "inconclusive",
    Judgement.INVALID: "a wrong result",
    Judgement.UNEVALUABLE: "could not be measured",
}
RESULTS = {StepResult.FIRST: "first", StepResult.ADDED: "added", StepResult.SKIPPED: "skipped"}
TICKET_STATES = {
    TicketState.QUEUED: "queued",
    TicketState.MEASURING: "measuring",
    TicketState.MEASURED: "measured",
    TicketState.REJECTED: "rejected",
}

SAME, ORTHOGONAL = 0.5, (0.8, 1.25)
"""Interaction ratios: below the first a lane lost most of its gain, between the others it kept it."""

_SUGGEST = {
    RunReason.NO_GAIN: "orch report {id} -o {id}.html shows what each lane tried; then plan other entries",
    RunReason.INCUMBENT_FAILS: "orch logs {id} --measurement 1, then mend the campaign's commands",
    RunReason.TOO_NOISY: "keep other work off the devices, pin processors, or raise the gates' pairs and repetitions",
    RunReason.OVERTAKEN: "plan the lanes again: they start from the new incumbent then",
    RunReason.DEADLINE: "plan a round with a later deadline, fewer lanes or fewer submissions",
    RunReason.AGENT_UNUSABLE: "orch agents, then mend the key, the login or the quota, and plan the next round",
    RunReason.PROMOTION_REFUSED: "mend that, then: orch promote {id}   (or: orch promote {id} --to branch:NAME)",
    RunReason.CANCELLED: "what was measured is kept: orch show {id}",
    RunReason.SETUP_FAILED: "orch logs {id} --measurement 1",
    RunReason.HOST_LOST: "orch doctor on that host, then plan the next round",
    RunReason.INTERNAL: "orch ledger {id} and the worker's log (orch status) tell where it broke",
}


def round_sentence(reason: Reason[RunReason]) -> str:
    """Why a round ended, with the facts behind it."""
    return sentence(reason, ENDS)


def round_title(view: RoundView) -> str:
    """What a list says of a round in the place of a goal."""
    return f"round {view.round} of campaign {view.campaign}"


def lane_words(lane: LaneView) -> str:
    """Where a lane is, or why it stopped."""
    never = lane.end is None and lane.deadline is None
    words = LANE_ENDS[lane.end] if lane.end else LANE_STATES[LaneState.WAITING if never else lane.state]
    if lane.resting_until is not None:
        words += f", goes on at {datetime.fromtimestamp(lane.resting_until).astimezone():%H:%M:%S}"
    detail = one_line(lane.detail, 80)
    return f"{words}: {detail}" if lane.end is not LaneEnd.DONE and detail else words


def ticket_words(ticket: TicketView) -> str:
    """Where a ticket is, what it showed, or why it was rejected."""
    if ticket.cause:
        detail = one_line(ticket.detail, 100)
        return f"rejected: {CAUSES[ticket.cause]}" + (f": {detail}" if detail else "")
    if ticket.evaluation:
        return VERDICTS[ticket.evaluation.verdict] + (", picked" if ticket.picked else "")
    words = TICKET_STATES[ticket.state]
    if ticket.state is TicketState.QUEUED and ticket.device and not ticket.put_back:
        return f"{words}, next on {ticket.device}"
    times = {1: "once", 2: "twice"}.get(ticket.put_back, f"{ticket.put_back} times")
    return f"{words}, put back {times}: {ticket.device} was busy" if ticket.put_back else words


def step_words(step: StepView) -> str:
    """What became of a lane in composition, and why."""
    if step.result is StepResult.FIRST:
        return "first: its ticket counts"
    return f"{RESULTS[step.result]}: {VERDICTS[step.evaluation.verdict]}"


def interaction_words(step: StepView) -> str:
    """What the interaction ratios say of a lane and those before it.

    Independent savings give 1 in the unit, independent factors 1 in log form, and both lie between the two forms.
    """
    ratios = [ratio for ratio in (step.interaction, step.interaction_log) if ratio is not None]
    if not ratios:
        return ""
    if max(ratios) < SAME:
        return "the same bottleneck as a lane before"
    if max(ratios) < ORTHOGONAL[0]:
        return "overlaps in part"
    return "orthogonal" if min(ratios) <= ORTHOGONAL[1] else "reinforced by the lanes before"


def round_next_step(view: RoundView) -> str:
    """The one step that helps now; empty when nothing is to be done."""
    if not view.ended_at and view.reason is None:
        return f"orch watch {view.id}"
    if view.promoted is not None and view.promoted.tree is not None:
        where = view.promoted.branch
        seen = f"git log -p {view.incumbent or ''}..{where}" if where else "review with git diff, then commit"
        return f"{seen}   (or plan the next round from there)"
    if view.reason is None:
        return ""
    if view.reason.code is RunReason.DONE:
        return f"orch diff {view.id}, then: orch promote {view.id} --to branch:NAME"
    return _SUGGEST.get(view.reason.code, "").format(id=view.id)
