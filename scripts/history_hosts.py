"""Other hosts for the runs that `record_histories.py` records: workers with state directories of their own."""

# ruff: noqa: ASYNC110, ASYNC220, INP001, S108, S603 - a script with fixed places, and nothing else to do

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

from orch import Client
from orch.activities import jobs
from orch.activities.home import Home
from orch.worker.records import read_server

ROOT = Path("/tmp/orch-histories")
ROOT_OF_EXCHANGE = (ROOT / "exchange").as_uri()
AWAY = "3s"
"""How long a host may be away in these runs."""

_others: dict[str, subprocess.Popen[bytes]] = {}


async def share(_client: Client, _project: Path) -> None:
    """Make the artifact store."""
    (ROOT / "exchange").mkdir(exist_ok=True)


async def one_other_host(client: Client, project: Path) -> None:
    """Make the artifact store and start a host that will be lost."""
    await share(client, project)
    await _serve(client, "lost")


async def lose(_client: Client, run: str, _project: Path) -> None:
    """Kill the other host with its agents, once one works there."""
    state = Home(ROOT / "lost")
    async with asyncio.timeout(30):
        while not list(state.run(run).glob("attempts/*/prompt.md")):
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)
    _end("lost")
    for job in jobs.find_jobs(state.root):
        jobs.end_job(job)
    shutil.rmtree(state.root)


async def lose_and_offer_another(client: Client, run: str, project: Path) -> None:
    """Kill the other host, and start one that takes its place."""
    await lose(client, run, project)
    await _serve(client, "spare")
    await client.result(run)
    _end("spare")


async def _serve(client: Client, name: str) -> None:
    """A host with the label `there`."""
    server, state, log = read_server(client.home), ROOT / name, ROOT / f"{name}.log"
    state.mkdir()
    (state / "host-id").write_text(name)
    env = {"ORCH_STATE": str(state), "ORCH_LABELS": "there", "TEMPORAL_ADDRESS": server.address if server else ""}
    with log.open("wb") as out:
        argv = (sys.executable, "-P", "-m", "orch.worker.main")
        _others[name] = subprocess.Popen(argv, env={**os.environ, **env}, stdout=out, stderr=out)
    async with asyncio.timeout(30):
        while "worker_started" not in log.read_text():
            await asyncio.sleep(0.1)


def _end(name: str) -> None:
    worker = _others.pop(name)
    worker.kill()
    worker.wait()
