"""The synthetic repository is what the tests of rounds take it for: its gains, its noise, its bottleneck."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def repo(rounds: ModuleType, tmp_path: Path) -> Path:
    made: Path = rounds.synthetic(tmp_path / "repo")
    return made


def bench(repo: Path, folder: Path) -> float:
    """One run of the benchmark, whose result goes to a folder; its milliseconds."""
    folder.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "ORCH_RESULT": str(folder / "result.json"), "ORCH_OUTPUT": str(folder)}
    subprocess.run([sys.executable, "-B", "bench/bench.py"], cwd=repo, env=env, check=True)
    found = json.loads((folder / "result.json").read_text())["latency_ms"]
    assert found["unit"] == "ms"
    return float(found["value"])


def validate(repo: Path, folder: Path) -> int:
    env = {**os.environ, "ORCH_OUTPUT": str(folder)}
    return subprocess.run([sys.executable, "-B", "bench/validate.py"], cwd=repo, env=env, check=False).returncode


def turn(repo: Path, rounds: ModuleType, **factors: float) -> None:
    for name, factor in factors.items():
        (repo / f"engine/{name}/knob.py").write_text(rounds.knob(factor))


@pytest.mark.parametrize(
    ("factors", "latency"),
    [
        ({}, 100),
        ({"parse": 0.5}, 85),
        ({"parse": 0.5, "layout": 0.5}, 75),
        ({"layout": 1.5}, 110),
        ({"index": 0.4}, 88),
        ({"cache": 0.45}, 89),
        ({"index": 0.4, "cache": 0.45}, 88),
    ],
)
def test_knobs_turn_milliseconds(rounds: ModuleType, tmp_path: Path, factors: dict[str, float], latency: float) -> None:
    repo = rounds.synthetic(tmp_path / "repo", sigma=0.0)
    turn(repo, rounds, **factors)

    assert bench(repo, tmp_path / "out") == pytest.approx(latency)


def test_same_run_has_the_same_noise_wherever_its_state_directory_lies(repo: Path, tmp_path: Path) -> None:
    run = "i2-c1-b1/pairs/0/a"

    assert bench(repo, tmp_path / "here" / run) == bench(repo, tmp_path / "over/there" / run)


def test_noise_of_runs_has_the_sigma_of_the_model(repo: Path, tmp_path: Path) -> None:
    values = [math.log(bench(repo, tmp_path / f"i2-c1-b1/{n}") / 100) for n in range(24)]

    assert len(set(values)) == len(values)
    assert 0.0015 < statistics.stdev(values) < 0.006


def test_wrong_answer_is_seen_by_the_validator(repo: Path, rounds: ModuleType, tmp_path: Path) -> None:
    bench(repo, tmp_path / "right")
    (repo / "engine/parse/knob.py").write_text(rounds.knob(0.1, "wrong"))
    bench(repo, tmp_path / "wrong")

    assert validate(repo, tmp_path / "right") == 0
    assert validate(repo, tmp_path / "wrong") == 1


def test_repository_has_the_same_commit_everywhere(rounds: ModuleType, tmp_path: Path) -> None:
    one, other = (rounds.synthetic(tmp_path / name) for name in ("one", "other"))

    assert rounds.git(one, "rev-parse", "HEAD") == rounds.git(other, "rev-parse", "HEAD")


def test_frozen_plan_has_the_lanes_as_they_are_given(rounds: ModuleType, repo: Path) -> None:
    lanes = [rounds.Lane("parse", "cmd:true", more={"submissions": 2}), rounds.Lane("index", "cmd:true")]

    plan = rounds.frozen(repo, lanes, aa_every=3)

    assert [(lane.id, lane.globs, lane.submissions) for lane in plan.lanes] == [
        ("parse", ("engine/parse/**",), 2),
        ("index", ("engine/index/**",), 6),
    ]
    assert plan.lanes[1].entry.stage == "lookup"
    assert plan.aa_every == 3
