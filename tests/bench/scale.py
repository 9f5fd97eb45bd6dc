"""`python -m tests.bench.scale`: many candidates at once, large ones among them, and what runs leave for `orch gc`.

64 candidates of one run, all at once; one overwrites 10,000 files, one leaves a file of 500 MB. Then 200 small runs one
after another, a few at once, and `orch gc`: what it says it frees beside what `du` says.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from temporalio.client import Client as Temporal

from orch import Client
from orch.worker.connection import connect
from orch.worker.records import read_worker

from .contenders import Orch, Sample
from .histories import trace, typical
from .scene import ANSWER, CHECK, make_repository, reset
from .streams import Watch

FILES = 10_000
HEAVY = (
    "case $ORCH_CANDIDATE in "
    "{many}) find pkg* -type f -exec sed -i s/^/#/ {{}} + ;; "
    "{large}) head -c {bytes} /dev/urandom >large.bin ;; "
    "esac; sleep {stay}; echo $ORCH_CANDIDATE >{answer}"
)
"""A shell line; the sandbox hides most folders that a script could lie in."""

SETTLED_S = 2.0
AT_ONCE = 4
"""Small runs in flight."""


def main() -> None:
    """Measure and print."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="orch-scale-", dir=options.folder) as name:
        folder = Path(name)
        orch = Orch(folder / "state", options.candidates)
        orch.up()
        try:
            asyncio.run(_crowd(orch, folder, options))
            asyncio.run(_small_runs(orch, folder, options.runs))
            _collect(orch)
        finally:
            orch.down()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__)
    parser.add_argument("--candidates", type=int, default=64, help="candidates and slots (default 64)")
    parser.add_argument("--megabytes", type=int, default=500, help="size of the large file (default 500)")
    parser.add_argument("--stay", type=int, default=30, help="seconds an agent stays, so that all are there at once")
    parser.add_argument("--runs", type=int, default=200, help="small runs before gc (default 200)")
    parser.add_argument("--folder", type=Path, help="where to work (default: the system's temporary folder)")
    return parser.parse_args()


async def _crowd(orch: Orch, folder: Path, options: argparse.Namespace) -> None:
    """One run with all candidates at once; the last two are the heavy ones, so that a light one wins."""
    repo = make_repository(folder / "repo", FILES)
    numbers = {
        "many": options.candidates - 1,
        "large": options.candidates,
        "bytes": options.megabytes << 20,
        "stay": options.stay,
    }
    agent = HEAVY.format(answer=ANSWER, **numbers)
    worker = read_worker(orch.home)
    assert worker
    before, watch = disk(orch.home.root), Watch(worker.pid)
    with watch.open():
        sample, stdout = orch.start(repo, CHECK, f"cmd:{agent}", options.candidates)
    reset(repo)
    facts = json.loads(stdout)
    many = orch.said("diff", facts["id"], "--candidate", str(options.candidates - 1)).count(b"\ndiff --git ") + 1
    more = disk(orch.home.root) - before
    _say(
        f"{options.candidates} candidates at once, {FILES:,} files, one changes all, one adds {options.megabytes} MB: "
        f"{sample.wall_s:.1f} s, {facts['status']}; "
        f"worker {watch.before >> 20} MiB before, at most {watch.most_worker >> 20}; "
        f"at most {watch.supervisors} supervisors of {watch.most_supervisor >> 20} MiB; "
        f"disk {megabytes(more)} more; {many:,} changed paths recorded"
    )
    await _history(orch, replace(sample, run=facts["id"]))


async def _history(orch: Orch, sample: Sample) -> None:
    client = await _temporal(orch)
    events, size, parent_events, parent_size = typical(await trace(client, sample))
    whole = (await client.get_workflow_handle(sample.run).fetch_history()).events
    whole_size = sum(event.ByteSize() for event in whole)
    _say(
        f"history of a candidate {events:.0f} events, {size / 1000:.1f} kB; "
        f"of the run {len(whole)} events, {whole_size / 1000:.1f} kB "
        f"({parent_events:.1f} events and {parent_size / 1000:.1f} kB for each candidate)"
    )


async def _small_runs(orch: Orch, folder: Path, count: int) -> None:
    """Finished runs of one candidate each."""
    repo = make_repository(folder / "small", 100)
    gate, begun = asyncio.Semaphore(AT_ONCE), time.monotonic()
    async with Client.connect(orch.home.root) as client:

        async def one() -> str:
            async with gate:
                run = await client.start_goal(
                    goal="write the answer",
                    repo=repo,
                    verify=(CHECK,),
                    agent=(f"cmd:echo 1 >{ANSWER}",),
                    promote="none",
                )
                return (await client.result(run)).status

        found = await asyncio.gather(*(one() for _ in range(count)))
    spent = time.monotonic() - begun
    _say(f"{count} small runs, {AT_ONCE} at once: {spent:.0f} s, {sorted(set(found))}, {spent / count:.2f} s each")


def _collect(orch: Orch) -> None:
    """What gc says, foreseen and done, beside what the disk says."""
    before = disk(orch.home.root)
    foreseen = _gc(orch, "--dry-run")
    begun = time.monotonic()
    done = _gc(orch, "--yes")
    spent, after = time.monotonic() - begun, disk(orch.home.root)
    _say(
        f"gc: foreseen {megabytes(foreseen)}, said {megabytes(done)} in {spent:.1f} s; "
        f"du {megabytes(before)} before, {megabytes(after)} after: {megabytes(before - after)} freed"
    )
    time.sleep(SETTLED_S)
    old = _gc(orch, "--yes", "--older-than", "1s")
    last = disk(orch.home.root)
    _say(f"gc --older-than 1s: said {megabytes(old)}; du {megabytes(last)} after: {megabytes(after - last)} freed")


def _gc(orch: Orch, *args: str) -> int:
    """Bytes that `orch gc` names."""
    return int(json.loads(orch.said("gc", "--json", *args))["bytes"])


def disk(folder: Path) -> int:
    """Bytes that a folder takes, hard links counted once."""
    return int(subprocess.run(["du", "-sB1", folder], check=True, capture_output=True).stdout.split()[0])


def megabytes(count: int) -> str:
    """For people."""
    return f"{count / 1e6:,.1f} MB"


async def _temporal(orch: Orch) -> Temporal:
    return await connect(orch.home, environ={})


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
