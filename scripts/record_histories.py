#!/usr/bin/env python3
"""Record the histories that `tests/workflows/test_replay.py` replays, on a local engine of their own.

`python scripts/record_histories.py [CASE…]` writes tests/histories/<Workflow>/<way of ending>.json, all of them or
the named cases. Needed when a change of a workflow cannot replay the old ones any more, or for a new way of ending.
Everything runs under one neutral folder, so that no file names a place on the developer's disk.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from git import Actor, Repo
from history_cases import CASES, PROGRAMS, Case  # beside this script
from history_hosts import AWAY
from history_rounds import LEASES, ROUND_CASES, RoundCase, devices_held
from temporalio.client import Client as Temporal
from temporalio.client import WorkflowFailureError
from temporalio.service import RPCError

from orch import Client
from orch.activities.home import Home
from orch.cli.options import GoalOptions
from orch.cli.plan import resolve_goal
from orch.worker import engine
from orch.worker.state import host_id, open_state
from orch.workflows.host import ORCH_QUEUE
from orch.workflows.model.candidate import Candidate
from orch.workflows.model.event import CandidateMeasured
from orch.workflows.model.exit import ExitKind
from orch.workflows.model.goal import GoalRequest

ROOT = Path("/tmp/orch-histories")  # noqa: S108 - a fixed name keeps the recorded paths the same
TARGET = Path(__file__).resolve().parents[1] / "tests" / "histories"
USER = Actor("A User", "user@example.org")
SLOTS = "4"
FILES = {"level": "0\n", "notes.txt": "committed\n", "tests/check.sh": "exit 1\n"}


@contextmanager
def stage() -> Iterator[Home]:
    """A state directory with a running engine, under ROOT, and nothing of the developer's own settings."""
    shutil.rmtree(ROOT, ignore_errors=True)
    (ROOT / "home").mkdir(parents=True)
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "ORCH_METRICS"):
        os.environ.pop(name, None)
    os.environ |= {"HOME": str(ROOT / "home"), "GIT_CONFIG_GLOBAL": os.devnull, "ORCH_SLOTS": SLOTS}
    os.environ["ORCH_HOST_AWAY"] = AWAY
    os.environ |= {"OPENAI_API_KEY": "no-key", "ORCH_LEASES": LEASES}
    for name, lines in PROGRAMS.items():
        program = ROOT / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{lines}\n")
        program.chmod(0o755)
    home = Home(ROOT / "state")
    home.root.mkdir()
    (home.root / "host-id").write_text("recorder\n")
    open_state(home)
    asyncio.run(engine.ensure_up(home))
    try:
        yield home
    finally:
        asyncio.run(engine.down(home))
        shutil.rmtree(ROOT)


def make_project(name: str, files: Mapping[str, str] = FILES) -> Path:
    """A repository with one commit."""
    folder = ROOT / "projects" / name
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    repo = Repo.init(folder, initial_branch="main")
    repo.git.add(all=True)
    date = "2024-01-02T03:04:05 +0000"
    repo.index.commit("first", author=USER, committer=USER, author_date=date, commit_date=date)
    return folder


async def record_round(client: Client, case: RoundCase) -> None:
    """Play one round and keep its history."""
    (ROOT / "count").unlink(missing_ok=True)
    project = make_project(case.run, case.files)
    request = case.request(client, project).model_copy(update={"host": host_id(client.home), "path": os.defpath})
    if case.before:
        await case.before(client, request.run, project)
    async with devices_held() if case.busy else nullcontext():
        temporal = await client.link.temporal()
        handle = await temporal.start_workflow("Round", request, id=request.run, task_queue=ORCH_QUEUE)
        if case.steer:
            await case.steer(client, request.run, project)
        with suppress(WorkflowFailureError):
            await handle.result()
    view = await client.look(request.run)
    if view.reason is None or view.reason.code is not case.ends:
        raise SystemExit(f"{case.name}: ended {view.status} with {view.reason}, not with {case.ends}")
    await _keep(temporal, request.run, f"Round/{case.name}")


async def record(client: Client, case: Case, kept: set[str]) -> None:
    """Play one case and keep the history of its workflow, and those of attempts that ended in a new way."""
    project = make_project(case.run)
    (project / "notes.txt").write_text("edited by the user\n")
    if case.before and case.options.get("exchange"):
        await case.before(client, project)
    request = _request(client, case, project)
    if case.before and not case.options.get("exchange"):
        await case.before(client, project)
    temporal = await client.link.temporal()
    handle = await temporal.start_workflow(case.workflow, request, id=request.run, task_queue=ORCH_QUEUE)
    if case.steer:
        await case.steer(client, request.run, project)
    try:
        await handle.result()
    except WorkflowFailureError as error:
        sys.stdout.write(f"  {type(error.cause).__name__}\n")
    await _keep(temporal, request.run, f"{case.workflow}/{case.name}")
    if case.workflow != "Goal":
        return
    view = await client.view(request.run)
    if view.reason is None or view.reason.code is not case.ends:
        raise SystemExit(f"{case.name}: ended {view.status} with {view.reason}, not with {case.ends}")
    async for event in client.events(request.run):
        ended = event.candidate if isinstance(event, CandidateMeasured) else None
        if ended is not None and (way := _way(ended)) not in kept:
            kept.add(way)
            await _keep(temporal, f"{request.run}/{ended.attempt.name}", f"Attempt/{way}")


def _request(client: Client, case: Case, project: Path) -> GoalRequest:
    given = {"goal": "raise the level", "repo": project, "agent": case.agents, "candidates": len(case.agents)}
    options = GoalOptions.model_validate({**given, "sandbox": False, "id": case.run, **case.options})
    request = resolve_goal(options, state=client.home.root).request
    fewer = {} if case.replacements is None else {"replacements": case.replacements}
    placement = request.placement.model_copy(update=fewer)
    return request.model_copy(update={"host": host_id(client.home), "path": os.defpath, "placement": placement})


def _way(candidate: Candidate) -> str:
    if candidate.failure:
        return candidate.failure.value
    if candidate.host:
        return "measured_here" if candidate.host == "recorder" else "measured_elsewhere"
    if candidate.launches > 1:
        return "rested_long" if "long" in candidate.agent else "launched_again"
    kind = candidate.exit.kind if candidate.exit else ExitKind.NOT_STARTED
    return "measured" if kind is ExitKind.OK else f"agent_{kind}"


async def _keep(temporal: Temporal, workflow_id: str, name: str) -> None:
    try:
        history = (await temporal.get_workflow_handle(workflow_id).fetch_history()).to_json_dict()
    except RPCError as error:
        raise SystemExit(f"{workflow_id}: no history ({error})") from error
    events = ",\n".join(json.dumps(_neutral(event), separators=(",", ":")) for event in history["events"])
    path = TARGET / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"events":[\n{events}\n]}}\n')
    sys.stdout.write(f"{name}: {len(history['events'])} events, {path.stat().st_size // 1024} KiB\n")


def _neutral(value: Any) -> Any:
    """Without what names the developer's host and disk: identities and stack traces, which no replay reads."""
    if isinstance(value, list):
        return [_neutral(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _neutral(item) for key, item in value.items() if key != "stackTrace"}
    return {**kept, "identity": "recorder"} if "identity" in kept else kept


async def _record_all(home: Home, cases: list[Case | RoundCase]) -> None:
    client, kept = Client(home), set[str]()
    for case in cases:
        if isinstance(case, RoundCase):
            await record_round(client, case)
        else:
            await record(client, case, kept)


def main() -> None:
    """Record the named cases (`Round`, `Round/done` or `done`), or all."""
    wanted, every = set(sys.argv[1:]), (*CASES, *ROUND_CASES)
    names = {case: {case.workflow, case.name, f"{case.workflow}/{case.name}"} for case in every}
    if unknown := wanted - set().union(*names.values()):
        raise SystemExit(f"no case {', '.join(sorted(unknown))} in history_cases.py or history_rounds.py")
    cases = [case for case in every if not wanted or wanted & names[case]]
    if not wanted:
        shutil.rmtree(TARGET, ignore_errors=True)
    with stage() as home:
        asyncio.run(_record_all(home, cases))


if __name__ == "__main__":
    main()
