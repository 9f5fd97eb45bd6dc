"""What the attempts of a run have spent so far, each in a file of its own, so that every one can see the whole."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from ...workflows.model.attempt import SpendCaps
from ...workflows.model.outcome import Outcome, OutcomeKind
from ...workflows.model.usage import Usage
from ..artifacts import write_whole
from .spec import Spec

SPENT = "spent.json"
"""In the folder of each agent's job."""

_PLACES = ("attempts/*/agent*/spent.json", "attempts/*/review/agent*/spent.json")


def note(job: Path, usage: Usage) -> None:
    """Keep what one launch has used so far."""
    write_whole(job / SPENT, usage.model_dump_json())


def spent(run_folder: Path) -> Usage:
    """What all launches of a run have used so far, running ones included; unknown where none said anything."""
    total = Usage()
    for pattern in _PLACES:
        for path in run_folder.glob(pattern):
            total = total + _load(path)
    return total


def _load(path: Path) -> Usage:
    try:
        return Usage.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):  # being written, or of another version
        return Usage()


def over_own(spec: Spec, usage: Usage, turns: int | None) -> Outcome | None:
    """Which limit of its own spec a launch has passed, with by how much."""
    if (most := spec.limit("max-turns")) is not None and (turns or 0) > most:
        return Outcome(kind=OutcomeKind.TURN_LIMIT, detail=f"{turns} turns of {most:g}")
    caps = SpendCaps(tokens=_whole(spec.limit("max-tokens")), usd=spec.limit("max-usd"))
    return over(caps, usage, "the attempt's")


def over(caps: SpendCaps, usage: Usage, whose: str) -> Outcome | None:
    """Which cap is passed, with by how much."""
    if caps.tokens is not None and (usage.tokens or 0) > caps.tokens:
        detail = f"{usage.tokens:,} tokens of {whose} {caps.tokens:,}"
        return Outcome(kind=OutcomeKind.BUDGET_LIMIT, detail=detail)
    if caps.usd is not None and (usage.usd or 0.0) > caps.usd:
        detail = f"${usage.usd:.4f} of {whose} ${caps.usd:.4f}"
        return Outcome(kind=OutcomeKind.BUDGET_LIMIT, detail=detail)
    return None


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
