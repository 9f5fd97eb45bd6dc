"""The protocol of an agent adapter: a launch becomes a command, its event stream becomes what it said."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..supervisor import SIGNALS
from .said import Said
from .spec import Spec


@dataclass(frozen=True)
class Traits:
    """What is known of an agent, as data.

    Attributes:
        program: the program that is looked for on PATH.
        oldest: the oldest version that is known to work; empty when the version does not matter.
        version: the arguments that print its version.
        streams: whether it prints an event per step; without, silence means nothing.
        resumes: whether it can take up a session again.
        forks: whether it can branch off from a session under a new id.
        limits: what it can limit by itself, of `turns`, `tokens` and `usd`.
        prices: whether it reports money.
        secrets: variables it may get from the user's environment.
        login: files below the user's home that hold a login; copied to the private home when they are there.
        settings: the keys its spec takes besides the common ones, with a line of help each.
        signals: the signals that stop it before KILL, with the seconds to react; for those it ignores none are wasted.
        litter: globs of what it always leaves in the working copy and nobody wants: gone before the tree is recorded.
    """

    program: str
    oldest: tuple[int, ...] = ()
    version: tuple[str, ...] = ("--version",)
    streams: bool = True
    resumes: bool = True
    forks: bool = False
    limits: frozenset[str] = frozenset()
    prices: bool = False
    secrets: tuple[str, ...] = ()
    login: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    signals: tuple[tuple[str, float], ...] = SIGNALS
    litter: tuple[str, ...] = ()


@dataclass(frozen=True)
class Launch:
    """One start of an agent.

    Attributes:
        spec: the resolved spec: model and settings.
        home: the private home (`$HOME`); whatever the agent keeps goes below it.
        private: a folder beside it for files that are no part of the work.
        tree: the working copy, where the agent starts.
        prompt: the file that holds the prompt; it comes on stdin, too.
        secrets: those of the adapter's `secrets` that the user's environment has.
        session: the id to take up again; empty to begin anew.
        fork: whether to branch off from that session under a new id.
    """

    spec: Spec
    home: Path
    private: Path
    tree: Path
    prompt: Path
    secrets: Mapping[str, str] = field(default_factory=dict)
    session: str = ""
    fork: bool = False


@dataclass(frozen=True)
class AgentCall:
    """How to start an agent; the prompt comes by file and on stdin, never in the argv.

    Attributes:
        argv: the command.
        env: variables added to the scrubbed environment; the launch's secrets are among them where they are needed.
        files: texts to write before the start, by absolute path below the home or the private folder.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[Path, str] = field(default_factory=dict)


class Translator(Protocol):
    """Reads one run's events in order; it may remember, so each run has its own."""

    def read(self, event: Mapping[str, Any]) -> Iterable[Said]:
        """What one event says, in our words; an unknown kind is `Unknown`, never an error."""
        ...


class Adapter(Protocol):
    """One kind of agent."""

    name: str
    traits: Traits

    def missing(self, spec: Spec, path: str | None) -> str:
        """Return the program this agent needs and `path` lacks (None: this process's PATH), or "" when it can run."""
        ...

    def call(self, launch: Launch) -> AgentCall:
        """Return how to start the agent. Pure: what has to be written stands in the call."""
        ...

    def translator(self) -> Translator | None:
        """A reader for one run's events; None when it prints no JSON lines."""
        ...

    def leftovers(self, launch: Launch, stderr: str) -> Iterable[Said]:
        """What the ended agent says by files it left and by the end of its stderr, after its stream was read."""
        ...

    def adopt(self, launch: Launch, old: Path) -> bool:
        """Bring the session `launch.session` from another private home into `launch.home`.

        Returns False when it is not there, so that a fresh one is begun.
        """
        ...


class OnPath:
    """What all agents have in common that need their one program and nothing else."""

    traits: Traits

    def missing(self, spec: Spec, path: str | None) -> str:
        """Return the program when it is not to be found."""
        program = spec.program(self.traits.program)
        return "" if shutil.which(program, path=path) else program
