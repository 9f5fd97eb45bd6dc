"""The two contenders: `orch start goal`, and a shell script that does the same by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    """One run.

    Attributes:
        wall_s: seconds from start to end of the command.
        cpu: seconds (user and system) by who used them; processes that outlive the command included.
        started_at: Unix time.
        run: the run's id.
    """

    wall_s: float
    cpu: Mapping[str, float]
    started_at: float
    run: str = ""

    @property
    def cpu_s(self) -> float:
        """CPU seconds of everything that worked."""
        return sum(self.cpu.values())


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
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "PYTHON"))}
        cache = {"PYTHONPYCACHEPREFIX": str(state.with_name("pycache"))}  # compiled once, as where orch is installed
        self._env = {**kept, **cache, "ORCH_STATE": str(state), "ORCH_SLOTS": str(slots)}

    def up(self) -> None:
        """Start the engine."""
        subprocess.run(_orch("up"), env=self._env, check=True, capture_output=True)

    def down(self) -> None:
        """Stop the engine."""
        subprocess.run(_orch("down"), env=self._env, check=True, capture_output=True)

    def run(self, case: Case) -> Sample:
        """One run of a case; its answer is taken away again."""
        before = self._engine_cpu()
        sample, stdout = self.start(case.repo, CHECK, f"cmd:{AGENTS[case.agent]}", case.count)
        time.sleep(SETTLE_S)
        after = self._engine_cpu()
        reset(case.repo)
        cpu = {**sample.cpu, **{name: after[name] - before[name] for name in after}}
        if min(cpu.values()) < 0:
            raise SystemExit("the worker was replaced meanwhile: leave orch's code alone while it is measured")
        return replace(sample, cpu=cpu, run=json.loads(stdout)["id"])

    def start(self, repo: Path, check: str, agent: str, count: int) -> tuple[Sample, bytes]:
        """A run to its end: the command's time and what it printed."""
        argv = _orch(
            "start", "goal", "write the answer", "--verify", check, "--agent", agent, "-n", str(count), "--json"
        )
        return _timed(argv, repo, self._env)

    def said(self, *args: str) -> bytes:
        """What the command line prints to an order."""
        return subprocess.run(_orch(*args), env=self._env, check=True, capture_output=True).stdout

    def _engine_cpu(self) -> dict[str, float]:
        """CPU seconds so far of the server, of the worker, and of all that the worker started and that has ended."""
        server, worker = read_server(self.home), read_worker(self.home)
        assert server
        assert worker
        own, started = psutil.Process(server.pid).cpu_times(), psutil.Process(worker.pid).cpu_times()
        return {
            "engine": own.user + own.system,
            "worker": started.user + started.system,
            "worker's processes": started.children_user + started.children_system,
        }


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
    return Sample(wall, {"command": usage.ru_utime + usage.ru_stime}, started_at), stdout


def _drain(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Read both pipes to their end, without waiting for the process: its usage is still to be had."""
    assert process.stdout
    assert process.stderr
    stdout = process.stdout.read()
    return stdout, process.stderr.read()
