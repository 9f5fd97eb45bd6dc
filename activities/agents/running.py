"""Run an agent in a place: prompt on stdin and by file, supervised, fenced, followed and read by its adapter."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf
from pathlib import Path

import structlog

from ...workflows.errors import RefusedError
from ...workflows.model.attempt import AgentReport
from ...workflows.model.exit import Exit, ExitKind
from ...workflows.model.outcome import Account, Outcome, OutcomeKind
from ...workflows.model.usage import Usage
from ...workflows.model.verdict import Excerpt
from ...workflows.rules.outcome import judge
from .. import supervisor
from ..effect import in_thread
from ..excerpts import clean, excerpt
from ..jobs import Job, Step, StepResult
from ..limits import StepLimits
from ..places import Grants, Place
from ..sandbox.registry import not_executed
from ..supervisor import Redactor
from ..workspaces.overlay import not_entered
from ..workspaces.registry import provider_of
from ..workspaces.removal import remove_tree
from . import resting, secrets, spending
from .adapter import AgentCall, Launch
from .following import Follower, Limits, stopped_for, to_its_end
from .preparing import AGENT, PRIVATE, PROMPT, AgentRun, lay_out, ordinal, prepare
from .prices import EMPTY, PriceTable, load_prices
from .registry import Agent, resolve

IDLE_S = 1800.0
"""Seconds of silence after which an agent that prints its events is stopped; a tool of its may take that long."""

ANSWER_LIMIT = 256 << 10
WORDS = 4096
"""Characters at the end of an answer of which its closing words are taken: escape sequences take room."""

LATE = "the deadline passed before it was launched"

log = structlog.get_logger()


@dataclass(frozen=True)
class Ran:
    """How a launch ended, what became of it, and the agent's whole answer."""

    report: AgentReport
    outcome: Outcome
    answer: str = ""


async def run_supervised(run: AgentRun) -> Ran:
    """Start the agent under its supervisor, or attach to the one already running, and follow it to its end.

    An agent that may not be launched now is not: the report says why. A cancellation ends the agent and is no error
    here, so that what it used is known; the workflow stops before the next step.
    """
    agent, begun = resolve(run.agent), (run.job / supervisor.IDENTITY).exists()
    home, key = run.place.home, run.place.key
    if not begun and (outcome := await in_thread(_barred, run)):
        exit_ = Exit(kind=ExitKind.NOT_STARTED, detail=outcome.detail)
        return Ran(AgentReport(exit=exit_, blocked=outcome), outcome)
    launch, lost = await in_thread(prepare, run, agent)
    call = agent.adapter.call(launch)
    if not begun:
        await in_thread(lay_out, run, launch, call)
    prices = await in_thread(_prices, run)
    before = run.session.used if run.session and launch.session else Usage()
    follower = Follower(launch, run.job, agent.adapter, before)
    limits = Limits(prices, run.spend, home.run(key.run))
    hidden = {**await in_thread(secrets.hidden, home, key.run), **secrets.keys_of(launch.secrets)}
    passed = await in_thread(run.place.rules) if run.sandbox else ()
    job = Job((_step(run, agent, call),), deadline=run.deadline, hidden=hidden, passed=passed)
    result = await to_its_end(run.job, job, follower, limits)
    ran = _redacted(await in_thread(_read, run, agent, launch, follower, result, prices), Redactor(hidden))
    await in_thread(resting.learn, home, key.run, run.agent, ran.outcome)
    return Ran(ran.report.model_copy(update={"lost_session": lost}), ran.outcome, ran.answer)


def _prices(run: AgentRun) -> PriceTable:
    """The price table; one that broke during the run costs nobody the agent that is paid for."""
    try:
        return load_prices(run.place.home.root)
    except RefusedError as error:
        log.warning("prices_not_read", error=error.message)
        return EMPTY


def _barred(run: AgentRun) -> Outcome | None:
    """Why it may not be launched now: it is too late, by what others were told, or the run's budget is passed."""
    home, name = run.place.home, run.place.key.run
    if run.deadline is not None and time.time() >= run.deadline:
        return Outcome(kind=OutcomeKind.TIMED_OUT, detail=LATE)
    spent = spending.spent(home.run(name))
    return resting.blocked(home, name, run.agent) or spending.over(run.spend, spent, "the run's")


def _step(run: AgentRun, agent: Agent, call: AgentCall) -> Step:
    place, traits = run.place, agent.adapter.traits
    private, prompt = place.folder / ordinal(PRIVATE, run.launch), place.folder / ordinal(PROMPT, run.launch)
    grants = Grants(writable=(private, *run.writable), readable=(prompt,))
    return Step(
        name=AGENT,
        argv=place.fenced(call.argv, run.profile, grants, sandbox=run.sandbox),
        cwd=place.tree,
        env=place.environment({"ORCH_PROMPT_FILE": str(prompt), **run.env, **call.env}),
        timeout_s=inf if run.limit_s is None else run.limit_s,
        stdin=prompt,
        idle_s=agent.spec.limit("idle") or (IDLE_S if traits.streams else None),
        signals=traits.signals,
        limits=StepLimits.of_this_host().for_agent(),
        cpus=run.cpus,
    )


def _read(
    run: AgentRun, agent: Agent, launch: Launch, follower: Follower, result: StepResult, prices: PriceTable
) -> Ran:
    """Put together what the process did and what it said of itself; wall time is ours."""
    follower.close()
    reading = follower.reading
    follower.hear(agent.adapter.leftovers, launch, _tail(result.stderr))
    _tidy(provider_of(run.place.folder).written(run.place.folder), agent)
    usage, limit = follower.priced(prices), stopped_for(run.job) if result.exit.detail else None  # it ended by itself
    if run.job.exists():
        spending.note(run.job, usage)
    account = _plain(reading.account()) if follower.streams or reading.final or reading.error else None
    ended = _ended(result, limit)
    report = AgentReport(
        exit=ended,
        account=account,
        limit=limit.kind if limit else None,
        usage=usage.model_copy(update={"wall_s": round(result.wall_s, 3)}),
        session=reading.session,
        session_used=reading.session_used or (reading.before if reading.before != Usage() else None),
        message=_shown(reading.answer[-WORDS:]).strip()[-500:],
        stdout=_words(run.place, result.stdout),
        stderr=_words(run.place, result.stderr),
    )
    answer = _tail(result.stdout) if account is None else reading.answer
    return Ran(report, judge(report.exit, report.account, report.limit), answer)


def _redacted(ran: Ran, redactor: Redactor) -> Ran:
    """The same without secrets: what agents wrote into files of their own came through no supervisor."""
    report = AgentReport.model_validate_json(redactor.text(ran.report.model_dump_json()))
    outcome = Outcome.model_validate_json(redactor.text(ran.outcome.model_dump_json()))
    return Ran(report, outcome, redactor.text(ran.answer))


def _plain(account: Account) -> Account:
    """The account with what it quotes fit to be shown: that is somebody else's text."""
    quotes = {"detail": _shown(account.detail), "stop": _shown(account.stop)}
    return account.model_copy(update={**quotes, "denials": tuple(map(_shown, account.denials))})


def _shown(text: str) -> str:
    return clean(text.encode("utf-8", "replace"))


def _ended(result: StepResult, limit: Outcome | None) -> Exit:
    """How the process ended: stopped at a limit, never started by the sandbox, or as it says."""
    if limit is not None:
        return result.exit.model_copy(update={"detail": limit.detail})
    silent = result.exit.kind is ExitKind.FAILED and not _tail(result.stdout)
    missing = silent and (not_executed(_tail(result.stderr)) or not_entered(_tail(result.stderr)))
    return Exit(kind=ExitKind.NOT_STARTED, detail=missing) if missing else result.exit


def _tidy(tree: Path, agent: Agent) -> None:
    """Remove what the agent always leaves in a working copy and nobody wants."""
    for pattern in agent.adapter.traits.litter:
        for path in tree.glob(pattern):
            remove_tree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _words(place: Place, path: Path) -> Excerpt:
    return excerpt(path, run_folder=place.home.run(place.key.run)) if path.exists() else Excerpt()


def _tail(path: Path) -> str:
    """The end of what was printed; empty when nothing ever was."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - ANSWER_LIMIT))
        return file.read().decode("utf-8", "replace")
