"""`make bench`: what a goal run costs beside a bare shell script, in pairs that take turns."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

from orch.activities.sandbox.registry import probe
from orch.worker.connection import connect

from .contenders import Bare, Orch, Sample
from .histories import Trace, trace
from .report import Row, document, table, where
from .scene import AGENTS, Case, make_repository


def main() -> None:
    """Measure the matrix and print it."""
    options = _options()
    facts = {
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "sandbox": "on" if (flaw := probe()) is None else flaw.why,
        "slots": options.slots,
        "load": os.getloadavg()[0],
    }
    _say(", ".join(f"{name} {value}" for name, value in facts.items()))
    with tempfile.TemporaryDirectory(prefix="orch-bench-", dir=options.folder) as folder:
        rows = _measure(Path(folder), options)
    print(table(rows))
    for row in rows:
        if options.where or (row.case.agent, row.case.count) in {("no-op", max(options.counts)), ("5 s", 4)}:
            print(f"\n{where(row)}")
    if options.json:
        options.json.write_text(json.dumps(document(rows, facts), indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="N = 1 and 4, the small repository, one pair each")
    parser.add_argument("--repeat", type=int, default=3, help="pairs per cell (default 3)")
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 4, 16], help="candidates")
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 10_000], help="sizes of the repositories")
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS), help="kinds of agents")
    parser.add_argument("--slots", type=int, default=4, help="attempts at once, on both sides (default 4)")
    parser.add_argument("--where", action="store_true", help="say of every cell where its time went")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    parser.add_argument("--folder", type=Path, help="where to work (default: the system's temporary folder)")
    options = parser.parse_args()
    if options.quick:
        options.counts, options.files, options.repeat = [1, 4], [1_000], 1
    return options


def _measure(folder: Path, options: argparse.Namespace) -> list[Row]:
    bare, orch = Bare(folder / "bare", options.slots), Orch(folder / "state", options.slots)
    repositories = {files: make_repository(folder / f"repo-{files}", files) for files in options.files}
    orch.up()
    try:
        for files, repo in repositories.items():
            warm = Case(repo, files, "no-op", 1)
            _pair(bare, orch, warm, 0)
        cases = [
            Case(repo, files, agent, count)
            for files, repo in repositories.items()
            for agent in options.agents
            for count in options.counts
        ]
        return [_row(bare, orch, case, options.repeat) for case in cases]
    finally:
        orch.down()


def _row(bare: Bare, orch: Orch, case: Case, repeat: int) -> Row:
    pairs = [_pair(bare, orch, case, turn) for turn in range(repeat)]
    row = Row(case, pairs, asyncio.run(_trace(orch, pairs[-1][1])))
    _say("  ".join(row.cells()))
    return row


def _pair(bare: Bare, orch: Orch, case: Case, turn: int) -> tuple[Sample, Sample]:
    """One run of each, right after one another; who is first takes turns."""
    if turn % 2:
        second = orch.run(case)
        return bare.run(case), second
    return bare.run(case), orch.run(case)


async def _trace(orch: Orch, sample: Sample) -> Trace:
    return await trace(await connect(orch.home, environ={}), sample)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # the Temporal client's threads can abort a finalising interpreter (sdk-python#300)
