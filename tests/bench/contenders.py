"""The two contenders: `orch start goal`, and a shell script that does the same by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from orch.activities.home import Home
from orch.worker.records import read_server, read_worker

from .scene import AGENTS, CHECK, Case, reset

SCRIPT = Path(__file__).with_name("bare.sh")
SETTLE_S = 0.3
"""What the engine still does right after a run belongs to that run."""


@dataclass(frozen=True)
class Sample:
    """One run: wall seconds, CPU seconds (user and system) of everything it made work, and the run's id."""

    wall_s: float
    cpu_s: float
    run: str = ""
    started_at: float = 0.0


class Bare:
    """The shell script, in a folder of its own."""

    def __init__(self, folder: Path, slots: int) -> None:
        self._folder, self._slots, self._runs = folder, slots, 0

    def run(self, case: Case) -> Sample:
        """One run of a case; its answer is taken away again."""
        self._runs += 1
        folder = self._folder / str(self._runs)
        folder.mkdir(parents=True)
        argv = ("sh", str(SCRIPT), str(case.count), str(self._slots), str(folder), AGENTS[case.agent], CHECK)
        sample, _ = _timed(argv, case.repo, os.environ)
        reset(case.repo)
        return sample


class Orch:
    """The real command line against an engine and a worker of its own."""

    def __init__(self, state: Path, slots: int) -> None:
        self.home = Home(state)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
        self._env = {**kept, "ORCH_STATE": str(state), "ORCH_SLOTS": str(slots)}

    def up(self) -> None:
        """Start the engine."""
        subprocess.run(_orch("up"), env=self._env, check=True, capture_output=True)

    def down(self) -> None:
        """Stop the engine."""
        subprocess.run(_orch("down"), env=self._env, check=True, capture_output=True)

    def run(self, case: Case) -> Sample:
        """One run of a case; its answer is taken away again."""
        argv = _orch(
            "start", "goal", "write the answer", "--verify", CHECK, "--agent", f"cmd:{AGENTS[case.agent]}",
            "-n", str(case.count), "--json",
        )  # fmt: skip
        before = self._engine_cpu()
        sample, stdout = _timed(argv, case.repo, self._env)
        time.sleep(SETTLE_S)
        view = json.loads(stdout)
        reset(case.repo)
        cpu = sample.cpu_s + self._engine_cpu() - before
        return Sample(sample.wall_s, cpu, view["id"], sample.started_at)

    def _engine_cpu(self) -> float:
        """CPU seconds so far of the server, and of the worker with all its ended children."""
        records = read_server(self.home), read_worker(self.home)
        return sum(sum(psutil.Process(record.pid).cpu_times()[:4]) for record in records if record)


def _orch(*args: str) -> tuple[str, ...]:
    return (str(Path(sys.executable).with_name("orch")), *args)


def _timed(argv: tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> tuple[Sample, bytes]:
    """Run a command to its end; raise when it fails."""
    started_at, begun = time.time(), time.perf_counter()
    with subprocess.Popen(argv, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        stdout, stderr = _drain(process)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)}: exit {process.returncode}\n{stdout.decode()}\n{stderr.decode()}")
    return Sample(wall, usage.ru_utime + usage.ru_stime, started_at=started_at), stdout


def _drain(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Read both pipes to their end, without waiting for the process: its usage is still to be had."""
    assert process.stdout
    assert process.stderr
    stdout = process.stdout.read()
    return stdout, process.stderr.read()
