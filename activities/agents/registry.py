"""All agent adapters by name, those of installed packages included, and how a spec names one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from ...workflows.errors import RefusedError
from .adapter import Adapter
from .spec import COMMON, Spec, parse

GROUP = "orch.agents"
"""The entry points of packages that bring an adapter: `NAME = module:CLASS`, made without arguments."""

BUILT_IN = {
    "claude": "claude:ClaudeAgent",
    "codex": "codex:CodexAgent",
    "opencode": "opencode:OpencodeAgent",
    "gemini": "gemini:GeminiAgent",
    "qwen": "qwen:QwenAgent",
    "pi": "pi:PiAgent",
    "vibe": "vibe:VibeAgent",
    "mini": "mini:MiniAgent",
    "aider": "aider:AiderAgent",
    "cmd": "command:CommandAgent",
}


@dataclass(frozen=True)
class Agent:
    """A resolved spec.

    Attributes:
        adapter: who knows how to start and read it.
        spec: what was asked for.
    """

    adapter: Adapter
    spec: Spec


def names() -> tuple[str, ...]:
    """Every known agent: the built-in ones first, then those of installed packages."""
    return (*BUILT_IN, *sorted(name for name in _foreign() if name not in BUILT_IN))


def resolve(text: str) -> Agent:
    """Read a spec; an unknown name or key, or a command that is missing, is refused with the mend."""
    spec = parse(text)
    if spec.name not in names():
        near = difflib.get_close_matches(spec.name, names(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else "write a known name, or --agent 'cmd:COMMAND'"
        raise RefusedError(f"unknown agent {spec.name!r}; known: {', '.join(names())}", hint=hint)
    adapter = adapter_of(spec.name)
    if spec.name == "cmd" and not spec.argument:
        raise RefusedError(f"agent {text!r} names no command", hint="write --agent 'cmd:COMMAND'")
    _check_keys(text, spec, {**COMMON, **adapter.traits.settings})
    return Agent(adapter=adapter, spec=spec)


def secret_names(specs: Iterable[str]) -> tuple[str, ...]:
    """The variables of the user's environment that these agents may get."""
    found = (name for spec in specs if spec for name in resolve(spec).adapter.traits.secrets)
    return tuple(dict.fromkeys(found))


def _check_keys(text: str, spec: Spec, known: Mapping[str, str]) -> None:
    for key in spec.settings:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known))}"
            raise RefusedError(f"agent {text!r}: unknown setting {key!r}", hint=hint)


@cache
def adapter_of(name: str) -> Adapter:
    """The adapter of a known name; imported when it is first asked for."""
    module, _, cls = BUILT_IN[name].partition(":") if name in BUILT_IN else ("", "", "")
    made = getattr(import_module(f".{module}", __package__), cls) if module else _loaded(_foreign()[name])
    adapter: Adapter = made()
    return adapter


def _loaded(point: EntryPoint) -> Callable[[], Adapter]:
    try:
        made: Callable[[], Adapter] = point.load()
    except (ImportError, AttributeError) as error:
        hint = "mend or remove the package that brings it"
        raise RefusedError(f"agent {point.name!r} cannot be loaded: {error}", hint=hint) from error
    return made


@cache
def _foreign() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}
