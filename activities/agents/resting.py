"""Who may not be launched now: a provider that asked to be left alone, and an agent that failed for good in its run.

Both are told by files, so that every attempt on this host knows what one of them was told, also after a crash.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from ...workflows.model.outcome import Outcome, OutcomeKind
from ...workflows.rules.outcome import POLICIES
from ..artifacts import write_whole
from ..home import Home
from .spec import LIMITS, parse

_SHARED = frozenset({OutcomeKind.RATE_LIMITED})
"""What one attempt learns for all that use the same agent."""

LONGEST_S = 86_400.0
"""Seconds after which a provider is asked again, whatever it said: the words may be misread, the key another one."""


def blocked(home: Home, run: str, agent: str) -> Outcome | None:
    """Why this agent is not to be launched now, or None. `retry_at` says when to ask again; without it, never."""
    for path in (_failed(home, run, agent), _resting(home, agent)):
        outcome = _load(path)
        if outcome is not None and (outcome.retry_at is None or outcome.retry_at > time.time()):
            return outcome
    return None


def learn(home: Home, run: str, agent: str, outcome: Outcome) -> None:
    """Remember what one launch came to, if it holds for others as well."""
    if POLICIES[outcome.kind].fatal:
        write_whole(_failed(home, run, agent), outcome.model_copy(update={"retry_at": None}).model_dump_json())
    elif outcome.kind in _SHARED:
        now, said = time.time(), outcome.retry_at
        until = min(now + LONGEST_S, now + POLICIES[outcome.kind].first_wait_s if said is None else said)
        known = _load(_resting(home, agent))
        if known is None or (known.retry_at or 0.0) < until:  # who was told of a longer rest knows better
            write_whole(_resting(home, agent), outcome.model_copy(update={"retry_at": until}).model_dump_json())


def _failed(home: Home, run: str, agent: str) -> Path:
    """The mark of one spec in one run: another model or key may work."""
    return home.run(run) / "failed-agents" / f"{_word(agent)}.json"


def _resting(home: Home, agent: str) -> Path:
    """The mark of one spec on this host: its provider counts every run's requests."""
    return home.root / "resting" / f"{_word(agent)}.json"


def _word(agent: str) -> str:
    """The same for specs that differ in their limits alone: provider, model and key are the same."""
    spec = parse(agent)
    settings = [f"{key}={value}" for key, value in sorted(spec.settings.items()) if key not in LIMITS]
    return hashlib.sha256("\0".join([spec.name, spec.argument, *settings]).encode()).hexdigest()[:16]


def _load(path: Path) -> Outcome | None:
    try:
        return Outcome.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None
