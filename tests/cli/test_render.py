"""A view as text: goldens for the shapes people meet, and a sentence for every code."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from orch.cli import reasons
from orch.cli.live import live_lines
from orch.cli.render import iteration_lines, run_lines
from orch.workflows.model.outcome import OutcomeKind
from orch.workflows.model.promotion import PromoteMode
from orch.workflows.model.reason import CandidateReason, PromotionReason, Reason, RunReason
from orch.workflows.model.view import (
    CandidateStatus,
    CandidateView,
    IterationView,
    PromotedView,
    RungView,
    RunStatus,
    RunView,
    UsageView,
)

SHA = "0123456789abcdef0123456789abcdef01234567"

Golden = Callable[[str, str], None]


def candidate(index: int, code: CandidateReason | None = None, /, **facts: Any) -> CandidateView:
    data = facts.pop("data", {})
    given: dict[str, Any] = {
        "agent": f"cmd:sh agent{index}.sh",
        "status": CandidateStatus.RED,
        "rungs_passed": 1,
        "rungs_total": 2,
        "rungs": (
            RungView(name="lint", result="ok", wall_s=0.2),
            RungView(name="unit", result="exit 1", wall_s=1.0),
        ),
        "changed": True,
        "paths": ("slug.py",),
        "agent_exit": "ok",
        "usage": UsageView(tokens=1200 * index, usd=0.02 * index, wall_s=61.0 * index),
        "reason": None if code is None else Reason(code=code, data=data),
    }
    return CandidateView(index=index, **{**given, **facts})


def view(**facts: Any) -> RunView:
    given: dict[str, Any] = {
        "id": "goal-mend-slug-1a2b3c",
        "kind": "goal",
        "status": RunStatus.SUCCEEDED,
        "reason": Reason(code=RunReason.DONE),
        "goal": "Make slugify keep digits",
        "repo": "/home/me/slug",
        "started_at": "2026-01-02T03:04:05.000+00:00",
        "baseline": SHA,
        "baseline_dirty": True,
        "baseline_rungs_passed": 1,
        "rungs": ("lint", "unit"),
        "protected": ("/tests",),
        "promote": "worktree",
    }
    return RunView(**{**given, **facts})


WON = candidate(
    1,
    CandidateReason.WON,
    data={"decided_by": "rungs"},
    status=CandidateStatus.PASSED,
    rungs_passed=2,
    rungs=(RungView(name="lint", result="ok", wall_s=0.2), RungView(name="unit", result="ok", wall_s=1.0)),
)
HALF = candidate(2, CandidateReason.FEWER_RUNGS, data={"passed": 1, "winner": 2}, restored=("tests/test_slug.py",))
LAZY = candidate(
    3,
    CandidateReason.FEWER_RUNGS,
    data={"passed": 1, "winner": 2},
    changed=False,
    paths=(),
    usage=UsageView(wall_s=0.4),
)
DEAD = candidate(
    4,
    CandidateReason.NOT_STARTED,
    status=CandidateStatus.FAILED,
    rungs_passed=None,
    rungs=(),
    changed=None,
    paths=(),
    agent_exit="",
    usage=UsageView(),
    failure="setup_failed: set-up: exit 1",
)
DECIDED = IterationView(
    ordinal=1, baseline=SHA, winner=1, decided_by="rungs", candidates=(WON, HALF, LAZY, DEAD), gate="passed"
)
OPEN = IterationView(
    ordinal=2,
    baseline=SHA,
    candidates=(
        candidate(1, status=CandidateStatus.RUNNING, rungs_passed=None, rungs=(), changed=None, usage=UsageView()),
        candidate(2, status=CandidateStatus.QUEUED, rungs_passed=None, rungs=(), changed=None, usage=UsageView()),
    ),
)

VIEWS = {
    "succeeded": view(
        iterations=(DECIDED,),
        promoted=PromotedView(tree=SHA, mode=PromoteMode.WORKTREE, paths=1),
        usage=UsageView(tokens=3600, usd=0.06, wall_s=183.4),
    ),
    "refused_promotion": view(
        status=RunStatus.FAILED,
        reason=Reason(code=RunReason.PROMOTION_REFUSED, data={"why": "working_tree_edited"}),
        iterations=(DECIDED,),
        promoted=PromotedView(
            tree=None,
            mode=PromoteMode.WORKTREE,
            refused=Reason(code=PromotionReason.EDITED, data={"paths": ("slug.py",), "count": 1}),
        ),
    ),
    "running": view(status=RunStatus.RUNNING, reason=None, iterations=(DECIDED, OPEN), notes=("be\nquick",)),
    "waiting": view(status=RunStatus.WAITING, reason=Reason(code=RunReason.SEAL_WAITING)),
    "head_stays": view(
        status=RunStatus.FAILED,
        reason=Reason(code=RunReason.STUCK_NO_DIFF, data={"iterations": 2}),
        iterations=(IterationView(ordinal=1, baseline=SHA, winner=0, decided_by="changed", candidates=(LAZY,)),),
        warnings=("no sandbox here",),
    ),
    "odd_text": view(goal="a\x1b[31mred\x1b[0m\ngoal", repo="/tmp/\u202eevil", rungs=("x\x07",)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_view_reads_as_its_golden_file(name: str, golden: Golden) -> None:
    golden(f"{name}.txt", "\n".join(run_lines(VIEWS[name], link="http://127.0.0.1:1/page")) + "\n")


def test_live_table_fits_the_terminal(golden: Golden) -> None:
    now = datetime(2026, 1, 2, 3, 5, 10, tzinfo=UTC)

    lines = live_lines(VIEWS["running"], now, 60)

    assert max(len(line) for line in lines[2:-1]) <= 60
    golden("live.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize("code", [*RunReason, *CandidateReason, *PromotionReason], ids=lambda code: code.value)
def test_every_reason_has_a_sentence(code: Any) -> None:
    text = reasons.sentence(Reason[Any](code=code, data={"winner": 1}))

    assert text
    assert "{" not in text


@pytest.mark.parametrize("code", RunReason, ids=lambda code: code.value)
def test_every_end_has_a_next_step(code: RunReason) -> None:
    step = reasons.next_step(view(status=RunStatus.FAILED, reason=Reason(code=code)))

    assert bool(step) == (code is not RunReason.PREFLIGHT_FAILED)
    assert "{" not in step


@pytest.mark.parametrize("kind", OutcomeKind)
def test_agents_that_all_failed_alike_have_one_mend(kind: OutcomeKind) -> None:
    alike = IterationView(ordinal=1, baseline=SHA, candidates=tuple(candidate(n, outcome=kind.value) for n in (1, 2)))
    ended = view(
        status=RunStatus.FAILED, reason=Reason(code=RunReason.STUCK_NO_DIFF), iterations=(alike,), promoted=None
    )

    usual = reasons.next_step(ended.model_copy(update={"iterations": ()}))
    own = {OutcomeKind.DONE, OutcomeKind.NO_CHANGE, OutcomeKind.KILLED}  # nothing of the agent's is to be mended
    ending_the_run = {OutcomeKind.NOT_AUTHORISED, OutcomeKind.OUT_OF_QUOTA, OutcomeKind.NOT_STARTED}
    assert (reasons.next_step(ended) == usual) is (kind in own | ending_the_run)


@pytest.mark.parametrize("kind", OutcomeKind)
def test_every_outcome_has_its_words(kind: OutcomeKind) -> None:
    words = reasons.outcome_words(candidate(1, outcome=kind.value, outcome_detail="as told"))

    assert words.endswith(": as told") is (kind not in {OutcomeKind.DONE, OutcomeKind.NO_CHANGE})


def test_a_resting_agent_tells_when_it_goes_on() -> None:
    words = reasons.outcome_words(candidate(1, outcome="rate_limited", resting_until=1_796_000_000.0))

    assert words.startswith("the agent was rate limited, goes on at ")


def test_red_rung_that_did_not_end_by_itself_says_what_ended_it() -> None:
    rungs = (
        RungView(name="unit", result="exit 1", wall_s=1.0),
        RungView(name="slow", result="reached a limit (300 MiB of memory)", wall_s=1.0),
    )
    lines = iteration_lines(IterationView(ordinal=1, baseline=SHA, candidates=(candidate(1, rungs=rungs),)))

    assert lines[-1].endswith("red: unit, slow reached a limit (300 MiB of memory)")
