"""The command line as programs see it: exit statuses, JSON on stdout and nothing else, the same answer every time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from orch.activities.home import Home

pytestmark = [pytest.mark.engine]

Orch = Callable[..., "subprocess.CompletedProcess[str]"]

FIELDS = {
    "id", "kind", "status", "reason", "repo", "baseline", "contract_digest", "iterations", "promoted", "usage",
}  # fmt: skip
CANDIDATE_FIELDS = {
    "index", "status", "rungs_passed", "rungs_total", "changed", "tree", "usage", "reason",
}  # fmt: skip


def _environment(home: Home) -> dict[str, str]:
    return {**os.environ, "ORCH_STATE": str(home.root), "NO_COLOR": "1"}


@pytest.fixture
def orch(engine_home: Home, project: Path) -> Orch:
    """Run the installed program in the project."""

    def run(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "orch.cli.main", *args],
            cwd=project,
            env={**_environment(engine_home), **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def _start(*more: str) -> tuple[str, ...]:
    return ("start", "goal", "raise the level", "--verify", "grep -q 3 level", *more)


def test_success_is_0_and_both_documents_have_the_fields_of_the_design(orch: Orch) -> None:
    started = orch(*_start("-n", "4", "--json", "--agent", "cmd:true", "--agent", "cmd:echo 3 > level"))

    assert started.returncode == 0, started.stderr
    document = json.loads(started.stdout)
    shown = orch("show", document["id"], "--json")
    assert shown.returncode == 0
    assert json.loads(shown.stdout) == document
    assert document.keys() >= FIELDS
    assert document["reason"]["code"] == "done"
    (iteration,) = document["iterations"]
    assert iteration.keys() >= {"ordinal", "winner", "decided_by", "candidates"}
    assert len(iteration["candidates"]) == 4
    assert all(candidate.keys() >= CANDIDATE_FIELDS for candidate in iteration["candidates"])
    assert document["promoted"].keys() >= {"tree", "mode"}
    assert document["usage"].keys() >= {"tokens", "usd", "wall_s"}


def test_no_success_is_1(orch: Orch) -> None:
    ended = orch(*_start("--agent", "cmd:echo 1 > level", "--max-iterations", "1", "--json"))

    assert ended.returncode == 1
    assert json.loads(ended.stdout)["reason"]["code"] == "iteration_cap"


def test_refused_input_is_2_and_starts_nothing(orch: Orch, engine_home: Home) -> None:
    before = set((engine_home.root / "runs").glob("*"))

    refused = orch(*_start("--agent", "cmd:true", "--canidates", "4"))

    assert refused.returncode == 2
    assert "--candidates" in refused.stderr
    assert refused.stdout == ""
    assert set((engine_home.root / "runs").glob("*")) == before


def test_silent_engine_is_3(orch: Orch) -> None:
    silent = orch("list", TEMPORAL_ADDRESS="127.0.0.1:9")

    assert silent.returncode == 3
    assert "127.0.0.1:9" in silent.stderr


def test_interrupt_is_130_and_the_run_goes_on(orch: Orch, engine_home: Home, project: Path) -> None:
    start = _start("--agent", "cmd:sleep 3; echo 3 > level", "--id", "goal-int")
    argv = [sys.executable, "-m", "orch.cli.main", *start]
    process = subprocess.Popen(
        argv, cwd=project, env=_environment(engine_home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    prompt = engine_home.run("goal-int") / "attempts/i1-c1-b1/prompt.md"
    while not prompt.exists():
        time.sleep(0.05)

    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "goal-int" in said
    watched = orch("watch", "goal-int", "--json")
    assert watched.returncode == 0
    events = [json.loads(line) for line in watched.stdout.splitlines()]
    assert events[-1]["type"] == "run_ended"
    assert (project / "level").read_text() == "3\n"


@pytest.mark.parametrize("times", [3, pytest.param(50, marks=pytest.mark.soak)])
def test_short_command_gives_the_same_status_and_only_json_every_time(orch: Orch, times: int) -> None:
    """The client's threads can abort a finalising interpreter (sdk-python#300): one in eight did."""
    run = json.loads(orch(*_start("--agent", "cmd:echo 3 > level", "--id", "goal-same", "--json")).stdout)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: orch("show", "goal-same", "--json"), range(times)))

    assert [answer.returncode for answer in answers] == [0] * times
    assert all(json.loads(answer.stdout) == run for answer in answers)


@pytest.mark.parametrize("command", [("list",), ("status",), ("schedule", "list"), ("doctor",), ("gc", "--dry-run")])
def test_stdout_holds_only_json(orch: Orch, command: tuple[str, ...]) -> None:
    answer = orch(*command, "--json")

    assert answer.returncode == 0, answer.stderr
    assert _documents(answer.stdout)


def _documents(text: str) -> list[Any]:
    return [json.loads(text)] if text.strip() else []
