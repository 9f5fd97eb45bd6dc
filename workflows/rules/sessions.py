"""Sessions: whose conversation each candidate of the next iteration takes up, per lineage; no two ever share one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..model.candidate import Candidate
from ..model.outcome import SESSION_ID, Account, Outcome, OutcomeKind, Session, SessionMode
from ..model.usage import Usage

FRESH = "fresh"

_PLACEHOLDER = re.compile(r"unknown|none|null|undefined|default|0{8}-0{4}", re.IGNORECASE)
"""Ids that stand for no session."""


@dataclass(frozen=True)
class Start:
    """How a candidate's agent begins.

    Attributes:
        agent: the agent's spec.
        session: the conversation to take up; None to begin anew.
        fork: whether to branch off from it under a new id.
        origin: the same in words.
    """

    agent: str
    session: Session | None = None
    fork: bool = False
    origin: str = FRESH


def starts(lead: Candidate | None, mode: SessionMode, agents: Mapping[int, str]) -> dict[int, Start]:
    """How each candidate begins, by its index.

    `continue`: the first candidate with the winner's kind of agent goes on in the winner's session, the others of its
    kind branch off; `fork`: all of its kind branch off. Another kind of agent begins anew, and so does everybody when
    there is no session worth taking up. (An agent that cannot branch off begins anew, too: its host says so.)

    Args:
        lead: the candidate whose tree is the head; None while that is the baseline's.
        mode: what the run was asked for.
        agents: the spec of each candidate.
    """
    if lead is None or mode is SessionMode.FRESH:
        return {index: Start(spec) for index, spec in agents.items()}
    session, why = _session(lead)
    if session is None:
        return {index: Start(spec, origin=f"{FRESH}: {why}") for index, spec in agents.items()}
    kin = [index for index in sorted(agents) if kind(agents[index]) == session.agent]
    heir = kin[0] if kin and mode is SessionMode.CONTINUE else None
    return {
        index: _taking_up(session, spec, fork=index != heir)
        if index in kin
        else Start(spec, origin=f"{FRESH}: the winner was another agent, {session.agent}")
        for index, spec in agents.items()
    }


def _taking_up(session: Session, spec: str, *, fork: bool) -> Start:
    return Start(spec, session, fork=fork, origin=f"{'forked from' if fork else 'continues'} {session.attempt}")


def _session(lead: Candidate) -> tuple[Session | None, str]:
    """The winner's session, or why it is none to take up."""
    name = lead.attempt.name
    if lead.outcome is not None and lead.outcome.kind is OutcomeKind.CONTEXT_FULL:
        return None, f"the context of {name} is full"
    if not lead.session:
        return None, f"{name} named no session"
    session = own_session(lead.agent, lead.session, name, lead.session_used)
    return session, "" if session else f"{name} named no sound session"


def own_session(spec: str, name: str, attempt: str, used: Usage | None) -> Session | None:
    """The session an attempt's agent named, if its name can stand for one."""
    if not re.fullmatch(SESSION_ID, name) or _PLACEHOLDER.search(name):
        return None
    return Session(agent=kind(spec), id=name, attempt=attempt, used=used or Usage())


def worth_anew(session: Session, attempt: str, outcome: Outcome, account: Account | None) -> bool:
    """Whether a launch failed by the session it took up: it crashed before its first turn, or inherited a full one.

    Args:
        session: what it was to take up.
        attempt: the name of the attempt that launched it.
        outcome: what became of it.
        account: what it told.
    """
    if outcome.kind is OutcomeKind.CONTEXT_FULL:
        return session.attempt != attempt
    return outcome.kind is OutcomeKind.CRASHED and account is not None and not account.turns


def kind(spec: str) -> str:
    """The agent's name in a spec, without model and settings."""
    return re.split(r"[:,]", spec, maxsplit=1)[0].strip()
