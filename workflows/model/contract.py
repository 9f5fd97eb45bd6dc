"""The contract: frozen acceptance, compiled once and never changed in a run."""

from __future__ import annotations

import hashlib
import json
import re
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from .base import Value

MAX_GOAL_CHARS = 20_000
"""A goal travels in every agent request; a longer text belongs in a file of the repository."""

RESERVED = re.compile(r"(ORCH|GIT|LD|DYLD)_|(PATH|HOME|TMPDIR|SHELL|ENV|BASH_ENV|IFS|PORT|PYTHON(PATH|HOME|STARTUP))$")
"""Variables that no secret may take."""

SOURCE = r"^(env:[A-Za-z_][A-Za-z0-9_]*|cmd:\s*[^\s\x00][^\x00]*)$"
"""Where a secret comes from."""

NonBlank = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Rung(Value):
    """One verification command: a shell line that passes on exit 0.

    Attributes:
        name: unique in the ladder; shown in every table.
        run: the shell line, run in a fresh copy of the measured tree.
        timeout_s: wall seconds; a rung that runs longer is unevaluable, never a pass.
        network: whether this rung may reach the network.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,59}$")]
    run: NonBlank
    timeout_s: float = Field(default=600.0, gt=0, le=86_400)
    network: bool = False


class SecretUse(StrEnum):
    """Who gets a secret; rungs never do."""

    AGENT = "agent"
    SETUP = "setup"


class Secret(Value):
    """A secret by reference: its value is looked up on the host at the start, and never travels.

    Attributes:
        name: the variable that holds it.
        source: `env:VARIABLE`, of whoever starts the run, or `cmd:SHELL LINE`, which prints it.
        to: who gets it.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
    source: Annotated[str, StringConstraints(pattern=SOURCE, max_length=4096)]
    to: tuple[SecretUse, ...] = Field(default=(SecretUse.AGENT,), min_length=1)

    @field_validator("name")
    @classmethod
    def _not_ours(cls, name: str) -> str:
        if RESERVED.match(name):
            raise ValueError("that variable is not free: it decides how commands run")
        return name


class Contract(Value):
    """A ladder of rungs, cheapest first, with protected paths, set-up and carried paths.

    Attributes:
        goal: what the agents are asked to reach, in words.
        rungs: the ladder, in order.
        protected: gitwildmatch globs that no candidate may change; they are restored from the baseline.
        setup: a shell line run once per workspace before the agent (and before measuring); empty for none.
        setup_timeout_s: wall seconds for `setup`.
        carry: globs of ignored paths of the user's tree that every workspace gets without their being committed.
        secrets: what agents and set-up get besides, by reference; it decides no verdict and is in no digest.
    """

    goal: NonBlank = Field(max_length=MAX_GOAL_CHARS)
    rungs: tuple[Rung, ...] = Field(min_length=1)
    protected: tuple[NonBlank, ...] = ()
    setup: str = ""
    setup_timeout_s: float = Field(default=600.0, gt=0, le=86_400)
    carry: tuple[NonBlank, ...] = ()
    secrets: tuple[Secret, ...] = ()

    @field_validator("goal")
    @classmethod
    def _no_nul(cls, goal: str) -> str:
        if "\0" in goal:
            raise ValueError("the goal holds a NUL character")
        return goal

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [rung.name for rung in self.rungs]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"rung names are used twice: {', '.join(twice)}")
        return self

    @property
    def digest(self) -> str:
        """SHA-256 over the canonical JSON of everything that decides a verdict."""
        deciding = self.model_dump(mode="json", exclude={"secrets"})
        text = json.dumps(deciding, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()
