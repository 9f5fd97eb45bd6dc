"""All agent adapters by name, and how a spec names one."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from ...workflows.errors import RefusedError
from .adapter import Adapter
from .command import CommandAgent

ADAPTERS: dict[str, Adapter] = {"cmd": CommandAgent()}


@dataclass(frozen=True)
class Agent:
    """A resolved spec.

    Attributes:
        adapter: who knows how to start and read it.
        argument: what follows the name in the spec.
    """

    adapter: Adapter
    argument: str


def resolve(spec: str) -> Agent:
    """Read `NAME:ARGUMENT`; an unknown name or a missing argument is refused with the mend."""
    name, _, argument = spec.partition(":")
    adapter = ADAPTERS.get(name.strip())
    if adapter is None:
        near = difflib.get_close_matches(name, ADAPTERS, n=1)
        hint = f"did you mean `{near[0]}:{argument or 'COMMAND'}`?" if near else "write --agent 'cmd:COMMAND'"
        raise RefusedError(f"unknown agent {name!r}; known: {', '.join(sorted(ADAPTERS))}", hint=hint)
    if not argument.strip():
        raise RefusedError(f"agent {spec!r} names no command", hint="write --agent 'cmd:COMMAND'")
    return Agent(adapter=adapter, argument=argument.strip())
