"""The `build_trial` activity: fresh checkouts of both sides, set up, probed, built, tried; no device is held."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...workflows.errors import HostFaultError, RefusedError
from ...workflows.model.round.lane import BuildTrial, Built
from ...workflows.model.round.plan import Command
from ...workflows.model.round.ticket import Cause
from ...workflows.model.verdict import Excerpt
from ..agents import secrets
from ..artifacts import write_whole
from ..effect import effect, ended_if_cancelled, in_thread
from ..home import Home
from ..jobs import LOST, Job, Step, StepResult, run_job
from ..lanes.probe import WITHIN, WITHIN_S
from ..measuring.surroundings import measuring_environment
from ..places import Grants
from ..sandbox import MEASURE
from ..workspaces.registry import open_workspace
from ..workspaces.removal import discard, sweep
from .grading import commit_flaw, named, read_only_inputs, touched
from .processors import spare
from .sides import BUILD, Side, Trial

BUILT = "built.json"
"""In the measurement's folder: what became of it."""

CAUSES = {
    "set-up": Cause.SETUP_FAILED,
    "probe": Cause.PROBE_FAILED,
    "place": Cause.PROBE_FAILED,
    "build": Cause.BUILD_FAILED,
    "smoke": Cause.SMOKE_FAILED,
}
"""What a ticket is rejected for when a step fails."""

CHECKED_OUT = "opened"
"""In a side's folder, once it is there whole."""


class Building:
    """Builds trials."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @effect
    async def build_trial(self, request: BuildTrial) -> Built:
        """Make and build fresh checkouts of both sides; a failing step is a value."""
        trial = Trial(self._home, request)
        async with trial.alone():
            return await built(trial)


async def built(trial: Trial) -> Built:
    """Both sides of a trial, made now or as an earlier call left them; nothing is left of one that failed.

    Whoever calls it is `alone` at the trial.

    Raises:
        HostFaultError: the host is in the way; nothing is left then, either.
    """
    kept = trial.folder / BUILT
    if not kept.exists():
        found = await _built(trial)
        if found.failed:
            await in_thread(trial.drop)
        write_whole(kept, found.model_dump_json())
    return Built.model_validate_json(kept.read_bytes())


async def _built(trial: Trial) -> Built:
    for side in Side:
        if flaw := await in_thread(commit_flaw, trial.store, trial.plan, trial.commit(side)):
            return _failed(Cause.TAMPERED, side, flaw)
    for side in Side:
        try:
            await in_thread(_check_out, trial, side)
        except RefusedError as error:
            return _failed(Cause.SETUP_FAILED, side, error.message)
    job, folder = await in_thread(_job, trial), trial.folder / BUILD
    async with ended_if_cancelled(folder):
        results = await run_job(folder, job) if job.steps else ()
    if results and results[-1].exit == LOST:
        await in_thread(_forget, trial)
        raise HostFaultError("the supervisor of a build was lost", hint="see what kills processes on this host")
    if results and not results[-1].exit.ok:
        return _broken(trial, results[-1])
    return await in_thread(compared, trial)


def _check_out(trial: Trial, side: Side) -> None:
    folder = trial.place(side).folder
    if not (folder / CHECKED_OUT).exists():
        open_workspace(trial.store, folder, trial.commit(side), measuring=True, own_refs=True)
        (folder / CHECKED_OUT).touch()


def _job(trial: Trial) -> Job:
    """All steps of both sides, the base first: what fails there is no candidate's fault."""
    steps: list[Step] = []
    for side in Side:
        steps += _steps(trial, side, len(steps))
    hidden = secrets.hidden(trial.home, trial.request.attempt.run)
    return Job(tuple(steps), stop_on_failure=True, hidden=hidden)


def _steps(trial: Trial, side: Side, before: int) -> Iterator[Step]:
    """The steps of a side, when `before` others come first; neither network nor secrets, grading inputs read-only."""
    place = trial.place(side)
    inputs = read_only_inputs(trial.store, trial.plan, trial.commit(side)) if trial.request.sandbox else ()
    grants, environment = Grants(protected=inputs), measuring_environment(place.environment({}))

    def step(name: str, argv: tuple[str, ...], timeout_s: float, stdin: Path | None = None) -> Step:
        return Step(
            name=f"{side}:{name}",
            argv=place.fenced(argv, MEASURE, grants, sandbox=trial.request.sandbox),
            cwd=place.tree,
            env=environment,
            timeout_s=timeout_s,
            stdin=stdin,
            cpus=spare(trial.plan.devices),
        )

    for number, (name, command) in enumerate(_commands(trial), before + 1):
        if command is None:
            printed = trial.folder / BUILD / f"{number - 1}-stdout"
            yield step(name, ("sh", "-c", WITHIN, "sh", str(place.tree)), WITHIN_S, printed)
        else:
            yield step(name, ("sh", "-c", command.run), command.timeout_s)


def _commands(trial: Trial) -> Iterator[tuple[str, Command | None]]:
    """The plan's commands for a checkout, by the names in `CAUSES`; None for our own, which follows the probe."""
    commands = trial.plan.commands
    if commands.setup:
        yield "set-up", commands.setup
    if commands.probe:
        yield from (("probe", commands.probe), ("place", None))
    if commands.build:
        yield "build", commands.build
    if commands.smoke:
        yield "smoke", commands.smoke


def _broken(trial: Trial, step: StepResult) -> Built:
    side, _, name = step.name.partition(":")
    output = trial.said(step)
    why = f"{name}: {step.exit}"
    if name == "place":
        why = f"the target does not resolve inside of the checkout: {output.head.strip() or step.exit}"
    return _failed(CAUSES[name], Side(side), why, output)


def compared(trial: Trial) -> Built:
    """Whether all grading inputs are what they were; what the base's own steps write anew is a habit."""
    changed, habits = touched(trial.store, trial.place(Side.BASE), trial.request.base, trial.plan)
    if changed:
        return _failed(Cause.TAMPERED, Side.BASE, f"its own steps changed {named(changed)}")
    changed, anew = touched(trial.store, trial.place(Side.CANDIDATE), trial.request.candidate, trial.plan)
    if names := dict.fromkeys([*changed, *(name for name in anew if name not in set(habits))]):
        return _failed(Cause.TAMPERED, Side.CANDIDATE, f"its steps changed {named(list(names))}")
    return Built()


def _failed(cause: Cause, side: Side, detail: str, output: Excerpt | None = None) -> Built:
    return Built(failed=cause, side=side, detail=detail[:500], output=output or Excerpt())


def _forget(trial: Trial) -> None:
    """Nothing of a build that was lost is used again."""
    trial.drop()
    discard(trial.folder / BUILD, trial.folder)
    sweep(trial.folder)
