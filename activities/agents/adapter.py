"""The protocol of an agent adapter: a spec becomes a command; what the process left becomes facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ...workflows.model.usage import Usage


@dataclass(frozen=True)
class AgentCall:
    """How to start an agent; the prompt always comes by file and on stdin, never in the argv.

    Attributes:
        argv: the command.
        env: variables added to the scrubbed environment.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """What an agent reported of itself; unknown stays unknown."""

    usage: Usage = field(default_factory=Usage)
    session: str = ""
    message: str = ""


class Adapter(Protocol):
    """One kind of agent."""

    def missing(self, argument: str, path: str | None) -> str:
        """Return the program this agent needs and `path` lacks (None: this process's PATH), or "" when it can run."""
        ...

    def call(self, argument: str, folder: Path) -> AgentCall:
        """Return how to start the agent; `folder` is its private place for files."""
        ...

    def read(self, folder: Path, stdout: Path) -> Reading:
        """Read what the finished agent left in `folder` and printed."""
        ...
