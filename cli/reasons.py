"""Typed reasons to sentences, and the one `next:` step that can really help: the only place that knows these words."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from ..workflows.model.goal import is_url
from ..workflows.model.outcome import OutcomeKind
from ..workflows.model.reason import CandidateReason, Datum, PromotionReason, Reason, RunReason
from ..workflows.model.view import CandidateView, RunView
from .talk import one_line

RUN = {
    RunReason.DONE: "the whole ladder passes on the result",
    RunReason.ALREADY_GREEN: "the ladder was green before any agent ran: nothing to do",
    RunReason.PREFLIGHT_FAILED: "the run was refused before any agent started",
    RunReason.RUNG_CANNOT_RUN: "a rung cannot run on the unchanged tree",
    RunReason.SETUP_FAILED: "set-up fails on the unchanged tree",
    RunReason.TREE_BUSY: "another run promotes into the same tree",
    RunReason.SEAL_REJECTED: "the contract was rejected",
    RunReason.SEAL_WAITING: "the contract waits for approval",
    RunReason.ITERATION_CAP: "all iterations are used and the ladder is still red",
    RunReason.BUDGET_TOKENS: "the token budget is used up",
    RunReason.BUDGET_USD: "the money budget is used up",
    RunReason.DEADLINE: "the deadline has passed",
    RunReason.AGENT_UNUSABLE: "no agent of the run can work",
    RunReason.STUCK_NO_DIFF: "stuck: no agent changed anything",
    RunReason.STUCK_CRASHED: "stuck: every agent crashed, again and again",
    RunReason.STUCK_UNEVALUABLE: "stuck: no candidate could be measured",
    RunReason.STUCK_TIMEOUT: "stuck: agents ran out of time and changed nothing",
    RunReason.STUCK_OSCILLATION: "stuck: the trees go round in a circle",
    RunReason.STUCK_REPEAT: "stuck: the same failure again and again",
    RunReason.PROMOTION_REFUSED: "verified, but not promoted",
    RunReason.INCUMBENT_FAILS: "the incumbent itself cannot be measured",
    RunReason.TOO_NOISY: "the incumbent differs from itself: too noisy to measure anything",
    RunReason.NO_GAIN: "no gain was confirmed: the incumbent stays",
    RunReason.OVERTAKEN: "another round of the campaign had moved the incumbent meanwhile",
    RunReason.CANCELLED: "cancelled",
    RunReason.HOST_LOST: "the host was lost",
    RunReason.INTERNAL: "a fault of orch",
}
"""One sentence per way a run ends."""

CANDIDATE = {
    CandidateReason.WON: "won",
    CandidateReason.FEWER_RUNGS: "fewer rungs passed",
    CandidateReason.LOST_RUNGS: "broke rungs that passed before",
    CandidateReason.LESS_PROGRESS: "less progress inside the failing rungs",
    CandidateReason.VETOED: "vetoed by the reviewer",
    CandidateReason.UNCHANGED: "changed nothing",
    CandidateReason.COSTLIER: "as good, but costlier",
    CandidateReason.LATER_INDEX: "as good, but later in line",
    CandidateReason.UNEVALUABLE: "could not be measured",
    CandidateReason.NOT_STARTED: "the agent was not started",
    CandidateReason.CANCELLED: "cancelled",
}
"""One phrase per place in a ranking."""

OUTCOME = {
    OutcomeKind.DONE: "",
    OutcomeKind.NO_CHANGE: "",
    OutcomeKind.RATE_LIMITED: "the agent was rate limited",
    OutcomeKind.OVERLOADED: "the agent's provider was overloaded",
    OutcomeKind.NOT_AUTHORISED: "the agent is not authorised",
    OutcomeKind.OUT_OF_QUOTA: "the agent's quota is used up",
    OutcomeKind.CONTEXT_FULL: "the agent's context is full",
    OutcomeKind.TURN_LIMIT: "stopped at its turn limit",
    OutcomeKind.BUDGET_LIMIT: "stopped at its budget",
    OutcomeKind.REFUSED: "the model refused",
    OutcomeKind.EMPTY_ANSWER: "the agent said and did nothing",
    OutcomeKind.STREAM_BROKEN: "the agent's stream broke off",
    OutcomeKind.CRASHED: "the agent crashed",
    OutcomeKind.TIMED_OUT: "the agent timed out",
    OutcomeKind.RESOURCE_LIMIT: "stopped at a limit of the host",
    OutcomeKind.KILLED: "the agent was stopped",
    OutcomeKind.NOT_STARTED: "the agent did not start",
}
"""One phrase per way an agent's launch ends; none where there is nothing to tell."""

PROMOTION = {
    PromotionReason.EDITED: "paths of the result were edited meanwhile",
    PromotionReason.IN_PROGRESS: "a merge, rebase or the like is in progress",
    PromotionReason.BRANCH_EXISTS: "the branch exists",
    PromotionReason.BRANCH_INVALID: "not a valid branch name",
    PromotionReason.BUSY: "another run promotes into the same tree",
    PromotionReason.NO_SPACE: "no space on the disk",
    PromotionReason.NOT_WRITABLE: "the tree cannot be written",
    PromotionReason.UNSUPPORTED: "the result holds something that cannot be promoted",
}
"""One phrase per refusal of a promotion."""

DECIDED_BY = {
    "only": "the only contender",
    "evaluable": "it could be measured",
    "rungs": "more rungs passed",
    "lost_rungs": "broke fewer rungs",
    "progress": "more progress inside the failing rungs",
    "sign_off": "the reviewer's word",
    "changed": "it changed the tree",
    "cost": "lower cost",
    "index": "first in line among equals",
}
"""The keys of the tournament in words; an unknown key is shown as it is."""

_WITH_DATA = {
    CandidateReason.WON: "won: {decided_by}",
    CandidateReason.FEWER_RUNGS: "fewer rungs passed: {passed}, the winner {winner}",
    CandidateReason.LOST_RUNGS: "broke {lost} that passed before, the winner {winner}",
    CandidateReason.LESS_PROGRESS: "less progress inside the failing rungs: {progress}, the winner {winner}",
    CandidateReason.COSTLIER: "as good, but costlier: {cost} {unit}, the winner {winner}",
    CandidateReason.LATER_INDEX: "equal to candidate {winner}, which is first in line",
}

_SUGGEST = {
    RunReason.ALREADY_GREEN: "add a rung that fails today: --verify COMMAND",
    RunReason.RUNG_CANNOT_RUN: "run the rung by hand in a clean copy; add --setup or --carry for what it needs",
    RunReason.SETUP_FAILED: "orch logs {id}",
    RunReason.TREE_BUSY: "orch list, then wait for the other run, cancel it, or start with --promote none",
    RunReason.SEAL_WAITING: "orch approve {id}   (or: orch reject {id})",
    RunReason.SEAL_REJECTED: "mend the contract and start again",
    RunReason.ITERATION_CAP: "orch logs {id}, then start again with a higher --max-iterations or more candidates",
    RunReason.BUDGET_TOKENS: "start again with a higher --budget-tokens; the head is kept: orch diff {id}",
    RunReason.BUDGET_USD: "start again with a higher --budget-usd; the head is kept: orch diff {id}",
    RunReason.DEADLINE: "start again with a later --deadline; the head is kept: orch diff {id}",
    RunReason.AGENT_UNUSABLE: "orch agents, then mend the key, the login or the quota, and start again",
    RunReason.STUCK_NO_DIFF: "orch logs {id}: did the agent understand its prompt, may it write?",
    RunReason.STUCK_CRASHED: "orch logs {id}: the agent's own error",
    RunReason.STUCK_UNEVALUABLE: "orch logs {id}; a longer --rung-timeout may help",
    RunReason.STUCK_TIMEOUT: "start again with a longer --attempt-timeout",
    RunReason.STUCK_OSCILLATION: "orch diff {id}, then start again with a sharper goal or another --agent",
    RunReason.STUCK_REPEAT: "orch logs {id}, then start again with a sharper goal or another --agent",
    RunReason.PROMOTION_REFUSED: "mend that, then: orch promote {id}   (or: orch promote {id} --to branch:NAME)",
    RunReason.INCUMBENT_FAILS: "orch logs {id}",
    RunReason.TOO_NOISY: "keep other work off the host, and start again",
    RunReason.NO_GAIN: "orch show {id}",
    RunReason.OVERTAKEN: "orch check the plan again: its entries are planned again, on the new incumbent",
    RunReason.CANCELLED: "the candidates are kept: orch show {id}",
    RunReason.HOST_LOST: "orch doctor on that host, then start again",
    RunReason.INTERNAL: "orch ledger {id} and the worker's log (orch status) tell where it broke",
}


_MEND = {
    OutcomeKind.RATE_LIMITED: "start again later or with another --agent; a longer --attempt-timeout lets it wait",
    OutcomeKind.OVERLOADED: "start again later or with another --agent; a longer --attempt-timeout lets it wait",
    OutcomeKind.CONTEXT_FULL: "start again with a smaller goal, a model with a larger context, or --session fresh",
    OutcomeKind.TURN_LIMIT: "start again with a higher max-turns in --agent",
    OutcomeKind.BUDGET_LIMIT: "start again with a higher max-tokens, max-usd or --budget-…",
    OutcomeKind.REFUSED: "word the goal anew, or start again with another --agent",
    OutcomeKind.EMPTY_ANSWER: "orch logs {id} --raw, then start again with another model or --agent",
    OutcomeKind.STREAM_BROKEN: "mend the connection to the provider, then start again",
    OutcomeKind.CRASHED: "orch logs {id}: the agent's own error",
    OutcomeKind.RESOURCE_LIMIT: "orch logs {id}; if it needs that much, raise ORCH_LIMIT_PROCESSES, _MEMORY or _FILE",
    OutcomeKind.TIMED_OUT: "start again with a longer --attempt-timeout, or a higher idle in --agent",
}
"""What helps when every agent of the last iteration ended like this."""

_FRUITLESS = {RunReason.ITERATION_CAP, *(code for code in RunReason if code.value.startswith("stuck_"))}


def sentence(
    reason: Reason[RunReason] | Reason[CandidateReason] | Reason[PromotionReason],
    ends: Mapping[RunReason, str] = RUN,
) -> str:
    """A reason in words, with the facts behind it; `ends` are the words of a kind of run that has its own."""
    if isinstance(reason.code, CandidateReason) and reason.code in _WITH_DATA:
        data = {key: _datum(value) for key, value in reason.data.items()}
        data["decided_by"] = DECIDED_BY.get(data.get("decided_by", ""), data.get("decided_by", ""))
        with suppress(KeyError):
            return _WITH_DATA[reason.code].format(**data)
    own = ends.get(reason.code) if isinstance(reason.code, RunReason) else None
    words, facts = own or _words(reason.code), _facts(reason.data)
    return f"{words} ({facts})" if facts else words


def outcome_words(candidate: CandidateView) -> str:
    """What became of a candidate's agent, with what it said; empty when it simply ended."""
    words = OUTCOME[OutcomeKind(candidate.outcome)] if candidate.outcome else ""
    if words and candidate.resting_until is not None:
        words += f", goes on at {datetime.fromtimestamp(candidate.resting_until).astimezone():%H:%M:%S}"
    detail = one_line(candidate.outcome_detail, 120)
    return f"{words}: {detail}" if words and detail else words


def _words(code: RunReason | CandidateReason | PromotionReason) -> str:
    match code:
        case RunReason():
            return RUN[code]
        case CandidateReason():
            return CANDIDATE[code]
        case PromotionReason():
            return PROMOTION[code]


def _facts(data: Mapping[str, Datum]) -> str:
    shown = {key: value for key, value in data.items() if value not in (None, "", ())}
    return "; ".join(f"{key.replace('_', ' ')}: {_datum(value)}" for key, value in shown.items())


def _datum(value: Datum) -> str:
    match value:
        case None:
            return "unknown"
        case tuple():
            return ", ".join(one_line(item, 80) for item in value[:5]) + (" …" if len(value) > 5 else "")
        case float():
            return f"{value:.4g}"
        case _:
            return one_line(str(value), 200)


def next_step(view: RunView) -> str:
    """The one step that helps now; empty when nothing is to be done."""
    if view.status == "running":
        return f"orch watch {view.id}"
    if view.status == "waiting":
        return _SUGGEST[RunReason.SEAL_WAITING].format(id=view.id)
    if view.promoted is not None and view.promoted.tree is not None:
        return _promoted_step(view)
    if view.reason is None:
        return ""
    if view.reason.code is RunReason.DONE:
        return _result_step(view)
    return (_mend(view) or _SUGGEST.get(view.reason.code, "")).format(id=view.id)


def _mend(view: RunView) -> str:
    """What helps where all agents of the last iteration failed alike; empty when they did not, or did their work."""
    if view.reason is None or view.reason.code not in _FRUITLESS or not view.iterations:
        return ""
    outcomes = {candidate.outcome for candidate in view.iterations[-1].candidates}
    (outcome,) = outcomes if len(outcomes) == 1 else {""}
    return _MEND.get(OutcomeKind(outcome), "") if outcome else ""


def _result_step(view: RunView) -> str:
    if is_url(view.repo):
        return f"orch diff {view.id} | git apply, in a clone   (orch promote {view.id} says how to fetch the commits)"
    return f"orch diff {view.id}, then: orch promote {view.id}"


def _promoted_step(view: RunView) -> str:
    assert view.promoted is not None  # noqa: S101 - asked by the caller
    if view.promoted.branch:
        return f"git diff HEAD {view.promoted.branch}"
    return f"review with git diff, then commit   (or undo: orch restore {view.id})"
