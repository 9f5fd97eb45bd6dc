"""Everything a launch needs before it starts: whose session, the private home with its login, prompt and files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...workflows.model.attempt import SpendCaps
from ...workflows.model.outcome import Session
from ..artifacts import write_whole
from ..places import Place
from ..sandbox import AGENT as AGENT_PROFILE
from ..sandbox import Profile
from . import secrets
from .adapter import AgentCall, Launch
from .registry import Agent

AGENT = "agent"
"""The folder of the first launch's job, below the place's; a later one's has its ordinal behind it."""

PROMPT = "prompt.md"
PRIVATE = "private"
"""The agent's own folder for files that are no part of its work, such as its usage report."""

LOGINS = "logins"
"""Names the files of the private home that are copies of the user's logins."""


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
        deadline: absolute Unix time at which it is stopped; None without one.
        limit_s: wall seconds after which it is stopped; None: at the deadline alone.
        sandbox: whether it runs in the sandbox.
        launch: the ordinal of this start in the place, from 1.
        session: the conversation to take up; None to begin anew.
        fork: whether to branch off from it.
        spend: what the run as a whole may spend.
        profile: what it may do in the sandbox.
        cpus: the processors it is pinned to; empty for all that the worker may use.
    """

    place: Place
    agent: str
    prompt: str
    writable: tuple[Path, ...]
    env: Mapping[str, str]
    deadline: float | None
    sandbox: bool
    launch: int = 1
    session: Session | None = None
    fork: bool = False
    spend: SpendCaps = field(default_factory=SpendCaps)
    anew: str = ""
    limit_s: float | None = None
    profile: Profile = AGENT_PROFILE
    cpus: tuple[int, ...] = ()

    @property
    def job(self) -> Path:
        """The folder of this launch's job."""
        return self.place.folder / ordinal(AGENT, self.launch)


def ordinal(name: str, launch: int) -> str:
    """A launch's own name for a file or folder: the first one has none."""
    stem, dot, suffix = name.partition(".")
    return name if launch == 1 else f"{stem}-{launch}{dot}{suffix}"


def prepare(run: AgentRun, agent: Agent) -> tuple[Launch, bool]:
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
        log_in(agent, launch.home)
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


def log_in(agent: Agent, home: Path) -> None:
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


def lay_out(run: AgentRun, launch: Launch, call: AgentCall) -> None:
    """Write the prompt and what the adapter wants written."""
    launch.private.mkdir(parents=True, exist_ok=True)
    if not launch.prompt.exists():
        write_whole(launch.prompt, run.anew if run.session and not launch.session else run.prompt)
    for path, text in call.files.items():
        write_whole(path, text)
