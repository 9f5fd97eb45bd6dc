"""A job as values, and as the files of its folder: what is to run, and what ended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..workflows.model.exit import Exit
from . import supervisor
from .limits import StepLimits


@dataclass(frozen=True)
class Step:
    """One process of a job.

    Attributes:
        name: names the step in results.
        argv: the program and its arguments.
        cwd: where it starts; a missing folder means it is not started.
        env: its whole environment.
        timeout_s: wall seconds it may take.
        stdin: a file to read; None is an empty input.
        idle_s: seconds of silence on both streams after which it is stopped; None lets it be silent.
        signals: what stops it before KILL, with the seconds to react to each.
        limits: what all its processes together may use; it is killed the moment it uses more.
        cpus: the processors it is pinned to; empty for all that the worker may use.
    """

    name: str
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    timeout_s: float
    stdin: Path | None = None
    idle_s: float | None = None
    signals: tuple[tuple[str, float], ...] = supervisor.SIGNALS
    limits: StepLimits = field(default_factory=StepLimits.of_this_host)
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True)
class Job:
    """Steps in order.

    Attributes:
        steps: what to run.
        stop_on_failure: whether the first step that is not ok is the last one that has a result.
        deadline: absolute Unix time at which everything is ended; None is no deadline.
        hidden: secrets by name, which are kept out of the files of output.
        passed: descriptors of this process's that all steps get.
        held: descriptors of this process's that stay open as long as anything of the job may run; no step gets them.
    """

    steps: tuple[Step, ...]
    stop_on_failure: bool = False
    deadline: float | None = None
    hidden: Mapping[str, str] = field(default_factory=dict)
    passed: tuple[int, ...] = ()
    held: tuple[int, ...] = ()


@dataclass(frozen=True)
class StepResult:
    """How a step ended, with the files that hold its output (missing when it never started)."""

    name: str
    exit: Exit
    wall_s: float
    stdout: Path
    stderr: Path


def results_of(folder: Path) -> tuple[StepResult, ...]:
    """The steps of a job that ended so far, in order; none before the job is written down."""
    return results_by(step_names(folder), folder)


def step_names(folder: Path) -> tuple[str, ...]:
    """The names of all steps of a job; they never change."""
    try:
        return tuple(step["name"] for step in json.loads((folder / supervisor.JOB).read_bytes())["steps"])
    except FileNotFoundError:
        return ()


def results_by(names: Sequence[str], folder: Path) -> tuple[StepResult, ...]:
    """The same for who knows the names already: a job with many steps is long to read."""
    return tuple(
        StepResult(
            name=name,
            exit=Exit.model_validate(result["exit"]),
            wall_s=result["wall_s"],
            stdout=folder / f"{number}-stdout",
            stderr=folder / f"{number}-stderr",
        )
        for number, (name, result) in enumerate(zip(names, recorded_results(folder), strict=False), 1)
    )


def recorded_results(folder: Path) -> list[dict[str, Any]]:
    """What the supervisor noted of each step that ended; a torn line is left out."""
    results = []
    with suppress(FileNotFoundError):
        for line in (folder / supervisor.RESULTS).read_bytes().splitlines():
            with suppress(ValueError):  # torn by a power cut
                results.append(json.loads(line))
    return results


def seconds_of(folder: Path) -> float:
    """How long a job took, by a clock that nobody sets; of one whose supervisor was lost, what its ended steps took."""
    with suppress(FileNotFoundError):
        ended = json.loads((folder / supervisor.END).read_bytes())
        if (seconds := ended.get("wall_s")) is not None:
            return float(seconds)
    return sum(float(result["wall_s"]) for result in recorded_results(folder))


def recorded(job: Job) -> dict[str, Any]:
    """The job as the supervisor reads it."""
    steps = [
        {
            "name": step.name,
            "argv": list(step.argv),
            "cwd": str(step.cwd),
            "env": dict(step.env),
            "timeout_s": step.timeout_s,
            "stdin": None if step.stdin is None else str(step.stdin.absolute()),
            "idle_s": step.idle_s,
            "signals": step.signals,
            "limits": asdict(step.limits),
            "cpus": list(step.cpus),
        }
        for step in job.steps
    ]
    return {
        "steps": steps,
        "stop_on_failure": job.stop_on_failure,
        "deadline": job.deadline,
        "hidden": dict(job.hidden),
        "held": list(job.held),
    }
