"""The validator's look at outputs that it has not seen yet, once no device is held for it any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...workflows.model.exit import Exit
from ...workflows.model.verdict import Excerpt
from ..agents import secrets
from ..effect import in_thread
from ..jobs import LOST, Job, StepResult, run_job
from .gathering import refusal
from .processors import spare
from .schedule import VALIDATE, Run, Stage
from .sides import CHECK, Trial

TRIES = 3
"""So often its supervisor may be lost."""


@dataclass(frozen=True)
class Refused:
    """An output that is not right.

    Attributes:
        pair: of which pair.
        exit: how the validator ended.
        output: what it printed.
    """

    pair: int
    exit: Exit
    output: Excerpt


async def validated(trial: Trial, kept: Sequence[str]) -> Refused | None:
    """Have the outputs of these runs validated; the first that is refused. No run could know that it is looked at."""
    runs = [replace(Run.of(name), what=VALIDATE) for name in kept]
    if not runs:
        return None
    found: tuple[StepResult, ...] = ()
    for number in range(1, TRIES + 1):
        found = await run_job(trial.folder / f"{CHECK}{number}", await in_thread(_job, trial, runs))
        if found[-1].exit != LOST:
            break
    return await in_thread(_refused, trial, found)


def _job(trial: Trial, runs: Sequence[Run]) -> Job:
    stage = Stage(trial, spare(trial.plan.devices))
    hidden = secrets.hidden(trial.home, trial.request.attempt.run)
    return Job(tuple(map(stage.step, runs)), stop_on_failure=True, hidden=hidden)


def _refused(trial: Trial, found: Sequence[StepResult]) -> Refused | None:
    for step in found:
        run = Run.of(step.name)
        if refused := refusal(trial, run, step):
            return Refused(run.pair, refused, trial.said(step))
    return None
