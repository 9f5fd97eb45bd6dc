"""Run an agent in a place: prompt on stdin and by file, supervised, fenced, read by its adapter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...workflows.model.attempt import AgentReport
from ...workflows.model.verdict import Excerpt
from ..effect import in_thread, kill_requested
from ..excerpts import excerpt
from ..jobs import Job, Step, StepResult, end_job, run_job
from ..places import Place
from .adapter import Reading
from .registry import resolve

AGENT = "agent"
"""The folder of the agent's job, below the place's."""

PROMPT = "prompt.md"
PRIVATE = "private"
"""The agent's own folder for files that are no part of its work, such as its usage report."""


@dataclass(frozen=True)
class AgentRun:
    """What to run.

    Attributes:
        place: where; its folder holds the working copy (`tree`) and the prompt.
        agent: the agent's spec.
        writable: what it may write besides its working copy and its private folders.
        env: variables added to the place's.
        deadline: absolute Unix time at which it is stopped.
        sandbox: whether it runs in the sandbox.
    """

    place: Place
    agent: str
    writable: tuple[Path, ...]
    env: Mapping[str, str]
    deadline: float
    sandbox: bool


async def run_supervised(run: AgentRun) -> tuple[AgentReport, Path]:
    """Start the agent under its supervisor, or attach to the one already running.

    Returns how it ended, and the file with all it printed (missing when it never started). A cancellation ends the
    agent and is no error here, so that what it used is known; the workflow stops before the next step.
    """
    place, agent = run.place, resolve(run.agent)
    prompt, private, tree = place.folder / PROMPT, place.folder / PRIVATE, place.folder / "tree"
    private.mkdir(parents=True, exist_ok=True)
    call = agent.adapter.call(agent.argument, private)
    step = Step(
        name=AGENT,
        argv=place.fenced(call.argv, tree, private, *run.writable, sandbox=run.sandbox, network=True),
        cwd=tree,
        env=place.environment({"ORCH_PROMPT_FILE": str(prompt), **run.env, **call.env}),
        timeout_s=max(0.0, run.deadline - time.time()),
        stdin=prompt,
    )
    result = await _to_its_end(place.folder / AGENT, Job(steps=(step,), deadline=run.deadline))
    return _report(place, result, agent.adapter.read(private, result.stdout)), result.stdout


async def _to_its_end(folder: Path, job: Job) -> StepResult:
    """Wait for the job; cancelled for good, end it and return what it came to: what it used is still owed."""
    try:
        (result,) = await run_job(folder, job)
    except asyncio.CancelledError:
        if not kill_requested():
            raise
        await in_thread(end_job, folder)
        (result,) = await run_job(folder, job)
    return result


def _report(place: Place, result: StepResult, reading: Reading) -> AgentReport:
    """Put together what the process did and what it said of itself; wall time is ours."""

    def words(path: Path) -> Excerpt:
        return excerpt(path, run_folder=place.home.run(place.key.run)) if path.exists() else Excerpt()

    return AgentReport(
        exit=result.exit,
        usage=reading.usage.model_copy(update={"wall_s": round(result.wall_s, 3)}),
        session=reading.session,
        message=reading.message,
        stdout=words(result.stdout),
        stderr=words(result.stderr),
    )
