"""Run an agent in a place: prompt on stdin and by file, supervised, fenced, followed and read by its adapter."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog

from ...workflows.errors import RefusedError
from ...workflows.model.attempt import AgentReport, SpendCaps
from ...workflows.model.exit import Exit, ExitKind
from ...workflows.model.outcome import Account, Outcome, Session
from ...workflows.model.usage import Usage
from ...workflows.model.verdict import Excerpt
from ...workflows.rules.outcome import judge
from .. import supervisor
from ..artifacts import write_whole
from ..effect import in_thread
from ..excerpts import clean, excerpt
from ..jobs import Job, Step, StepResult
from ..places import Place
from ..sandbox import not_executed
from ..workspaces.removal import remove_tree
from . import resting, secrets, spending
from .adapter import AgentCall, Launch
from .following import Follower, Limits, stopped_for, to_its_end
from .prices import EMPTY, PriceTable, load_prices
from .registry import Agent, resolve

AGENT = "agent"
"""The folder of the first launch's job, below the place's; a later one's has its ordinal behind it."""

PROMPT = "prompt.md"
PRIVATE = "private"
"""The agent's own folder for files that are no part of its work, such as its usage report."""

IDLE_S = 1800.0
"""Seconds of silence after which an agent that prints its events is stopped; a tool of its may take that long."""

LOGINS = "logins"
"""Names the files of the private home that are copies of the user's logins."""

ANSWER_LIMIT = 256 << 10
WORDS = 4096
"""Characters at the end of an answer of which its closing words are taken: escape sequences take room."""

log = structlog.get_logger()


@dataclass(frozen=True)
class AgentRun:
    """What to run.

    Attributes:
        place: where; its folder holds the working copy (`tree`).
        agent: the agent's spec.
        prompt: what it is told.
        anew: what it is told instead when the session to take up is lost.
        writable: what it may write besides its working copy and its private folders.
        env: variables added to the place's.
        deadline: absolute Unix time at which it is stopped.
        sandbox: whether it runs in the sandbox.
        launch: the ordinal of this start in the place, from 1.
        session: the conversation to take up; None to begin anew.
        fork: whether to branch off from it.
        spend: what the run as a whole may spend.
    """

    place: Place
    agent: str
    prompt: str
    writable: tuple[Path, ...]
    env: Mapping[str, str]
    deadline: float
    sandbox: bool
    launch: int = 1
    session: Session | None = None
    fork: bool = False
    spend: SpendCaps = field(default_factory=SpendCaps)
    anew: str = ""

    @property
    def job(self) -> Path:
        """The folder of this launch's job."""
        return self.place.folder / ordinal(AGENT, self.launch)


@dataclass(frozen=True)
class Ran:
    """How a launch ended, what became of it, and the agent's whole answer."""

    report: AgentReport
    outcome: Outcome
    answer: str = ""


def ordinal(name: str, launch: int) -> str:
    """A launch's own name for a file or folder: the first one has none."""
    stem, dot, suffix = name.partition(".")
    return name if launch == 1 else f"{stem}-{launch}{dot}{suffix}"


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
    launch, lost = await in_thread(_prepared, run, agent)
    call = agent.adapter.call(launch)
    if not begun:
        await in_thread(_lay_out, run, launch, call)
    prices = await in_thread(_prices, run)
    before = run.session.used if run.session and launch.session else Usage()
    follower = Follower(launch, run.job, agent.adapter, before)
    limits = Limits(prices, run.spend, home.run(key.run))
    result = await to_its_end(run.job, Job(steps=(_step(run, agent, call),), deadline=run.deadline), follower, limits)
    ran = await in_thread(_read, run, agent, launch, follower, result, prices)
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
    """Why it may not be launched now: by what others were told, or because the run's budget is passed already."""
    home, name = run.place.home, run.place.key.run
    spent = spending.spent(home.run(name))
    return resting.blocked(home, name, run.agent) or spending.over(run.spend, spent, "the run's")


def _prepared(run: AgentRun, agent: Agent) -> tuple[Launch, bool]:
    """The launch, and whether the session it was to take up is lost; decided once, whatever crashes."""
    folder = run.place.folder
    launch = Launch(
        spec=agent.spec,
        home=folder / "home",
        private=folder / ordinal(PRIVATE, run.launch),
        tree=folder / "tree",
        prompt=folder / ordinal(PROMPT, run.launch),
        secrets=secrets.find(run.place.home, run.place.key.run, agent.adapter.traits.secrets),
    )
    decided = folder / ordinal("session.json", run.launch)
    if not decided.exists():
        launch.home.mkdir(parents=True, exist_ok=True)
        _log_in(agent, launch.home)
        write_whole(decided, json.dumps(_taken_up(run, agent, launch)))
    known = json.loads(decided.read_text(encoding="utf-8"))
    launch = replace(launch, session=known["session"], fork=known["fork"])
    return launch, bool(run.session and not launch.session)


def _taken_up(run: AgentRun, agent: Agent, launch: Launch) -> dict[str, object]:
    """Which session this launch can really take up, with its files in the private home."""
    session, traits, none = run.session, agent.adapter.traits, {"session": "", "fork": False}
    if session is None or session.agent != agent.spec.name or not traits.resumes or (run.fork and not traits.forks):
        return none
    if session.attempt != run.place.key.name:
        old = run.place.home.run(run.place.key.run) / "attempts" / session.attempt / "home"
        if not agent.adapter.adopt(replace(launch, session=session.id), old):
            return none
    return {"session": session.id, "fork": run.fork}


def _log_in(agent: Agent, home: Path) -> None:
    """Copy the user's login where the agent looks for it."""
    for name in agent.adapter.traits.login:
        theirs, ours = Path.home() / name, home / name
        if theirs.is_file() and not ours.exists():
            ours.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(theirs, ours)
            ours.chmod(0o600)
            with (home.parent / LOGINS).open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")


def log_out(place: Path) -> None:
    """Remove the logins that were copied to a place's private home. Idempotent."""
    listed = place / LOGINS
    for name in listed.read_text(encoding="utf-8").splitlines() if listed.exists() else ():
        (place / "home" / name).unlink(missing_ok=True)


def _lay_out(run: AgentRun, launch: Launch, call: AgentCall) -> None:
    launch.private.mkdir(parents=True, exist_ok=True)
    if not launch.prompt.exists():
        write_whole(launch.prompt, run.anew if run.session and not launch.session else run.prompt)
    for path, text in call.files.items():
        write_whole(path, text)


def _step(run: AgentRun, agent: Agent, call: AgentCall) -> Step:
    place, traits = run.place, agent.adapter.traits
    private, prompt = place.folder / ordinal(PRIVATE, run.launch), place.folder / ordinal(PROMPT, run.launch)
    tree = place.folder / "tree"
    return Step(
        name=AGENT,
        argv=place.fenced(call.argv, tree, private, *run.writable, sandbox=run.sandbox, network=True),
        cwd=tree,
        env=place.environment({"ORCH_PROMPT_FILE": str(prompt), **run.env, **call.env}),
        timeout_s=max(0.0, run.deadline - time.time()),
        stdin=prompt,
        idle_s=agent.spec.limit("idle") or (IDLE_S if traits.streams else None),
        signals=traits.signals,
    )


def _read(
    run: AgentRun, agent: Agent, launch: Launch, follower: Follower, result: StepResult, prices: PriceTable
) -> Ran:
    """Put together what the process did and what it said of itself; wall time is ours."""
    follower.close()
    reading = follower.reading
    follower.hear(agent.adapter.leftovers, launch, _tail(result.stderr))
    _tidy(launch.tree, agent)
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
    missing = not_executed(_tail(result.stderr)) if result.exit.kind is ExitKind.FAILED else ""
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
