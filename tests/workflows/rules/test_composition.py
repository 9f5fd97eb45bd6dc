"""Which tickets are composed, and what follows a rerun."""

from __future__ import annotations

import itertools

import pytest

from orch.workflows.model.round.composition import Pick, Rerun, StepResult
from orch.workflows.model.round.plan import Composition
from orch.workflows.model.round.trial import Evaluation, Judgement
from orch.workflows.rules.composition import fallback, picks, result_of


def _pick(lane: str, ticket: str, gain: float | None, verdict: Judgement = Judgement.PASSED) -> Pick:
    return Pick(lane=lane, ticket=ticket, commit="a" * 40, evaluation=Evaluation(verdict=verdict, gain=gain))


A1, A2 = _pick("a", "r-a-1", 0.02), _pick("a", "r-a-2", 0.05)
B1, C1 = _pick("b", "r-b-1", 0.05), _pick("c", "r-c-1", 0.2, Judgement.INVALID)
D1 = _pick("d", "r-d-1", 0.09)


def _rerun(lanes: tuple[str, ...], verdict: Judgement, *, fallback: bool = False) -> Rerun:
    return Rerun(commit="b" * 40, lanes=lanes, fallback=fallback, evaluation=Evaluation(verdict=verdict))


def test_each_lane_gives_its_best_passing_ticket_the_largest_gain_first_then_by_lane() -> None:
    for order in itertools.permutations((A1, A2, B1, C1, D1)):
        assert picks(order) == (D1, A2, B1)


def test_of_equal_gains_in_a_lane_the_order_of_measuring_decides_nothing() -> None:
    same = _pick("a", "r-a-0", 0.05)
    assert picks([A2, same]) == picks([same, A2]) == (same,)


def test_nothing_that_passed_is_nothing_to_compose() -> None:
    assert picks([C1]) == picks([]) == ()


@pytest.mark.parametrize("verdict", list(Judgement))
def test_only_a_measured_gain_adds_a_step(verdict: Judgement) -> None:
    added = result_of(Evaluation(verdict=verdict)) is StepResult.ADDED
    assert added is (verdict is Judgement.PASSED)


@pytest.mark.parametrize(
    ("reruns", "policy", "expected"),
    [
        ([], "stepwise", None),
        ([_rerun(("d", "a"), Judgement.PASSED)], "stepwise", None),
        ([_rerun(("d", "a"), Judgement.NOT_MEASURED)], "stepwise", D1),
        ([_rerun(("d", "a"), Judgement.UNEVALUABLE)], "stepwise", D1),
        ([_rerun(("d", "a"), Judgement.NOT_MEASURED)], "strict", None),
        ([_rerun(("d",), Judgement.NOT_MEASURED)], "stepwise", None),
        (
            [_rerun(("d", "a"), Judgement.NOT_MEASURED), _rerun(("d",), Judgement.NOT_MEASURED, fallback=True)],
            "stepwise",
            None,
        ),
    ],
)
def test_one_fallback_to_the_best_single_lane_and_no_second(
    reruns: list[Rerun], policy: Composition, expected: Pick | None
) -> None:
    assert fallback((D1, A2, B1), reruns, policy) == expected
