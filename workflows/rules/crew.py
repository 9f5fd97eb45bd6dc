"""The crew: which agents may still compete; one that failed for good is paid for no more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..model.outcome import Outcome
from ..model.reason import Reason, RunReason


def assign(agents: Iterable[str], failed: Mapping[str, Outcome], count: int) -> dict[int, str]:
    """The spec of each candidate from 1 to `count`: those that have not failed for good, in turn."""
    every = tuple(agents)
    able = tuple(spec for spec in every if spec not in failed) or every
    return {index: able[(index - 1) % len(able)] for index in range(1, count + 1)}


def unusable(agents: Iterable[str], failed: Mapping[str, Outcome]) -> Reason[RunReason] | None:
    """Why no agent of the run can work any more, or None: while one can, the run goes on with it."""
    specs = tuple(dict.fromkeys(agents))
    if not specs or any(spec not in failed for spec in specs):
        return None
    outcome = failed[specs[0]]
    return Reason(
        code=RunReason.AGENT_UNUSABLE,
        data={"agent": specs[0], "outcome": outcome.kind.value, "detail": outcome.detail[:300]},
    )
