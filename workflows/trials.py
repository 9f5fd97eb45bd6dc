"""One measurement of a round, from fresh checkouts to facts, however long its device set is busy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from temporalio import workflow

from .model.attempt import AttemptKey
from .model.base import Sha
from .model.round.lane import Built
from .model.round.trial import Measurement
from .round_steps import RoundSteps, Subject

PAUSE_S, LONGEST_PAUSE_S = 2.0, 300.0
"""Between two tries at a busy device or a noisy host; doubled each time."""

PATIENCE_S, LONGEST_PATIENCE_S = 30.0, 600.0
"""How long one try waits for a busy device; doubled each time where there is nothing else to do than to wait."""


@dataclass(frozen=True)
class Trial:
    """Fresh checkouts of two commits, built.

    Attributes:
        subject: what is measured.
        built: whether both sides can be measured.
    """

    subject: Subject
    built: Built


class Trials:
    """Builds and measures."""

    def __init__(self, steps: RoundSteps) -> None:
        self._steps = steps

    async def build(self, base: Sha, candidate: Sha, what: str, key: AttemptKey | None = None) -> Trial:
        """Make both sides ready; no device is needed."""
        subject = Subject(key or self._steps.next_key(), base, candidate, what)
        return Trial(subject, await self._steps.build(subject))

    async def run_pairs(
        self, trial: Trial, device: str, *, deadline: float | None, patience_s: float = PATIENCE_S
    ) -> Measurement:
        """Run the pairs of what was built, but have only the first one validated; a device set that is busy is told.

        The copies stay: of a busy one for another try, else for `validate`.
        """
        if trial.built.failed:
            return _not_built(trial, device)
        found = await self._steps.measure(trial.subject, device, deadline=deadline, patience_s=patience_s)
        free_at = workflow.now().timestamp() if found.held_s else None
        return found.model_copy(update={"ordinal": trial.subject.key.binding, "free_at": free_at})

    async def validate(self, trial: Trial, found: Measurement) -> Measurement:
        """What was measured, with the validator's word on all of it; no device is needed, and the copies are gone."""
        if found.busy or found.failed:
            return found
        return found.validated(await self._steps.validate(trial.subject))

    async def measure(self, trial: Trial, device: str, *, deadline: float | None = None) -> Measurement:
        """Measure what was built once the device set is free; past the deadline it may still be busy."""
        return await self.measure_on_any(trial, (device,), deadline=deadline)

    async def measure_on_any(
        self, trial: Trial, devices: Sequence[str], *, deadline: float | None = None
    ) -> Measurement:
        """Measure what was built on the first of the device sets that is free; see `measure`."""
        patience_s = PATIENCE_S
        while True:
            for device in devices:
                left = inf if deadline is None else max(0.0, deadline - workflow.now().timestamp())
                found = await self.run_pairs(trial, device, deadline=deadline, patience_s=min(patience_s, left))
                if not found.busy or (deadline is not None and workflow.now().timestamp() >= deadline):
                    return await self.validate(trial, found)
            patience_s = min(2 * patience_s, LONGEST_PATIENCE_S)  # on its host, where waiting costs no history

    async def drop(self, trial: Trial) -> None:
        """Let go of a trial that is not measured after all."""
        await self._steps.drop(trial.subject.key)


def _not_built(trial: Trial, device: str) -> Measurement:
    subject, built = trial.subject, trial.built
    return Measurement(
        base=subject.base,
        candidate=subject.candidate,
        ordinal=subject.key.binding,
        device=device,
        failed=built.failed,
        detail=built.detail,
        side=built.side,
        output=built.output,
    )
