"""The `measure_pairs` activity: lease the device set, run the pairs, read what they say.

The pairs are steps of one supervised job, so that a device waits for nothing but the processes that it runs. The job
holds the lease itself: it goes on when its worker dies, and the next worker finds it by its folder.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path

from ...workflows.model.round.lane import MeasurePairs
from ...workflows.model.round.plan import DeviceSet
from ...workflows.model.round.trial import Measurement
from .. import clock
from ..agents import secrets
from ..artifacts import write_whole
from ..effect import effect, in_thread
from ..home import Home
from ..jobs import Job, StepResult, attach, end_job, run_job
from ..measuring.measurements import host_class
from ..workspaces.removal import discard, sweep
from . import devices, journal
from .building import built
from .gathering import Gathering
from .holding import Holding, begin_anew_elsewhere, hold, holdings
from .processors import TRIAL
from .schedule import Run, Stage, runs_of
from .sides import RUNS, Trial

MEASURED = "measurement.json"
"""In the measurement's folder, once it is done."""

LOOK_S = 0.1
"""Seconds between two looks at what a job has done."""

TRIES = 3
"""So many jobs of one measurement may be lost with their supervisors before it ends with the pairs that it has."""


DEADLINE = "deadline"
ENDED = frozenset({"stopped", DEADLINE})
"""What a supervisor says of a step when its job was ended: by somebody, or at its deadline by the clock that counts."""


class Measuring:
    """Measures what was built."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @effect
    async def measure_pairs(self, request: MeasurePairs) -> Measurement:
        """Lease the device set and run the pairs; a busy device and a failing benchmark are values."""
        trial, deadline = Trial(self._home, request), clock.here(request.deadline, clock.offset())
        async with trial.measured_alone():
            return await _Pairs(trial, request, deadline).measured()


class _Pairs:
    """One measurement, found as an earlier call left it.

    Args:
        trial: what is measured.
        request: on what, and how long it may wait for that.
        deadline: on this host's clock.
    """

    def __init__(self, trial: Trial, request: MeasurePairs, deadline: float | None) -> None:
        self._trial, self._request, self._deadline = trial, request, deadline
        self._ended = ""
        self._facts = Measurement(
            base=request.base, candidate=request.candidate, device=request.device, host=host_class()
        )

    async def measured(self) -> Measurement:
        """The facts; copies and outputs stay for the validator, and of a busy device for another try."""
        done = self._trial.folder / MEASURED
        if not done.exists():
            ready = await built(self._trial)
            if ready.failed:
                return self._with(failed=ready.failed, side=ready.side, detail=ready.detail, output=ready.output)
            begun = time.monotonic()
            if busy := await self._run_pairs():
                return self._with(busy=busy, waited_s=round(time.monotonic() - begun, 3))
            write_whole(done, (await in_thread(self._gathered)).model_dump_json())
        return Measurement.model_validate_json(done.read_bytes())

    async def _run_pairs(self) -> str:
        """Run what is missing of the pairs, after the job that an earlier worker began; what is in the way, if so."""
        await in_thread(begin_anew_elsewhere, self._trial, self._request.device)
        number = len(list(self._trial.folder.glob(f"{TRIAL}*")))
        if number and await self._follow(number, attach(self._job_folder(number))) is None:
            number -= 1  # it never began
        while not self._over() and number < TRIES:
            number += 1
            if busy := await self._run_job(number):
                return busy
        return ""

    async def _run_job(self, number: int) -> str:
        """Run the pairs that are missing as one job, as soon as the device is free; what is in the way, if so."""
        device = next(one for one in self._trial.plan.devices if one.name == self._request.device)
        if flaw := await in_thread(devices.flaws, device, sandbox=self._request.sandbox):
            return flaw
        job = await in_thread(self._job, device)
        async with hold(self._trial, device, number, patience_s=self._request.patience_s) as held:
            if isinstance(held, str):
                await in_thread(self._discard, job)
                return held
            await self._follow(number, run_job(self._job_folder(number), replace(job, held=held.descriptors)))
        return ""

    def _job(self, device: DeviceSet) -> Job:
        """Made before the device is taken: everything that is not yet in the journal."""
        trial = self._trial
        stage = Stage(trial, device.cpus, device)
        steps = tuple(map(stage.step, runs_of(trial, len(journal.read(trial.folder)))))
        hidden = secrets.hidden(trial.home, self._request.attempt.run)
        return Job(steps, stop_on_failure=True, deadline=self._deadline, hidden=hidden)

    async def _follow(
        self, number: int, job: Awaitable[tuple[StepResult, ...] | None]
    ) -> tuple[StepResult, ...] | None:
        """Write pairs down as they end, until the job ends; it is ended where nothing more is to be run."""
        folder = self._job_folder(number)
        gathering, running = Gathering(self._trial, folder), asyncio.ensure_future(job)
        try:
            while not running.done():
                await asyncio.wait({running}, timeout=LOOK_S)
                if not running.done() and await in_thread(gathering.look):
                    await in_thread(end_job, folder)
            found = await running
        except BaseException:
            running.cancel()
            raise
        await in_thread(gathering.look)
        self._ended = next((step.exit.detail for step in found or () if step.exit.detail in ENDED), "")
        return found

    def _over(self) -> bool:
        """Whether nothing more is run: all pairs are there, one failed, the deadline passed, or somebody ended it."""
        entries = journal.read(self._trial.folder)
        flawed = bool(entries) and bool(entries[-1].flaw)
        late = self._deadline is not None and time.time() >= self._deadline
        return flawed or late or bool(self._ended) or len(entries) >= self._trial.plan.gates.pairs

    def _gathered(self) -> Measurement:
        entries = journal.read(self._trial.folder)
        facts = self._with(pairs=tuple(entry.pair for entry in entries), **_times(holdings(self._trial)))
        if entries and (last := entries[-1]).flaw:
            why = f"pair {last.pair.index}, {last.side}: {last.flaw}"
            return _updated(facts, invalid=last.invalid, side=last.side, detail=why, output=last.output)
        wanted = self._trial.plan.gates.pairs
        short = "" if len(entries) == wanted else f"it ended after {len(entries)} of {wanted} pairs: {self._why()}"
        return _updated(facts, detail=short)

    def _why(self) -> str:
        late = self._deadline is not None and time.time() >= self._deadline
        if late or self._ended == DEADLINE:
            return "its deadline passed"
        return "somebody else ended it" if self._ended else "its supervisor was lost again and again"

    def _discard(self, job: Job) -> None:
        """The folders of runs that did not come to be."""
        for step in job.steps:
            discard(Run.of(step.name).folder(self._trial), self._trial.folder / RUNS)
        sweep(self._trial.folder / RUNS)

    def _job_folder(self, number: int) -> Path:
        return self._trial.folder / f"{TRIAL}{number}"

    def _with(self, **facts: object) -> Measurement:
        return _updated(self._facts, **facts)


def _updated(facts: Measurement, **more: object) -> Measurement:
    """The facts with more of them; words are cut to what a history should hold."""
    if isinstance(detail := more.get("detail"), str):
        more["detail"] = detail[:500]
    return Measurement.model_validate({**facts.model_dump(), **more})


def _times(held: tuple[Holding, ...]) -> dict[str, float]:
    return {
        "waited_s": round(sum(one.waited_s for one in held), 3),
        "held_s": round(sum(one.held_s for one in held), 3),
    }
