"""`python -m tests.bench.rounds`: what handing over costs a lane, and how soon its ticket is queued."""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import structlog
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from orch.activities.home import Home
from orch.activities.lanes.intake import Intake
from orch.worker import engine
from orch.worker.connection import connect
from orch.worker.state import open_state

from .rounds_scene import RUN, EmptyRound, Lane
from .workspaces_repo import make_repository

QUEUE = "bench"
POLL_S = 0.002
PATIENCE_S = 30.0

SUBMITTING = """\
| files | changed | `git status` ms | `submit` ms | ratio | CPU ratio | `submit` CPU ms | the same again ms |
|---|---|---|---|---|---|---|---|"""

ROUND_TRIPS = """
| files | changed | `submit` ms | from there to `queued` ms | both ms |
|---|---|---|---|---|"""


def main() -> None:
    """Measure and print; the process ends at once, as the SDK's threads may not."""
    options = _options()
    os.environ["PATH"] = f"{Path(sys.executable).resolve().parent}:{os.environ['PATH']}"  # no shim of a version manager
    structlog.configure(processors=[], logger_factory=structlog.ReturnLoggerFactory())
    with tempfile.TemporaryDirectory(prefix="orch-bench-", dir=options.folder) as name:
        lanes = {
            size: Lane.make(Home(Path(name) / f"state{size}"), make_repository(_made(Path(name) / str(size)), size))
            for size in options.files
        }
        print(SUBMITTING)
        for size, lane in lanes.items():
            for count in options.changes:
                _print_row(f"{size:,}", str(count), *_submitting(lane, count, options.repeat))
        print(ROUND_TRIPS)
        for size, lane in lanes.items():
            for count in options.changes:
                _print_row(f"{size:,}", str(count), *asyncio.run(_round_trips(lane, count, options.repeat)))
    sys.stdout.flush()
    os._exit(0)


def _submitting(lane: Lane, count: int, repeat: int) -> tuple[str, ...]:
    """`git status` and `submit` in turns, on files changed anew each time."""
    bare, ours, again = list[Cost](), list[Cost](), list[Cost]()
    for turn in range(repeat):
        lane.edit(turn, count)
        steps: list[tuple[list[Cost], Callable[[], object]]] = [(bare, lane.status), (ours, lane.submit)]
        for costs, step in steps[:: 1 if turn % 2 else -1]:
            costs.append(_cost(step))
        again.append(_cost(lane.submit))
    wall = [mine.wall / plain.wall for mine, plain in zip(ours, bare, strict=True)]
    cpu = [mine.cpu / plain.cpu for mine, plain in zip(ours, bare, strict=True)]
    walls = (_shown([cost.wall for cost in costs]) for costs in (bare, ours))
    ratios = (_shown(values, scale=1, form=".1f") for values in (wall, cpu))
    return (*walls, *ratios, _shown([cost.cpu for cost in ours]), _shown([cost.wall for cost in again]))


async def _round_trips(lane: Lane, count: int, repeat: int) -> tuple[str, ...]:
    """How long until the wrapper ends, and from then until the ticket's state is written up."""
    open_state(lane.home)
    await engine.ensure_up(lane.home)
    client = await connect(lane.home)
    activities = [Intake(lane.home).take_in]
    runner = UnsandboxedWorkflowRunner()
    worker = Worker(client, task_queue=QUEUE, workflows=[EmptyRound], activities=activities, workflow_runner=runner)
    async with worker:
        handle = await client.start_workflow("Round", lane.request(), id=RUN, task_queue=QUEUE)
        handed, queued = [], []
        for turn in range(repeat + 1):
            lane.edit(1000 * count + turn, count)
            begun = time.perf_counter()
            ticket = await asyncio.to_thread(lane.submit)
            put = time.perf_counter()
            async with asyncio.timeout(PATIENCE_S):
                while not lane.told(ticket).exists():
                    await asyncio.sleep(POLL_S)
            handed.append(put - begun)
            queued.append(time.perf_counter() - put)
        await handle.terminate()
    await engine.down(lane.home)
    both = [first + second for first, second in zip(handed, queued, strict=True)]
    return _shown(handed[1:]), _shown(queued[1:]), _shown(both[1:])  # the first one warms everything up


class Cost(NamedTuple):
    """Seconds: on the clock, and of processors."""

    wall: float
    cpu: float


def _cost(step: Callable[[], object]) -> Cost:
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    step()
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _shown(values: Sequence[float], *, scale: float = 1000, form: str = ".0f") -> str:
    least, middle, most = (scale * value for value in (min(values), statistics.median(values), max(values)))
    return f"{middle:{form}} [{least:{form}}-{most:{form}}]"


def _print_row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 10_000], help="sizes of the repository")
    parser.add_argument("--changes", type=int, nargs="+", default=[1, 100], help="how many files a lane changed")
    parser.add_argument("--repeat", type=int, default=10, help="turns of each measurement")
    parser.add_argument("--folder", help="where the repositories go; a disk that takes overlays is not needed")
    return parser.parse_args()


if __name__ == "__main__":
    main()
