"""What it costs to follow agents that talk a lot: memory of worker and supervisors, CPU of the worker.

    python -m tests.bench.streams [--gigabytes 1] [--rate 10000] [--seconds 20]

Two runs through the real command line, engine, worker and sandbox: four agents at once that print a gigabyte each,
then one agent that prints 10,000 events a second. Memory is the resident set, sampled; CPU is the worker's own.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from orch.activities.supervisor import PROGRAM
from orch.worker.records import read_worker

from .contenders import Orch
from .scene import CHECK, make_repository, reset

EVERY_S = 0.1
CHATTY = Path(__file__).with_name("chatty.py")


class Watch:
    """Samples the resident memory of the worker and of its supervisors while it is open."""

    def __init__(self, worker: int) -> None:
        self._worker = psutil.Process(worker)
        self._over = threading.Event()
        self.before = self._worker.memory_info().rss
        self.most_worker, self.most_supervisor, self.supervisors = self.before, 0, 0

    @contextmanager
    def open(self) -> Iterator[None]:
        """Sample until the block ends."""
        thread = threading.Thread(target=self._sample)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _sample(self) -> None:
        while not self._over.wait(EVERY_S):
            self.most_worker = max(self.most_worker, self._worker.memory_info().rss)
            sizes = list(self._of_supervisors())
            self.supervisors = max(self.supervisors, len(sizes))
            self.most_supervisor = max([self.most_supervisor, *sizes])

    def _of_supervisors(self) -> Iterator[int]:
        for process in psutil.process_iter(["cmdline"]):
            if PROGRAM in (process.info["cmdline"] or ()):
                try:
                    yield process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue


def main() -> None:
    """Measure both and print what was found."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="orch-bench-", dir=options.folder) as name:
        folder = Path(name)
        repo, orch = make_repository(folder / "repo", 20), Orch(folder / "state", 4)
        program = _program(folder)
        orch.up()
        try:
            size = int(options.gigabytes * 2**30)
            print(_measured(orch, repo, f"{program} bytes={size}", 4, f"4 agents, {options.gigabytes:g} GB each"))
            talk = f"{program} rate={options.rate} seconds={options.seconds}"
            print(_measured(orch, repo, talk, 1, f"1 agent, {options.rate:,} events/s for {options.seconds:g} s"))
        finally:
            orch.down()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.streams", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--folder", type=Path, help="where to work (default: the system's temporary folder)")
    return parser.parse_args()


def _program(folder: Path) -> Path:
    """A folder for one executable file each way of talking."""
    programs = folder / "bin"
    programs.mkdir()
    return programs / "talk"


def _measured(orch: Orch, repo: Path, talk: str, count: int, title: str) -> str:
    program, *settings = talk.split()
    lines = [f"export CHATTY_{key.upper()}={value}" for key, _, value in (pair.partition("=") for pair in settings)]
    path = Path(program)
    path.write_text("\n".join(["#!/bin/sh", *lines, f'exec {sys.executable} {CHATTY} "$@"']) + "\n")
    path.chmod(0o755)
    worker = read_worker(orch.home)
    assert worker
    watch, before, begun = Watch(worker.pid), psutil.Process(worker.pid).cpu_times(), time.monotonic()
    with watch.open():
        orch.start(repo, CHECK, f"pi:talk,bin={path}", count)
    wall, after = time.monotonic() - begun, psutil.Process(worker.pid).cpu_times()
    reset(repo)
    cpu = after.user + after.system - before.user - before.system
    return (
        f"{title}: {wall:.1f} s; worker {watch.before >> 20} MiB before, at most {watch.most_worker >> 20} MiB, "
        f"{cpu:.1f} s of CPU ({100 * cpu / wall:.0f} % of one core); "
        f"{watch.supervisors} supervisors, at most {watch.most_supervisor >> 20} MiB each"
    )


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
