"""The ladder as a job: rungs become steps, results become facts."""

from __future__ import annotations

import json
from pathlib import Path

from ...workflows.model.contract import Contract, Rung
from ...workflows.model.verdict import Excerpt, RungResult
from ..agents import secrets
from ..excerpts import excerpt
from ..jobs import Job, Step, StepResult
from ..places import Grants, Place
from ..sandbox import MEASURE
from .inputs import read_only_inputs
from .surroundings import measuring_environment

JOB = "rungs"
"""The folder of the ladder's job, below the place's."""

PROGRESS_LIMIT = 4096


def ladder_job(place: Place, contract: Contract, *, gate: bool, sandbox: bool) -> Job:
    """All rungs in order; a gate stops at the first that does not pass, a ranking runs every one."""
    protected = read_only_inputs(place, contract) if sandbox else ()
    steps = tuple(_step(place, rung, number, protected, sandbox=sandbox) for number, rung in enumerate(contract.rungs))
    return Job(steps=steps, stop_on_failure=gate, hidden=secrets.hidden(place.home, place.key.run))


def rung_result(place: Place, number: int, step: StepResult) -> RungResult:
    """Read what a rung left; only a rung that did not pass keeps excerpts of its output."""
    run_folder = place.home.run(place.key.run)
    words = {} if step.exit.ok else {"stdout": _read(step.stdout, run_folder), "stderr": _read(step.stderr, run_folder)}
    return RungResult(
        name=step.name,
        exit=step.exit,
        wall_s=round(step.wall_s, 3),
        progress=read_progress(_progress_file(place, number)),
        **words,
    )


def _step(place: Place, rung: Rung, number: int, protected: tuple[str, ...], *, sandbox: bool) -> Step:
    progress = _progress_file(place, number)
    progress.parent.mkdir(parents=True, exist_ok=True)
    grants = Grants(writable=(progress.parent,), protected=protected, network=rung.network)
    return Step(
        name=rung.name,
        argv=place.fenced(("sh", "-c", rung.run), MEASURE, grants, sandbox=sandbox),
        cwd=place.tree,
        env=measuring_environment(place.environment({"ORCH_PROGRESS_FILE": str(progress)})),
        timeout_s=rung.timeout_s,
    )


def _read(path: Path, run_folder: Path) -> Excerpt:
    return excerpt(path, run_folder=run_folder) if path.exists() else Excerpt()


def _progress_file(place: Place, number: int) -> Path:
    """The file in which a rung reports progress, in a folder that the others' commands do not see."""
    return place.folder / "progress" / str(number) / "progress.json"


def read_progress(path: Path) -> tuple[int, int] | None:
    """Read `{"passed": P, "total": T}`; anything else is no progress report."""
    try:
        with path.open("rb") as file:
            report = json.loads(file.read(PROGRESS_LIMIT))
        passed, total = report["passed"], report["total"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    sound = type(passed) is int and type(total) is int and 0 <= passed <= total
    return (passed, total) if sound else None
