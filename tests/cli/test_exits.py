"""Exit statuses of the real process, with data on stdout and talk on stderr."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from orch.cli import look
from orch.cli.exits import REFUSALS, ExitStatus, status_of
from orch.cli.main import cli
from orch.workflows.model.reason import Reason, RunReason
from orch.workflows.model.view import RunStatus, RunView

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(state: Path) -> Run:
    """Run `python -m orch.cli.main ARGS` to its end."""

    def call(*args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "orch.cli.main", *args],
            cwd=cwd,
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return call


def test_success_is_0(run: Run) -> None:
    assert run("--version").returncode == 0


def test_list_of_nothing_is_0_and_json(run: Run) -> None:
    done = run("list", "--json")

    assert (done.returncode, json.loads(done.stdout)) == (0, [])


def test_refused_input_is_2_and_leaves_stdout_empty(run: Run, tmp_path: Path) -> None:
    done = run("start", "goal", "x", "--verify", "true", "--agent", "cmd:true", "--json", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert "not a git repository" in done.stderr


def test_unknown_option_is_2_and_offers_the_nearest(run: Run) -> None:
    done = run("list", "--jsn")

    assert done.returncode == 2
    assert "--json" in done.stderr


def test_unreachable_engine_is_3(run: Run) -> None:
    done = run("show", "goal-x", "--json", TEMPORAL_ADDRESS="127.0.0.1:1")

    assert (done.returncode, done.stdout) == (3, "")
    assert "no engine answers at 127.0.0.1:1" in done.stderr
    assert "hint: " in done.stderr


def test_deleted_folder_is_one_line_and_2(run: Run, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    script = f"mkdir {gone} && cd {gone} && rmdir {gone} && exec {sys.executable} -P -m orch.cli.main list"

    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 2
    assert done.stderr == "error: the current folder was deleted\nhint: cd to a folder that exists\n"


def test_closed_stdout_is_no_traceback(run: Run, state: Path) -> None:
    script = f"{sys.executable} -P -m orch.cli.main --help | true"

    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=False)

    assert "Traceback" not in done.stderr


def test_interrupted_command_is_130(tmp_path: Path, state: Path) -> None:
    """A cluster that takes connections and never answers keeps the command waiting."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "orch.cli.main", "watch", "goal-x"],
            env={**os.environ, "TEMPORAL_ADDRESS": address},
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = silent.accept()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        connection.close()

    assert process.returncode == 130
    assert "the run goes on" in said
    assert "orch watch goal-x" in said


def test_bug_is_70_with_versions_in_a_named_file(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(work: Any) -> Any:
        raise ZeroDivisionError("by \x1b nothing")

    monkeypatch.setattr(look, "ask", broken)

    done = CliRunner().invoke(cli, ["list"])

    assert done.exit_code == 70
    assert "a bug in orch" in done.stderr
    assert "\x1b" not in done.stderr
    report = Path(done.stderr.split("report it with ")[1].split(";")[0])
    text = report.read_text()
    report.unlink()
    assert "ZeroDivisionError" in text
    assert "temporalio" in text


@pytest.mark.soak
def test_same_status_every_time(run: Run) -> None:
    """The client's threads can abort a finalising interpreter (sdk-python#300); five are what a test can wait for."""
    with ThreadPoolExecutor(5) as threads:
        calls = [threads.submit(run, "show", "x", TEMPORAL_ADDRESS="127.0.0.1:1") for _ in range(5)]
        statuses = {call.result().returncode for call in calls}

    assert statuses == {3}


@pytest.mark.parametrize("code", RunReason, ids=lambda code: code.value)
def test_status_follows_from_how_a_run_ended(code: RunReason) -> None:
    ended = RunView(
        id="r", kind="goal", status=RunStatus.FAILED, reason=Reason(code=code), goal="", repo="", started_at=""
    )

    assert status_of(ended) is (ExitStatus.REFUSED if code in REFUSALS else ExitStatus.UNSUCCESSFUL)
    assert status_of(ended.model_copy(update={"status": RunStatus.SUCCEEDED})) is ExitStatus.SUCCEEDED
