from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orch.activities.home import Home
from orch.worker.records import read_server, read_worker

pytestmark = pytest.mark.engine

WORKER = (sys.executable, "-m", "orch.worker.main")


def worker(home: Home, **variables: str) -> subprocess.Popen[str]:
    env = {**os.environ, "ORCH_STATE": str(home.root), **variables}
    return subprocess.Popen(WORKER, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def events(err: str) -> list[str]:
    """Every line of the log is a JSON object; here are their events."""
    return [json.loads(line)["event"] for line in err.splitlines()]


def test_a_second_worker_is_refused_by_the_first_ones_pid(shared_home: Home) -> None:
    second = worker(shared_home)
    out, err = second.communicate(timeout=60)
    first = read_worker(shared_home)
    assert first is not None
    assert (second.returncode, out) == (2, "")
    assert str(first.pid) in err
    assert events(err) == ["worker_refused"]


def test_a_worker_without_an_engine_ends_with_status_3(tmp_path: Path) -> None:
    alone = worker(Home(tmp_path / "state"))
    _, err = alone.communicate(timeout=60)
    assert alone.returncode == 3
    assert "orch up" in err


def test_a_worker_whose_keys_are_missing_or_open_to_others_does_not_start(shared_home: Home, tmp_path: Path) -> None:
    record = read_server(shared_home)
    assert record is not None
    keys = tmp_path / "keys"
    said = []
    for _ in range(2):
        refused = worker(Home(tmp_path / "state"), TEMPORAL_ADDRESS=record.address, ORCH_KEYS=str(keys))
        said.append(refused.communicate(timeout=60)[1])
        assert refused.returncode == 2
        keys.write_text("k1 secret\n")
        keys.chmod(0o644)
    assert [events(err) for err in said] == [["worker_refused"], ["worker_refused"]]
    assert "is missing" in said[0]
    assert "open to other users" in said[1]


def test_a_worker_of_a_cluster_stops_on_term_with_status_0_and_an_empty_stdout(
    shared_home: Home, tmp_path: Path
) -> None:
    record = read_server(shared_home)
    assert record is not None
    served = worker(Home(tmp_path / "state"), TEMPORAL_ADDRESS=record.address)
    assert served.stderr is not None
    first = served.stderr.readline()
    assert json.loads(first)["event"] == "worker_started"
    time.sleep(0.2)
    served.send_signal(signal.SIGTERM)
    out, err = served.communicate(timeout=60)
    assert (served.returncode, out) == (0, "")
    assert events(err)[-1] == "worker_stopped"


def test_a_worker_that_would_refuse_every_run_does_not_start(tmp_path: Path) -> None:
    refused = worker(Home(tmp_path / "state"), ORCH_SANDBOX="nonsense")
    _, err = refused.communicate(timeout=60)
    assert (refused.returncode, events(err)) == (2, ["worker_refused"])
    assert "ORCH_SANDBOX" in err
