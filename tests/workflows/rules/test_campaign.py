"""What a closed round says of a campaign's entries."""

from __future__ import annotations

from typing import Any

import pytest

from orch.workflows.model.round.closing import LaneClosed, RoundClosed, TicketVerdict
from orch.workflows.model.round.composition import Pick, Rerun, Step, StepResult
from orch.workflows.model.round.lane import LaneEnd
from orch.workflows.model.round.plan import EntryStatus, RoundPlan
from orch.workflows.model.round.ticket import Cause
from orch.workflows.model.round.trial import Evaluation, Judgement
from orch.workflows.rules.campaign import last_rows, revisions, superseded, tried

OLD, NEW = "1" * 40, "2" * 40

PLAN = RoundPlan.model_validate(
    {
        "id": "r2",
        "campaign": "c",
        "campaign_digest": "0" * 64,
        "incumbent": OLD,
        "metric": {"name": "latency", "direction": "lower", "unit": "ms"},
        "gates": {},
        "devices": [{"name": "d"}],
        "commands": {"benchmark": {"run": "true"}},
        "lanes": [
            {
                "id": name,
                "entry": {"id": f"entry-{name}", "plane": "io", "hypothesis": "h", "headroom": 0.1},
                "globs": [f"{name}.py"],
                "agent": "cmd:true",
                "condition": "new data" if name == "a" else "",
            }
            for name in "ab"
        ],
    }
)


def shown(verdict: str, gain: float | None = 0.05) -> Evaluation:
    return Evaluation(verdict=Judgement(verdict), gain=gain, why=f"gain {gain}")


def pick(lane: str) -> Pick:
    return Pick(lane=lane, ticket=f"r2-{lane}-1", commit=NEW, evaluation=shown("passed"))


def step(lane: str, result: str, verdict: str) -> Step:
    return Step(
        lane=lane,
        ticket=f"r2-{lane}-1",
        base=OLD,
        commit=NEW,
        result=StepResult(result),
        evaluation=shown(verdict, 0.001),
    )


def rerun(*lanes: str, verdict: str, fallback: bool = False) -> Rerun:
    return Rerun(commit=NEW, lanes=lanes, fallback=fallback, evaluation=shown(verdict, 0.002))


def measured(lane: str, *verdicts: tuple[str, float | None]) -> tuple[TicketVerdict, ...]:
    return tuple(
        TicketVerdict(ticket=f"r2-{lane}-{number}", evaluation=shown(verdict, gain))
        for number, (verdict, gain) in enumerate(verdicts, 1)
    )


def stands(a: dict[str, Any], **closed: Any) -> tuple[str, str, str]:
    """What becomes of lane a: status, why, condition."""
    lane = LaneClosed(**{"lane": "a", "end": LaneEnd.DONE, **a})
    row, _ = revisions(PLAN, "round-c-r2", RoundClosed(lanes=(lane,), **closed), "2026-01-02T03:04:05Z")
    return row.status.value, row.why, row.condition


def test_composed_lane_is_kept_and_a_lane_that_never_began_stays_planned() -> None:
    closed = RoundClosed(
        lanes=(LaneClosed(lane="a", pick=pick("a"), step=step("a", "first", "passed")),),
        reruns=(rerun("a", verdict="passed"),),
        composed=("a",),
        incumbent=NEW,
    )

    one, two = revisions(PLAN, "round-c-r2", closed, "2026-01-02T03:04:05Z")

    assert (one.entry, one.lane, one.status, one.why) == ("entry-a", "a", EntryStatus.KEPT, "composed: gain 0.05")
    assert (one.ticket, one.gain, one.condition, one.round) == ("r2-a-1", 0.05, "new data", "r2")
    assert (two.status, two.why) == (
        EntryStatus.PLANNED,
        "nothing was learnt: nothing was submitted; the lane never began",
    )


ROWS: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, str, str]]] = {
    "no passing ticket": (
        {"measured": measured("a", ("regression", -0.1), ("not_measured", 0.001), ("unevaluable", None))},
        {},
        ("rejected", "none of its 3 tickets passed: not measured, gain 0.001", "new data"),
    ),
    "its only ticket failed": (
        {"measured": measured("a", ("invalid", None)), "rejected": (Cause.BUILD_FAILED,)},
        {},
        ("rejected", "its ticket did not pass: invalid, gain None", "new data"),
    ),
    "lost in composition, a new incumbent": (
        {"pick": pick("a"), "step": step("a", "skipped", "not_measured")},
        {"reruns": (rerun("b", verdict="passed"),), "composed": ("b",), "incumbent": NEW},
        (
            "planned",
            "passed alone, but not on the head of the lanes before it: gain 0.001",
            "the incumbent is 222222222222 since round r2",
        ),
    ),
    "the composed head failed, the other lane became the incumbent": (
        {"pick": pick("a"), "step": step("a", "added", "passed")},
        {
            "reruns": (rerun("b", "a", verdict="not_measured"), rerun("b", verdict="passed", fallback=True)),
            "composed": ("b",),
            "incumbent": NEW,
        },
        (
            "planned",
            "passed alone, but the composed head did not pass again: gain 0.002",
            "the incumbent is 222222222222 since round r2",
        ),
    ),
    "the composed head failed, and the other lane too": (
        {"pick": pick("a"), "step": step("a", "added", "passed")},
        {"reruns": (rerun("b", "a", verdict="regression"), rerun("b", verdict="regression", fallback=True))},
        ("planned", "passed alone, but the composed head did not pass again: gain 0.002", "new data"),
    ),
    "it alone was measured again and failed": (
        {"pick": pick("a"), "step": step("a", "first", "passed")},
        {"reruns": (rerun("a", verdict="not_measured"),)},
        ("rejected", "passed once, but not again: gain 0.002", "new data"),
    ),
    "it alone was measured again, to no effect": (
        {"pick": pick("a"), "step": step("a", "first", "passed")},
        {"reruns": (rerun("a", verdict="unevaluable"),)},
        ("planned", "passed once, but not again: gain 0.002", "new data"),
    ),
    "the round ended before composition": (
        {"pick": pick("a")},
        {},
        ("planned", "passed alone, but the round ended before it was composed", "new data"),
    ),
    "it passed, and the round was cut short": (
        {"end": LaneEnd.CANCELLED, "measured": measured("a", ("regression", -0.1), ("passed", 0.05))},
        {},
        ("planned", "passed alone, but the round ended before it was composed", "new data"),
    ),
    "it did not pass, but its lane was cut short at its work": (
        {"end": LaneEnd.CANCELLED, "measured": measured("a", ("regression", -0.1))},
        {},
        (
            "planned",
            "nothing was learnt: its lane was cut short; the last ticket: regression, gain -0.1",
            "new data",
        ),
    ),
    "cancelled before measuring": (
        {"end": LaneEnd.CANCELLED},
        {},
        ("planned", "nothing was learnt: nothing was submitted; the lane ended (cancelled)", "new data"),
    ),
    "nothing could be measured": (
        {"end": LaneEnd.DONE, "rejected": (Cause.BUILD_FAILED, Cause.OUT_OF_SCOPE, Cause.BUILD_FAILED)},
        {},
        (
            "planned",
            "nothing was learnt: no ticket could be measured (build_failed 2, out_of_scope 1); the lane ended (done)",
            "new data",
        ),
    ),
    "nothing that was measured says anything": (
        {"end": LaneEnd.DEADLINE, "measured": measured("a", ("unevaluable", None), ("inconclusive", 0.02))},
        {},
        (
            "planned",
            "nothing was learnt: no measurement showed anything (inconclusive, gain 0.02); the lane ended (deadline)",
            "new data",
        ),
    ),
    "one of two measurements says something": (
        {"end": LaneEnd.DONE, "measured": measured("a", ("unevaluable", None), ("not_measured", 0.001))},
        {},
        ("rejected", "none of its 2 tickets passed: not measured, gain 0.001", "new data"),
    ),
    "a ticket still waited": (
        {"end": LaneEnd.DEADLINE, "measured": measured("a", ("regression", -0.1)), "pending": 2},
        {},
        ("planned", "nothing was learnt: 2 of its tickets were never measured; the lane ended (deadline)", "new data"),
    ),
}


@pytest.mark.parametrize(("lane", "closed", "expected"), ROWS.values(), ids=ROWS.keys())
def test_lane_becomes_a_row(lane: dict[str, Any], closed: dict[str, Any], expected: tuple[str, str, str]) -> None:
    assert stands(lane, **closed) == expected


def test_best_failing_ticket_decides() -> None:
    closed = RoundClosed(
        lanes=(
            LaneClosed(
                lane="a", end=LaneEnd.DONE, measured=measured("a", ("regression", -0.1), ("below_rollback", 0.01))
            ),
        )
    )

    row, _ = revisions(PLAN, "round-c-r2", closed, "")

    assert (row.ticket, row.gain) == ("r2-a-2", 0.01)


def test_round_that_was_overtaken_keeps_nothing() -> None:
    closed = RoundClosed(
        lanes=(
            LaneClosed(lane="a", pick=pick("a")),
            LaneClosed(lane="b", end=LaneEnd.DONE, measured=measured("b", ("regression", -0.1))),
        ),
        composed=("a",),
        incumbent=NEW,
    )

    one, two = superseded(revisions(PLAN, "round-c-r2", closed, ""), "3" * 40)

    assert one.status is EntryStatus.PLANNED
    assert one.why == "another round had advanced the incumbent meanwhile; composed: gain 0.05"
    assert one.condition == "the incumbent is 333333333333 since another round"
    assert two.status is EntryStatus.REJECTED


def test_condition_of_what_an_overtaken_round_would_plan_again_is_an_incumbent_that_there_is() -> None:
    closed = RoundClosed(
        lanes=(
            LaneClosed(lane="a", pick=pick("a"), step=step("a", "skipped", "not_measured")),
            LaneClosed(lane="b", pick=pick("b")),
        ),
        composed=("b",),
        incumbent=NEW,
    )

    lost, _ = superseded(revisions(PLAN, "round-c-r2", closed, ""), "3" * 40)

    assert (lost.status, lost.condition) == (EntryStatus.PLANNED, "the incumbent is 333333333333 since another round")


def test_last_row_counts_and_every_tried_condition_is_remembered() -> None:
    first = revisions(
        PLAN,
        "r",
        RoundClosed(lanes=(LaneClosed(lane="a", end=LaneEnd.DONE, measured=measured("a", ("invalid", None))),)),
        "",
    )
    later = revisions(PLAN, "s", RoundClosed(lanes=(LaneClosed(lane="a", pick=pick("a")),), composed=("a",)), "")

    assert last_rows((*first, *later))["entry-a"].status is EntryStatus.KEPT
    assert tried((*first, *later), "entry-a") == ("new data",)
    assert tried((*first, *later), "entry-b") == ()
