"""S21: agents and checks that print without end cost neither memory nor the result; the log is capped and says so."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from orch import Client
from orch.activities.supervisor import CAP, TAIL
from orch.worker.records import read_worker
from orch.workflows.model.view import RunStatus

pytestmark = [pytest.mark.engine]

Talks = Callable[..., str]

MIB = 1 << 20
EACH = 96 * MIB
FLOOD = f"yes \"$(printf '%4000s' y)\" | head -c {EACH}; echo"
MARKER = re.compile(rb"\n\[orch: (\d+) bytes of output dropped here\]\n")


async def test_four_flooding_agents_and_checks_leave_the_worker_small_and_their_last_words_count(
    client: Client, project: Path, talks: Talks
) -> None:
    streaming = talks(
        f"begin; say one 10; {FLOOD}; echo 3 > level; echo $ORCH_CANDIDATE > mine; say two 5; stop", max_turns=9
    )
    agents = (streaming, f"cmd:{FLOOD}; {{ {FLOOD}; }} >&2; echo 3 > level; echo $ORCH_CANDIDATE > mine")
    check = f"grep -q 3 level && {{ {FLOOD}; }}"
    async with _worker_growth(client) as growth:
        run = await client.start_goal(
            goal="flood", repo=project, verify=(check,), agent=agents, candidates=4, promote="none"
        )
        view = await client.result(run)

    folder = client.home.run(run)
    logs = {path: (path.stat().st_size, _dropped(path)) for path in folder.rglob("*-std*") if path.stat().st_size > MIB}
    shutil.rmtree(folder / "attempts")  # half a gigabyte
    assert view.status is RunStatus.SUCCEEDED
    candidates = view.iterations[0].candidates
    assert [(c.outcome, c.rungs_passed) for c in candidates] == [("done", 1)] * 4
    assert [(c.usage.tokens, c.turns, c.message) for c in candidates[::2]] == [(15, 2, "done")] * 2
    assert max(growth) < 200 * MIB
    assert len(logs) == 2 + 4 + 5  # both streams of a command; each candidate's check and the gate's
    assert all(size < CAP + TAIL + 100 and size + dropped >= EACH for size, dropped in logs.values())


@asynccontextmanager
async def _worker_growth(client: Client) -> AsyncIterator[list[int]]:
    """By how many bytes the worker was larger than at the beginning, ten times a second."""
    await client.list()  # brings it up
    record = read_worker(client.home)
    assert record is not None
    worker = psutil.Process(record.pid)
    before, sizes = worker.memory_info().rss, [0]

    async def watch() -> None:
        while True:
            sizes.append(worker.memory_info().rss - before)
            await asyncio.sleep(0.1)

    watching = asyncio.create_task(watch())
    try:
        yield sizes
    finally:
        watching.cancel()


def _dropped(log: Path) -> int:
    """How many bytes the marker in a log's last part says were dropped."""
    with log.open("rb") as file:
        file.seek(CAP - 1)
        found = MARKER.search(file.read())
    return int(found[1]) if found else 0
