"""The `validate_outputs` activity: the validator's look at outputs that it has not seen yet; no device is held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...workflows.errors import HostFaultError
from ...workflows.model.round.lane import ValidateOutputs
from ...workflows.model.round.trial import Validated
from ..agents import secrets
from ..artifacts import write_whole
from ..effect import effect, in_thread
from ..home import Home
from ..jobs import Job, StepResult, run_job
from . import journal
from .building import compared
from .gathering import FROM_OUTSIDE, refusal, said
from .processors import spare
from .schedule import VALIDATE, Run, Stage
from .sides import CHECK, Side, Trial

VALIDATED = "validated.json"
"""In the measurement's folder, once it is done."""

TRIES = 3
"""So often in a row somebody may end its job, or its supervisor; it says nothing of the outputs."""


class Validating:
    """Validates what measurements left."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @effect
    async def validate_outputs(self, request: ValidateOutputs) -> Validated:
        """Validate the outputs that nobody looked at while the device was held, and let go of the trial."""
        trial = Trial(self._home, request)
        async with trial.measured_alone():
            done = trial.folder / VALIDATED
            if not done.exists():
                write_whole(done, (await _validated(trial)).model_dump_json())
            await in_thread(trial.drop)
            return Validated.model_validate_json(done.read_bytes())


async def _validated(trial: Trial) -> Validated:
    """The first output that is refused. No run could know whether it would be looked at."""
    entries = await in_thread(journal.read, trial.folder)
    if not trial.request.sandbox and (spoilt := await in_thread(compared, trial)).failed:
        return Validated(failed=spoilt.failed, side=spoilt.side, detail=spoilt.detail)
    if entries and entries[-1].flaw:
        return Validated()
    runs = [replace(Run.of(entry.kept), what=VALIDATE) for entry in entries if entry.kept]
    found = await _checked(trial, runs) if runs else ()
    return await in_thread(_refused, trial, found)


async def _checked(trial: Trial, runs: Sequence[Run]) -> tuple[StepResult, ...]:
    """What the validator said of each, up to the first that it does not accept."""
    tries, why = len(list(trial.folder.glob(f"{CHECK}*"))), ""
    for number in range(max(tries, 1), max(tries, 1) + TRIES):
        found = await run_job(trial.folder / f"{CHECK}{number}", await in_thread(_job, trial, runs))
        if found[-1].exit.detail not in FROM_OUTSIDE:
            return found
        why = f"the validator was ended from outside: {found[-1].exit}"
    raise HostFaultError(why, hint="see what ends processes on this host")


def _job(trial: Trial, runs: Sequence[Run]) -> Job:
    stage = Stage(trial, spare(trial.plan.devices))
    hidden = secrets.hidden(trial.home, trial.request.attempt.run)
    return Job(tuple(map(stage.step, runs)), stop_on_failure=True, hidden=hidden)


def _refused(trial: Trial, found: Sequence[StepResult]) -> Validated:
    for step in found:
        run = Run.of(step.name)
        if refused := refusal(trial, run, step):
            why = f"pair {run.pair}, candidate: {said(Side.CANDIDATE, refused)}"
            output = trial.said(step)
            return Validated(invalid=refused, side=Side.CANDIDATE.value, detail=why[:500], output=output)
    return Validated()
