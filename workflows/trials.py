"""One measurement of a round, from fresh checkouts to facts, however long its device set is busy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from temporalio import workflow

from .model.attempt import AttemptKey
from .model.base import Sha
from .model.round.lane import Built
from .model.round.trial import Measurement
from .round_steps import RoundSteps
from .stopping import pause

PAUSE_S, LONGEST_PAUSE_S = 2.0, 120.0
"""Between two tries at a busy device or a noisy host; doubled each time."""


@dataclass(frozen=True)
class Trial:
    """Fresh checkouts of two commits, built.

    Attributes:
        key: names the measurement.
        base: the commit of side A.
        candidate: the commit of side B.
        what: what is measured, in words.
        built: whether both sides can be measured.
    """

    key: AttemptKey
    base: Sha
    candidate: Sha
    what: str
    built: Built


class Trials:
    """Builds and measures."""

    def __init__(self, steps: RoundSteps) -> None:
        self._steps = steps

    async def build(self, base: Sha, candidate: Sha, what: str, key: AttemptKey | None = None) -> Trial:
        """Make both sides ready; no device is needed."""
        key = key or self._steps.next_key()
        built = await self._steps.build(key, base, candidate, what)
        return Trial(key, base, candidate, what, built)

    async def run_pairs(self, trial: Trial, device: str, *, deadline: float | None) -> Measurement:
        """Run the pairs of what was built, but have only the first one validated; a device set that is busy is told.

        The copies stay: of a busy one for another try, else for `validate`.
        """
        if trial.built.failed:
            return _not_built(trial, device)
        found = await self._steps.measure(trial.key, trial.base, trial.candidate, device, trial.what, deadline=deadline)
        return found.model_copy(update={"ordinal": trial.key.binding})

    async def validate(self, trial: Trial, found: Measurement) -> Measurement:
        """What was measured, with the validator's word on all of it; no device is needed, and the copies are gone."""
        if found.busy or found.failed:
            return found
        return found.validated(await self._steps.validate(trial.key, trial.base, trial.candidate, trial.what))

    async def measure(self, trial: Trial, device: str, *, deadline: float | None = None) -> Measurement:
        """Measure what was built once the device set is free; past the deadline it may still be busy."""
        return await self.measure_on_any(trial, (device,), deadline=deadline)

    async def measure_on_any(
        self, trial: Trial, devices: Sequence[str], *, deadline: float | None = None
    ) -> Measurement:
        """Measure what was built on the first of the device sets that is free; see `measure`."""
        rest, why = PAUSE_S, ""
        while True:
            for device in devices:
                found = await self.run_pairs(trial, device, deadline=deadline)
                if not found.busy or (deadline is not None and workflow.now().timestamp() >= deadline):
                    return await self.validate(trial, found)
                why = f"{device}: {found.busy}"
            left = LONGEST_PAUSE_S if deadline is None else max(0.0, deadline - workflow.now().timestamp())
            await pause(min(rest, left), why)
            rest = min(2 * rest, LONGEST_PAUSE_S)

    async def drop(self, trial: Trial) -> None:
        """Let go of a trial that is not measured after all."""
        await self._steps.drop(trial.key)


def _not_built(trial: Trial, device: str) -> Measurement:
    built = trial.built
    return Measurement(
        base=trial.base,
        candidate=trial.candidate,
        ordinal=trial.key.binding,
        device=device,
        failed=built.failed,
        detail=built.detail,
        side=built.side,
        output=built.output,
    )
