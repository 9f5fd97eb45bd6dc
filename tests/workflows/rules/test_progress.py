"""What a run does next, by table."""

from __future__ import annotations

from typing import Any

import pytest

from orch.workflows.model.attempt import AttemptKey, Snapshot
from orch.workflows.model.budget import Caps
from orch.workflows.model.candidate import Candidate
from orch.workflows.model.event import IterationDecided, IterationStarted
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.progress import IterationFacts, Next
from orch.workflows.model.ranking import Ranking, Standing
from orch.workflows.model.reason import CandidateReason, Reason, RunReason
from orch.workflows.rules.progress import decide

STUCK: Reason[RunReason] = Reason(code=RunReason.STUCK_NO_DIFF)
CAPS = Caps(max_iterations=3, tokens=100, usd=2.5, deadline_s=60)
ALL_CAPS: dict[str, Any] = {"iterations": 3, "budget_reason": RunReason.BUDGET_USD, "deadline_passed": True}
OLD, NEW = "a" * 40, "b" * 40


def following(**facts: Any) -> Next:
    plain: dict[str, Any] = {
        "gate_passed": False,
        "vetoed": None,
        "stuck": None,
        "iterations": 1,
        "caps": CAPS,
        "budget_reason": None,
        "deadline_passed": False,
    }
    return decide(**(plain | facts))


@pytest.mark.parametrize(
    ("facts", "kind", "code"),
    [
        ({}, "continue", None),
        ({"gate_passed": True}, "done", "done"),
        ({"gate_passed": True, "vetoed": False}, "done", "done"),
        ({"gate_passed": True, "vetoed": True}, "continue", None),
        ({"gate_passed": False, "vetoed": False}, "continue", None),
        ({"gate_passed": True, "stuck": STUCK, **ALL_CAPS}, "done", "done"),
        ({"gate_passed": True, "vetoed": True, "stuck": STUCK, **ALL_CAPS}, "end", "stuck_no_diff"),
        ({"stuck": STUCK, **ALL_CAPS}, "end", "stuck_no_diff"),
        (ALL_CAPS, "end", "iteration_cap"),
        (ALL_CAPS | {"iterations": 2}, "end", "budget_usd"),
        (ALL_CAPS | {"iterations": 2, "budget_reason": RunReason.BUDGET_TOKENS}, "end", "budget_tokens"),
        (ALL_CAPS | {"iterations": 2, "budget_reason": None}, "end", "deadline"),
        ({"iterations": 2}, "continue", None),
    ],
)
def test_the_first_that_holds_decides(facts: dict[str, Any], kind: str, code: str | None) -> None:
    result = following(**facts)
    assert (result.kind.value, result.reason.code.value if result.reason else None) == (kind, code)


@pytest.mark.parametrize(
    ("facts", "data"),
    [
        (ALL_CAPS, {"iterations": 3, "cap": 3}),
        (ALL_CAPS | {"iterations": 2}, {"cap": 2.5}),
        (ALL_CAPS | {"iterations": 2, "budget_reason": RunReason.BUDGET_TOKENS}, {"cap": 100}),
        ({"deadline_passed": True}, {"deadline_s": 60}),
    ],
)
def test_a_cap_that_ends_a_run_is_named_with_its_size(facts: dict[str, Any], data: dict[str, Any]) -> None:
    reason = following(**facts).reason
    assert reason is not None
    assert reason.data == data


def test_an_extension_lets_a_capped_run_go_on() -> None:
    assert following(iterations=3, caps=CAPS.model_copy(update={"max_iterations": 4})).kind.value == "continue"


def candidate(index: int, kind: ExitKind | None, *, changed: int = 0) -> Candidate:
    return Candidate(
        attempt=AttemptKey(run="r", iteration=1, candidate=index, binding=index),
        agent="cmd:x",
        exit=Exit(kind=kind) if kind else None,
        snapshot=Snapshot(commit=NEW, tree=NEW, changed=changed),
    )


@pytest.mark.parametrize(
    ("kinds", "crashed", "timed_out", "cut_short"),
    [
        ([], False, False, False),
        ([ExitKind.OK, ExitKind.FAILED], False, False, False),
        ([ExitKind.FAILED, ExitKind.SIGNALLED, None, ExitKind.NOT_STARTED], True, False, True),
        ([ExitKind.LIMITED, ExitKind.FAILED], True, False, True),
        ([ExitKind.TIMED_OUT, ExitKind.TIMED_OUT], False, True, True),
        ([ExitKind.TIMED_OUT, ExitKind.FAILED], False, False, True),
    ],
)
def test_facts_are_read_from_an_iterations_events(
    kinds: list[ExitKind | None], crashed: bool, timed_out: bool, cut_short: bool
) -> None:
    started = IterationStarted(seq=1, at="t", ordinal=4, commit=OLD, tree=OLD, attempts=())
    won = Standing(index=0, reason=Reason(code=CandidateReason.WON))
    ranking = Ranking(order=(won,), decided_by="only")
    decided = IterationDecided(seq=2, at="t", ordinal=4, ranking=ranking, commit=OLD, tree=OLD)
    candidates = [candidate(i + 1, kind) for i, kind in enumerate(kinds)]
    facts = IterationFacts.of(started, decided, candidates, failure_text="red", vetoed=True)
    assert (facts.all_crashed, facts.all_timed_out, facts.all_cut_short) == (crashed, timed_out, cut_short)
    assert (facts.ordinal, facts.still, facts.failure_text, facts.vetoed) == (4, True, "red", True)
    changed = IterationFacts.of(started, decided, [*candidates, candidate(9, ExitKind.OK, changed=1)])
    assert (changed.still, changed.changed, changed.all_unevaluable) == (False, True, True)
