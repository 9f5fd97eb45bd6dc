"""A pilot of the running system: policies in turns, finished runs kept, a round replayed without its agents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from orch.activities.home import Home

pytestmark = [pytest.mark.engine, pytest.mark.soak]

Orch = Callable[..., dict[str, Any]]

FACTORS = {"parse": 0.6, "layout": 0.7, "emit": 0.7}
"""What each lane makes of its stage of 30, 20 and 10 milliseconds of 100."""


class Pilot:
    """A pilot's files, and the installed program at its repository."""

    def __init__(self, home: Home, folder: Path, rounds: ModuleType) -> None:
        self.home, self.folder, self._rounds = home, folder, rounds
        self.repo = rounds.synthetic(folder / "repo")
        self.file = folder / "plans" / "pilot.yaml"

    def write(self, lanes: Sequence[Any], repetitions: int) -> None:
        """Write campaign, round plan and pilot; the target is 80 % of what all lanes win together."""
        name = self.folder.name[-20:].strip("_")
        campaign = {"campaign": f"c-{name}"}
        self._rounds.write_plan(self.file.parent, self.repo, lanes, campaign=campaign, aa_every=20)
        won = sum((1 - FACTORS[lane.id]) * self._rounds.STAGES[lane.id] / 100 for lane in lanes)
        rule = {"target": won, "fraction": 0.8, "threshold": 0.9}
        self.file.write_text(
            yaml.safe_dump({"pilot": f"p-{name}", "plan": "round.yaml", "repetitions": repetitions, **rule})
        )

    def orch(self, *args: str | Path) -> dict[str, Any]:
        """The document that a command prints."""
        done = subprocess.run(
            [sys.executable, "-m", "orch.cli.main", "pilot", *map(str, args), "--repo", str(self.repo), "--json"],
            env={**os.environ, "ORCH_STATE": str(self.home.root), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            timeout=550,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document


@pytest.fixture(scope="module")
def small(
    engine_home: Home, rounds: ModuleType, scripted: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> Pilot:
    """A pilot of two lanes and one pair, before it is begun."""
    pilot = Pilot(engine_home, tmp_path_factory.mktemp("small"), rounds)
    pilot.write([rounds.Lane(name, scripted.gain(name, FACTORS[name], wait=True)) for name in ("parse", "layout")], 1)
    return pilot


@pytest.fixture(scope="module")
def report(small: Pilot) -> dict[str, Any]:
    """What it showed."""
    return small.orch(small.file)


def run_of(report: dict[str, Any], arm: str) -> dict[str, Any]:
    (found,) = [run for run in report["runs"] if run["arm"] == arm]
    assert isinstance(found, dict)
    return found


def test_each_policy_reaches_what_its_lanes_win_together(report: dict[str, Any]) -> None:
    parallel, serial = run_of(report, "P"), run_of(report, "S")

    assert (len(parallel["rounds"]), len(serial["rounds"])) == (1, 2)
    assert parallel["gain"] == pytest.approx(0.198, abs=0.01)  # -log(1 - 0.12 - 0.06)
    assert serial["gain"] == pytest.approx(0.198, abs=0.01)
    assert 0 < parallel["reached_s"] == parallel["ended_s"]
    assert 0 < serial["reached_s"] == serial["ended_s"]


def test_one_pair_decides_nothing(report: dict[str, Any]) -> None:
    assert report["decision"]["verdict"] == "not distinguishable"
    assert report["decision"]["why"].startswith("1 complete pair")
    assert report["decision"]["label"] == "workflow-policy comparison"


def test_the_speed_model_stands_beside_what_was_measured(report: dict[str, Any]) -> None:
    model = report["model"]

    assert model["expected"]["serial_s"] == pytest.approx(model["serial_s"], rel=0.5)
    assert model["expected"]["parallel_s"] == pytest.approx(model["parallel_s"], rel=0.5)


def test_the_same_command_again_reads_what_is_finished(small: Pilot, report: dict[str, Any]) -> None:
    assert small.orch(small.file) == report


def test_replay_measures_the_tickets_of_a_round_without_its_agents(small: Pilot, report: dict[str, Any]) -> None:
    (finished,) = run_of(report, "P")["rounds"]

    found = small.orch("--replay", finished)

    assert found["label"] == "measurement-queue bound, not a policy"
    assert found["recorded"]["tickets"] == found["replayed"]["tickets"] == 2
    assert found["replayed"]["run"] != finished
    assert 0 < found["replayed"]["held_s"] <= found["replayed"]["span_s"]


def test_agents_that_think_long_are_faster_in_one_round(
    engine_home: Home, rounds: ModuleType, scripted: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pilot = Pilot(engine_home, tmp_path_factory.mktemp("whole"), rounds)
    lanes = [
        rounds.Lane(name, scripted.gain(name, factor, think_s=15.0, wait=True)) for name, factor in FACTORS.items()
    ]
    pilot.write(lanes, 3)

    found = pilot.orch(pilot.file)

    assert found["decision"]["verdict"] == "faster"
    assert found["decision"]["ratio"]["median"] < 0.9
    assert found["model"]["speedup"] > 1
