"""What the Web UI shows of a run: every candidate, who won and why, in Markdown that foreign text cannot break."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.workflows.details import COLUMNS, MAX_CHARS, agent_label, details, reason_text
from orch.workflows.model.promotion import PromoteMode
from orch.workflows.model.reason import CandidateReason, PromotionReason, Reason, RunReason
from orch.workflows.model.view import (
    CandidateStatus,
    CandidateView,
    IterationView,
    PromotedView,
    RunStatus,
    RunView,
    UsageView,
)

SHA = "1" * 40


def candidate(index: int = 1, **facts: Any) -> CandidateView:
    given = {"agent": "cmd:true", "status": CandidateStatus.RED, "rungs_passed": 1, "rungs_total": 3, "changed": True}
    return CandidateView.model_validate({"index": index, **given, **facts})


def run(*iterations: IterationView, **facts: Any) -> RunView:
    given = {
        "id": "goal-x",
        "kind": "goal",
        "status": RunStatus.RUNNING,
        "goal": "g",
        "repo": "/p",
        "started_at": "now",
    }
    return RunView.model_validate({**given, "iterations": iterations, **facts})


def iteration(*candidates: CandidateView, **facts: Any) -> IterationView:
    return IterationView.model_validate({"ordinal": 1, "baseline": SHA, "candidates": candidates, **facts})


def rows(text: str) -> list[list[str]]:
    """The table's cells."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.replace("\\|", "¦").strip("|").split("|")] for line in lines]


def test_table_tells_who_won_and_why() -> None:
    won: Reason[CandidateReason] = Reason(code=CandidateReason.WON, data={"decided_by": "rungs"})
    lost: Reason[CandidateReason] = Reason(code=CandidateReason.FEWER_RUNGS, data={"passed": 1, "winner": 3})
    first = candidate(1, reason=lost, usage=UsageView(tokens=120, usd=0.5, wall_s=61))
    second = candidate(2, status=CandidateStatus.PASSED, rungs_passed=3, reason=won)

    text = details(run(iteration(first, second, winner=2, decided_by="rungs", gate="passed")))

    assert rows(text) == [
        list(COLUMNS),
        ["---"] * 7,
        ["1", "`cmd:true`", "red", "`1/3`", "yes", "$0.50, 120 tokens, 61 s", "fewer rungs (passed 1, winner 3)"],
        ["★ 2", "`cmd:true`", "passed", "`3/3`", "yes", "0 s", "won (decided by rungs)"],
    ]
    assert "### Iteration 1: candidate 2, decided by rungs" in text
    assert "gate: passed" in text


def test_candidate_without_a_tree_shows_what_failed() -> None:
    it = candidate(
        status=CandidateStatus.FAILED, rungs_passed=None, changed=None, failure="setup_failed: exit 4", agent_exit=""
    )

    (row,) = rows(details(run(iteration(it))))[2:]

    assert row[2:5] == ["failed", "-", "-"]
    assert row[6] == "setup\\_failed: exit 4"


@pytest.mark.parametrize(
    ("restored", "words"),
    [(("a",), "1 protected path restored"), (("a", "b"), "2 protected paths restored"), ((), "")],
)
def test_undone_edits_of_protected_paths_are_counted(restored: tuple[str, ...], words: str) -> None:
    (row,) = rows(details(run(iteration(candidate(restored=restored)))))[2:]

    assert row[6] == words


def test_iteration_that_nobody_won_says_that_the_head_stays() -> None:
    assert "the head stays, decided by later index" in details(
        run(iteration(candidate(), winner=0, decided_by="later_index"))
    )


def test_refused_promotion_is_told_with_its_reason() -> None:
    refused: Reason[PromotionReason] = Reason(code=PromotionReason.EDITED, data={"paths": ("level",)})
    promoted = PromotedView(tree=None, mode=PromoteMode.WORKTREE, refused=refused)

    assert "not promoted to worktree: working tree edited (paths level)" in details(run(promoted=promoted))


def test_details_of_a_long_run_keep_the_newest_iterations() -> None:
    many = [iteration(*(candidate(i) for i in range(1, 9)), ordinal=n) for n in range(1, 60)]

    text = details(run(*many))

    assert len(text) < MAX_CHARS + 200
    assert "### Iteration 59" in text
    assert "### Iteration 1\n" not in text
    assert "`orch show goal-x`" in text


def test_reason_leaves_out_what_is_not_known() -> None:
    unknown: Reason[RunReason] = Reason(code=RunReason.DEADLINE, data={"at": None, "by": ""})

    assert reason_text(unknown) == "deadline"


@given(text=st.text(max_size=300))
def test_foreign_text_never_adds_a_cell_or_a_line(text: str) -> None:
    it = candidate(agent=text, failure=text, status=CandidateStatus.FAILED)

    table = rows(details(run(iteration(it, gate="red"))))

    assert [len(row) for row in table] == [7, 7, 7]


@pytest.mark.parametrize(
    ("spec", "label"),
    [
        ("cmd:true", "cmd:true"),
        ("cmd:sh /long/path/half_a_fix.sh", "cmd:sh half_a_fix.sh"),
        ("cmd:/opt/tools/agent --mode=/etc/x.toml", "cmd:agent --mode=x.toml"),
        ("cmd:./agent.sh", "cmd:agent.sh"),
        ("cmd:../bin/agent.sh ~/notes.md", "cmd:agent.sh notes.md"),
        ("cmd:'/a/b c/agent' x", "cmd:'b c/agent' x"),
        ("cmd:echo 1 > level; cat a/b", "cmd:echo 1 > level; cat a/b"),
        ("cmd:python\n  -m x", "cmd:python -m x"),
        ("cmd:" + "x" * 80, "cmd:" + "x" * 35 + "…"),
        ("claude", "claude"),
        ("cmd:ls /", "cmd:ls /"),
        ("", ""),
    ],
)
def test_agent_label_keeps_the_last_part_of_a_path(spec: str, label: str) -> None:
    assert agent_label(spec) == label


@given(spec=st.text(max_size=300), limit=st.integers(1, 80))
def test_agent_label_is_one_short_line(spec: str, limit: int) -> None:
    label = agent_label(spec, limit)

    assert len(label) <= limit
    assert len(label.splitlines()) <= 1
