"""Schedules on a real engine, by the command line: they start runs, rest after a failure, say what they left out."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner, Result
from temporalio.client import ScheduleDescription, ScheduleOverlapPolicy

from orch import Client
from orch.activities.home import Home
from orch.cli.main import cli
from orch.worker.connection import connect
from orch.workflows.model.view import RunStatus

pytestmark = [pytest.mark.engine]

NIGHT = ("--cron", "0 2 * * *")
RUNG = "grep -q 3 level"

Climb = Callable[[int], str]


class Schedules:
    """`orch schedule …` on the session's engine, for the project; forgets what it made."""

    def __init__(self, home: Home, project: Path) -> None:
        self.home = home
        self._project = project
        self.made: list[str] = []

    def __call__(self, *args: str) -> Result:
        """Run the command line."""
        return CliRunner().invoke(cli, ["schedule", *args], prog_name="orch")

    def create(self, name: str, agent: str, *options: str, verify: str = RUNG) -> str:
        """Create a nightly schedule with one agent and no sandbox."""
        goal = ("raise the level", "--repo", str(self._project), "--verify", verify, "--agent", agent, "--no-sandbox")
        done = self("create", "goal", *goal, "--id", name, *NIGHT, *options, "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout) == {"id": name}
        self.made.append(name)
        return name

    def show(self, name: str) -> dict[str, Any]:
        """The schedule as it stands."""
        shown: dict[str, Any] = json.loads(self("show", name, "--json").stdout)
        return shown

    def until(self, name: str, holds: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Wait until the schedule stands so."""
        give_up = time.monotonic() + 60
        while not holds(shown := self.show(name)):
            assert time.monotonic() < give_up, shown
            time.sleep(0.2)
        return shown

    def described(self, name: str) -> ScheduleDescription:
        """What the engine knows of the schedule."""

        async def ask() -> ScheduleDescription:
            return await (await connect(self.home)).get_schedule_handle(name).describe()

        return asyncio.run(ask())

    def run_of(self, name: str) -> str:
        """The id of the goal run that the schedule started."""

        async def find() -> str:
            client = Client(self.home)
            async with asyncio.timeout(60):
                while not (found := [row.id for row in await client.list() if row.id.startswith(f"{name}-20")]):
                    await asyncio.sleep(0.2)
            return found[0]

        return asyncio.run(find())

    def result(self, name: str) -> RunStatus:
        """Trigger the schedule and wait for the end of the run it starts."""
        assert self("run", name).exit_code == 0
        run = self.run_of(name)
        return asyncio.run(Client(self.home).result(run)).status


@pytest.fixture
def schedules(engine_home: Home, project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Schedules]:
    """The schedules of the session's engine."""
    monkeypatch.setenv("ORCH_STATE", str(engine_home.root))
    made = Schedules(engine_home, project)
    yield made
    for name in made.made:
        made("delete", name)


def test_triggered_schedule_runs_a_goal_that_lands(schedules: Schedules, project: Path, climb: Climb) -> None:
    name = schedules.create("nightly-good", climb(3))

    assert schedules.result(name) is RunStatus.SUCCEEDED

    assert (project / "level").read_text() == "3\n"
    shown = schedules.until(name, lambda row: row["runs"] == 1)
    assert shown["goal"] == "raise the level"
    assert not shown["paused"]
    assert len(shown["recent"]) == 1


def test_run_without_success_pauses_its_schedule_and_says_why(schedules: Schedules, climb: Climb) -> None:
    name = schedules.create("nightly-bad", climb(1), "--max-iterations", "1")

    assert schedules.result(name) is RunStatus.FAILED

    shown = schedules.until(name, lambda row: row["paused"])
    assert "iteration_cap" in shown["note"]
    assert shown["next_at"] is None
    assert schedules("resume", name, "--note", "mended").exit_code == 0
    assert schedules.show(name)["note"] == "mended"
    assert schedules.show(name)["next_at"]


def test_failure_need_not_pause(schedules: Schedules, climb: Climb) -> None:
    name = schedules.create("nightly-stubborn", climb(1), "--max-iterations", "1", "--no-pause-on-failure")

    assert schedules.result(name) is RunStatus.FAILED

    time.sleep(3)
    assert not schedules.show(name)["paused"]


def test_green_ladder_is_no_failure_of_a_nightly_run(schedules: Schedules, climb: Climb) -> None:
    name = schedules.create("nightly-green", climb(3), verify="true")

    schedules.result(name)

    time.sleep(3)
    assert not schedules.show(name)["paused"]


def test_run_that_would_overlap_is_left_out_and_counted(schedules: Schedules) -> None:
    name = schedules.create("nightly-slow", "cmd:sleep 60")
    schedules("run", name)
    run = schedules.run_of(name)

    schedules("run", name)

    shown = schedules.until(name, lambda row: row["skipped"] == 1)
    assert shown["runs"] == 1
    asyncio.run(Client(schedules.home).cancel(run))
    assert asyncio.run(Client(schedules.home).result(run)).status is RunStatus.CANCELLED


def test_schedule_keeps_what_was_asked_for(schedules: Schedules, climb: Climb) -> None:
    options = ("--time-zone", "Europe/Paris", "--catchup", "30m", "--overlap", "buffer-one", "--jitter", "1m")
    name = schedules.create("nightly-paris", climb(3), *options)

    schedule = schedules.described(name).schedule

    assert schedule.policy.catchup_window == timedelta(minutes=30)
    assert schedule.policy.overlap is ScheduleOverlapPolicy.BUFFER_ONE
    assert schedule.policy.pause_on_failure
    assert schedule.spec.jitter == timedelta(minutes=1)
    local = datetime.fromisoformat(schedules.show(name)["next_at"]).astimezone(ZoneInfo("Europe/Paris"))
    assert (local.hour, local.minute) == (2, 0)


def test_missed_runs_older_than_an_hour_are_not_made_up_for_by_default(schedules: Schedules, climb: Climb) -> None:
    name = schedules.create("nightly-plain", climb(3))

    policy = schedules.described(name).schedule.policy

    assert policy.catchup_window == timedelta(hours=1)
    assert policy.overlap is ScheduleOverlapPolicy.SKIP


def test_paused_schedule_rests_until_it_is_resumed(schedules: Schedules, climb: Climb) -> None:
    name = schedules.create("nightly-paused", climb(3))

    schedules("pause", name, "--note", "holidays")

    assert schedules.show(name)["paused"]
    assert schedules.show(name)["note"] == "holidays"
    assert "paused" in schedules("list").stdout
    schedules("resume", name)
    assert not schedules.show(name)["paused"]


def test_deleted_schedule_is_gone(schedules: Schedules, climb: Climb) -> None:
    name = schedules.create("nightly-gone", climb(3))
    twice = schedules("create", "goal", "g", "--verify", RUNG, "--agent", climb(3), "--id", name, *NIGHT)

    schedules("delete", name)

    assert twice.exit_code == 2
    again = schedules("show", name)
    assert again.exit_code == 2
    assert f"no schedule {name}" in again.output
