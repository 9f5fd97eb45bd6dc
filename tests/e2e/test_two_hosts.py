"""Two hosts, one engine: attempts spread by free slots, and a host that dies takes nothing with it but its own time."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities.git import Git
from orch.worker import search_attributes
from orch.worker.server import SWITCHES, binary

from .networks import Host, two_hosts

pytestmark = pytest.mark.engine

SLOTS = {"state-a": 3, "state-b": 5}
AWAY = "3s"

AGENT = """cmd:echo '{"tokens_in": 100}' > $ORCH_USAGE_FILE
case $ORCH_TMP in
  */state-b/*) if mkdir FOLDER/first; then echo 9 > level; else touch FOLDER/hangs-$ORCH_CANDIDATE; sleep 100; fi ;;
  *) echo 1 > level ;;
esac"""
"""On the second host the first attempt does best, and all others hang."""


def _orch(host: Host, *args: str) -> str:
    return host.run(sys.executable, "-m", "orch.cli.main", *args)


def _until(there: Callable[[], bool], what: str, *, within_s: float = 25.0) -> None:
    end = time.monotonic() + within_s
    while not there():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def _serve(host: Host) -> None:
    host.start(sys.executable, "-m", "orch.worker.main", log=host.state.parent / f"{host.name}.log")


def _set_up(hosts: tuple[Host, Host], tmp_path: Path) -> None:
    """One engine on the first host, one worker on each."""
    engine = f"{hosts[0].address}:7233"
    for host in hosts:
        host.env = {
            **os.environ,
            "ORCH_STATE": str(host.state),
            "ORCH_SLOTS": str(SLOTS[host.name]),
            "ORCH_EXCHANGE": (tmp_path / "shared").as_uri(),
            "ORCH_HOST_AWAY": AWAY,
            "TEMPORAL_ADDRESS": engine,
            "ORCH_INSECURE_ENGINE": "1",
        }
    argv = [str(binary()), "server", "start-dev", "--headless", "--ip", "0.0.0.0", "--port", "7233"]
    argv += [part for name in search_attributes.NAMES for part in ("--search-attribute", f"{name}=Keyword")]
    argv += [part for switch in SWITCHES for part in ("--dynamic-config-value", switch)]
    log = tmp_path / "engine.log"
    hosts[0].start(*argv, "--log-level", "error", log=log)
    _until(lambda: _listens(hosts[0]), "the engine does not listen")
    for host in hosts:
        _serve(host)
    for host in hosts:
        log = tmp_path / f"{host.name}.log"
        _until(lambda log=log: b"worker_started" in log.read_bytes(), f"{log}: no worker")  # type: ignore[misc]


def _listens(host: Host) -> bool:
    return ":1C41 " in host.run("cat", "/proc/net/tcp")  # 7233


def test_host_that_dies_is_charged_and_replaced_and_what_it_reported_survives(
    make_repo: Callable[..., Path], tmp_path: Path
) -> None:
    repo, shared = make_repo(tmp_path / "project", {"level": "0\n"}), tmp_path / "shared"
    shared.mkdir()
    with two_hosts(tmp_path) as (home, other):
        _set_up((home, other), tmp_path)
        agent = AGENT.replace("FOLDER", str(tmp_path))
        start = ("start", "goal", "raise the level", "--repo", str(repo), "--verify", "grep -q 9 level")
        run = json.loads(_orch(home, *start, "--agent", agent, "-n", "8", "--no-sandbox", "--detach", "--json"))["id"]
        _until(lambda: len(list(tmp_path.glob("hangs-*"))) == 4, "the second host is not full")
        _until(lambda: _orch(home, "ledger", run, "--json").count("candidate_measured") == 4, "no results yet")

        assert other.kill() > 4
        gone = other.state.rename(tmp_path / "unreadable")
        events = [json.loads(line) for line in _orch(home, "watch", run, "--json").splitlines()]

        view = json.loads(_orch(home, "show", run, "--json"))
        _check_outcome(view, events)
        assert (repo / "level").read_text() == "9\n"
        winner = str(view["iterations"][0]["winner"])
        assert "+9" in _orch(home, "diff", run, "--candidate", winner)
        assert "raise the level" in _orch(home, "logs", run, "--candidate", winner, "--prompt")
        ledger = home.state / "runs" / run / "ledger.jsonl"
        before = ledger.read_bytes()
        _check_return(other, gone, run)
        assert ledger.read_bytes() == before


def _check_outcome(view: dict[str, Any], events: list[dict[str, Any]]) -> None:
    assert (view["status"], view["usage"]["tokens"]) == ("succeeded", 800)
    candidates = view["iterations"][0]["candidates"]
    assert [c["rungs_passed"] for c in candidates].count(1) == 1
    first = [e["candidate"]["host"] for e in events if e["type"] == "candidate_measured"][:4]
    assert sorted(first) == ["state-a", "state-a", "state-a", "state-b"]
    replaced = [e for e in events if e["type"] == "attempt_replaced"]
    assert {(e["lost"]["failure"], e["lost"]["host"]) for e in replaced} == {("host_lost", "state-b")}
    assert sorted(e["attempt"]["binding"] for e in replaced) == [9, 10, 11, 12]
    assert Counter(c["host"] for c in candidates) == {"state-a": 7, "state-b": 1}
    assert sum(bool(c["replaced"]) for c in candidates) == 4


def _check_return(other: Host, gone: Path, run: str) -> None:
    """The host comes back with what it had: nothing counts twice, and nothing of it is left running."""
    gone.rename(other.state)
    _serve(other)
    _until((other.state / "runs" / run / "closed").exists, "leftovers are not cleared away")
    assert not list((other.state / "slots").glob("[0-9]*"))
    store = next((other.state / "stores").iterdir()) / "store.git"
    assert Git(store).ok("fsck")
