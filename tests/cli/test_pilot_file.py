"""A pilot's file: what it means, and every refusal with its line and the mend."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from orch.activities.home import Home
from orch.activities.repository import inspect
from orch.cli.main import cli
from orch.cli.pilot_file import check_pilot
from orch.worker.keys import add_key
from orch.worker.state import open_state
from orch.workflows.model.round.pilot import PilotPlan, PilotRule

GOOD = "pilot: speed\nplan: round.yaml\nrepetitions: 4\ntarget: 30%\nfraction: 0.9\nthreshold: 0.7\n"


@pytest.fixture
def repo(rounds: ModuleType, tmp_path: Path) -> Path:
    """A repository with two lanes planned beside it."""
    made: Path = rounds.synthetic(tmp_path / "repo")
    rounds.write_plan(tmp_path, made, [rounds.Lane("parse", "cmd:true"), rounds.Lane("layout", "cmd:true")])
    return made


def check(repo: Path, home: Home, text: str) -> tuple[PilotPlan | None, Any]:
    file = repo.parent / "pilot.yaml"
    file.write_text(text)
    checked = check_pilot(file, inspect(repo), home)
    return checked.plan, checked.document


def test_file_means_what_it_says(repo: Path, home: Home) -> None:
    plan, document = check(repo, home, GOOD)

    assert document.refusals == []
    assert plan is not None
    assert (plan.id, plan.repetitions) == ("speed", 4)
    assert plan.rule == PilotRule(target=0.3, fraction=0.9, threshold=0.7, sigmas=2.0)
    assert [lane.id for lane in plan.round.lanes] == ["parse", "layout"]


def test_least_file_has_three_repetitions_and_f_of_80_percent(repo: Path, home: Home) -> None:
    plan, _ = check(repo, home, "pilot: a\nplan: round.yaml\ntarget: 0.1\n")

    assert plan is not None
    assert (plan.repetitions, plan.rule.fraction, plan.rule.threshold) == (3, 0.8, 0.8)


def test_digest_changes_with_the_rule(repo: Path, home: Home) -> None:
    one, other = (check(repo, home, text)[0] for text in (GOOD, GOOD.replace("0.7", "0.6")))

    assert one
    assert other
    assert one.digest != other.digest


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("target: 30%\n", "", 1, "`target` is missing"),
        ("target: 30%", "target: much", 4, "`target` is no share"),
        ("target: 30%", "target: 120%", 4, "cannot be reached"),
        ("repetitions: 4", "repetitions: 0", 3, "`repetitions`"),
        ("threshold: 0.7", "threshold: 1.5", 6, "`threshold`"),
        ("fraction: 0.9", "fracton: 0.9", 5, "unknown key `fracton`"),
        ("pilot: speed", "pilot: Speed!", 1, "is no name"),
        ("pilot: speed", "pilot: " + "s" * 40, 1, "too long"),
    ],
)
def test_fault_is_refused_at_its_line(repo: Path, home: Home, old: str, new: str, line: int, told: str) -> None:
    plan, document = check(repo, home, GOOD.replace(old, new))

    assert plan is None
    (refusal,) = document.refusals
    assert refusal.line == line
    assert told in refusal.message


def test_single_lane_is_no_pilot(repo: Path, home: Home, rounds: ModuleType) -> None:
    rounds.write_plan(repo.parent, repo, [rounds.Lane("parse", "cmd:true")])

    plan, document = check(repo, home, GOOD)

    assert plan is None
    assert "one lane" in document.refusals[0].message


def test_missing_round_plan_is_refused_at_its_line(repo: Path, home: Home) -> None:
    plan, document = check(repo, home, GOOD.replace("round.yaml", "nowhere.yaml"))

    assert plan is None
    (refusal,) = document.refusals
    assert refusal.line == 2
    assert "nowhere.yaml: no such file" in refusal.message


def test_faults_of_all_three_files_are_told_together(repo: Path, home: Home) -> None:
    (repo.parent / "pilot.yaml").write_text(GOOD.replace("0.7", "1.5"))
    for name, old, new in (("round.yaml", "aa_every: 6", "aa_every: 0"), ("campaign.yaml", "unit: ms", "unit: ''")):
        text = (repo.parent / name).read_text()
        assert old in text
        (repo.parent / name).write_text(text.replace(old, new))

    found = check_pilot(repo.parent / "pilot.yaml", inspect(repo), home).error().message.splitlines()

    assert [line.partition(":")[0].rpartition("/")[2] for line in found] == [
        "pilot.yaml",
        "round.yaml",
        "campaign.yaml",
    ]


@pytest.mark.parametrize(("old", "new"), [("repetitions: 4", "repetitions: 0"), ("threshold: 0.7", "threshold: 1.5")])
def test_fault_is_told_whatever_the_round_plan_is_like(repo: Path, home: Home, old: str, new: str) -> None:
    text = (repo.parent / "round.yaml").read_text()
    (repo.parent / "round.yaml").write_text(text.replace("aa_every: 6", "aa_every: 0"))

    _, document = check(repo, home, GOOD.replace(old, new))

    assert [refusal.line for refusal in document.refusals] == [GOOD[: GOOD.index(old)].count("\n") + 1]


def test_orch_check_knows_a_pilot_by_its_keys(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(repo, Home(repo.parent / "state"), GOOD)
    monkeypatch.chdir(repo)

    good = CliRunner().invoke(cli, ["check", "../pilot.yaml"])
    (repo.parent / "pilot.yaml").write_text(GOOD.replace("plan: round.yaml", "paln: round.yaml"))
    bad = CliRunner().invoke(cli, ["check", "../pilot.yaml", "--json"])

    words = "../pilot.yaml: pilot speed of round r1 of campaign synthetic, 2 lanes, 4 repetitions, digest "
    assert (good.exit_code, good.stdout[: len(words)]) == (0, words)
    assert (bad.exit_code, json.loads(bad.stdout)["kind"]) == (2, "pilot")
    assert json.loads(bad.stdout)["refusals"] == [
        {"file": "../pilot.yaml", "line": 2, "message": "unknown key `paln`", "mend": "did you mean `plan`?"}
    ]


def test_dry_run_shows_every_round_in_its_order(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(repo, Home(repo.parent / "state"), GOOD.replace("4", "2"))
    monkeypatch.chdir(repo)

    shown = CliRunner().invoke(cli, ["pilot", "../pilot.yaml", "--dry-run"])

    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines()[1:] == [
        "P1  round-synthetic-speed-p1-r1",
        "S1  round-synthetic-speed-s1-parse  round-synthetic-speed-s1-layout",
        "S2  round-synthetic-speed-s2-parse  round-synthetic-speed-s2-layout",
        "P2  round-synthetic-speed-p2-r1",
    ]
    told = json.loads(CliRunner().invoke(cli, ["pilot", "../pilot.yaml", "--dry-run", "--json"]).stdout)
    assert told["runs"]["S1"] == ["round-synthetic-speed-s1-parse", "round-synthetic-speed-s1-layout"]
    assert list(told["runs"]) == ["P1", "S1", "S2", "P2"]


def test_dry_run_shows_the_ids_that_runs_have_when_they_may_hold_no_words(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(repo.parent / "state")
    check(repo, home, GOOD)
    monkeypatch.chdir(repo)
    monkeypatch.setenv("ORCH_STATE", str(home.root))
    open_state(home)
    add_key(home)

    shown = CliRunner().invoke(cli, ["pilot", "../pilot.yaml", "--dry-run"])

    assert shown.exit_code == 0, shown.output
    ids = [name for line in shown.stdout.splitlines()[1:] for name in line.split()[1:]]
    assert len(set(ids)) == 12
    assert all(name.startswith("round-") for name in ids)
    assert not [name for name in ids if "synthetic" in name or "speed" in name]


@pytest.mark.parametrize("words", [[], ["pilot.yaml", "--replay", "round-x"]])
def test_either_a_file_or_a_round_to_replay(words: list[str]) -> None:
    refused = CliRunner().invoke(cli, ["pilot", *words])

    assert refused.exit_code == 2
    assert "FILE, or --replay" in refused.output
