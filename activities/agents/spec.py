"""Agent specs: `NAME[:MODEL][,KEY=VALUE…]`, or `cmd:SHELL LINE` taken as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...workflows.errors import RefusedError

COMMON = {
    "max-turns": "model requests before it is stopped",
    "max-tokens": "tokens before it is stopped",
    "max-usd": "US dollars before it is stopped",
    "idle": "seconds without any event before it is stopped",
    "bin": "the program to run instead of the one on PATH",
}
"""The keys that every agent's spec takes; `orch` sees to them itself where the agent cannot."""

LIMITS = frozenset({"max-turns", "max-tokens", "max-usd", "idle"})
"""Those that are numbers."""


@dataclass(frozen=True)
class Spec:
    """A parsed spec.

    Attributes:
        name: the adapter's name.
        argument: the model, or the command's shell line; empty for the agent's own default.
        settings: the keys it gave.
    """

    name: str
    argument: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    def limit(self, key: str) -> float | None:
        """A numeric setting; None when it was not given."""
        return float(self.settings[key]) if key in self.settings else None

    def program(self, default: str) -> str:
        """The program to run."""
        return self.settings.get("bin", default)


def parse(text: str) -> Spec:
    """Split a spec; faults of its form are refused, names and keys are not looked up here."""
    name, colon, rest = text.strip().partition(":")
    if name.strip() == "cmd":
        return Spec("cmd", rest.strip())
    if not colon or "," in name:
        name, _, tail = text.strip().partition(",")
        model, pairs = "", tail.split(",") if tail else []
    else:
        model, *pairs = rest.split(",")
    settings: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        key, value = key.strip(), value.strip()
        if not equals or not key or not value:
            raise RefusedError(f"agent {text!r}: {pair!r} is no setting", hint="write NAME:MODEL,KEY=VALUE")
        if key in settings:
            raise RefusedError(f"agent {text!r}: {key} is set twice", hint="give it once")
        if key in LIMITS and not _positive(value):
            raise RefusedError(f"agent {text!r}: {key}={value} is no positive number", hint=f"{key}: {COMMON[key]}")
        settings[key] = value
    return Spec(name.strip(), model.strip(), settings)


def _positive(text: str) -> bool:
    try:
        return 0 < float(text) < float("inf")
    except ValueError:
        return False
