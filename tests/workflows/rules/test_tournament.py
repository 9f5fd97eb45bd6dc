"""The tournament: each key by table, the whole order by properties."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from orch.workflows.model.ranking import Contender, Ranking, SignOff
from orch.workflows.model.reason import CandidateReason
from orch.workflows.model.usage import Usage
from orch.workflows.rules.tournament import rank

TREE = "a" * 40


def contender(index: int, passed: str = "", **fields: Any) -> Contender:
    """`passed` is one letter per rung: `+` passed, `-` did not; without any it is unevaluable."""
    facts: dict[str, Any] = {"tree": TREE, "evaluable": bool(passed), "changed": index > 0}
    facts["passed"] = tuple(letter == "+" for letter in passed)
    return Contender(index=index, **(facts | fields))


def usd(amount: float) -> Usage:
    return Usage(usd=amount)


def tokens(amount: int) -> Usage:
    return Usage(tokens_in=amount)


def outcome(*contenders: Contender) -> tuple[list[int], str]:
    ranking = rank(contenders)
    return [standing.index for standing in ranking.order], ranking.decided_by


def code(ranking: Ranking, index: int) -> CandidateReason:
    return ranking.reason_of(index).code


@pytest.mark.parametrize(
    ("contenders", "order", "decided_by"),
    [
        ([contender(0, "+-")], [0], "only"),
        ([contender(0, "--"), contender(1), contender(2, "--")], [2, 0, 1], "changed"),
        ([contender(0, "--"), contender(1)], [0, 1], "evaluable"),
        ([contender(0, "+---"), contender(1, "++--"), contender(2, "+++-")], [2, 1, 0], "rungs"),
        ([contender(0, "++--"), contender(1, "--++"), contender(2, "+-+-")], [0, 2, 1], "lost_rungs"),
        (
            [contender(0, "-"), contender(1, "-", progress=((3, 4),)), contender(2, "-", progress=((2, 3),))],
            [1, 2, 0],
            "progress",
        ),
        (
            [contender(0, "-"), contender(1, "+", signoff=SignOff.VETOED), contender(2, "+")],
            [2, 1, 0],
            "sign_off",
        ),
        (
            [contender(0, "-"), contender(1, "+"), contender(2, "+", signoff=SignOff.APPROVED)],
            [2, 1, 0],
            "sign_off",
        ),
        ([contender(0, "+", signoff=SignOff.VETOED), contender(1, "+")], [1, 0], "sign_off"),
        ([contender(0, "-"), contender(1, "-", usage=usd(9))], [1, 0], "changed"),
        ([contender(0, "-"), contender(1, "-", changed=False, usage=usd(0))], [0, 1], "changed"),
        (
            [contender(0, "-"), contender(1, "+", usage=usd(2)), contender(2, "+", usage=usd(1))],
            [2, 1, 0],
            "cost",
        ),
        ([contender(0, "-"), contender(1, "+"), contender(2, "+", usage=usd(5))], [1, 2, 0], "index"),
        ([contender(0, "-"), contender(1, "+"), contender(2, "+", usage=tokens(5))], [2, 1, 0], "cost"),
        ([contender(0, "-"), contender(1, "+"), contender(2, "+")], [1, 2, 0], "index"),
    ],
    ids=[
        "alone",
        "evaluable-first",
        "only-incumbent-evaluable",
        "rungs",
        "lost-rungs",
        "progress",
        "vetoed-last",
        "approved-first",
        "vetoed-head-yields",
        "any-change-beats-standing-still",
        "giving-up-is-not-cheap",
        "cheaper",
        "usd-not-known-of-all",
        "unknown-cost-last",
        "index",
    ],
)
def test_keys_decide_in_their_order(contenders: list[Contender], order: list[int], decided_by: str) -> None:
    assert outcome(*contenders) == (order, decided_by)


def test_a_candidate_that_gave_up_first_does_not_win_by_being_cheap() -> None:
    gave_up = contender(1, "-", changed=False, usage=usd(0.01))
    worked = contender(2, "-", usage=usd(4))
    ranking = rank([contender(0, "-"), gave_up, worked])
    assert ranking.winner == 2
    assert code(ranking, 1) is CandidateReason.UNCHANGED
    assert code(ranking, 0) is CandidateReason.UNCHANGED


def test_the_incumbent_stays_among_trees_that_could_not_be_measured() -> None:
    ranking = rank([contender(1), contender(2, passed="++", evaluable=False), contender(0)])
    assert (ranking.winner, ranking.decided_by) == (0, "evaluable")
    assert {code(ranking, 1), code(ranking, 2)} == {CandidateReason.UNEVALUABLE}


def test_a_measured_candidate_replaces_a_head_that_could_not_be_measured() -> None:
    ranking = rank([contender(0, passed="++", evaluable=False), contender(1, "--")])
    assert (ranking.winner, ranking.decided_by) == (1, "evaluable")
    assert code(ranking, 0) is CandidateReason.UNEVALUABLE


def test_a_crash_ranks_below_any_measured_value() -> None:
    worst = contender(1, "---", progress=((0, 9), None, (0, 0)), usage=usd(99), signoff=SignOff.VETOED)
    crashed = contender(2, usage=usd(0), signoff=SignOff.APPROVED)
    assert outcome(contender(0, "--+"), worst, crashed)[0] == [0, 1, 2]


def test_losses_are_counted_only_against_a_measured_incumbent() -> None:
    head = contender(0, passed="++-", evaluable=False)
    assert outcome(head, contender(1, "--+"), contender(2, "+--"))[0] == [1, 2, 0]


def test_reasons_carry_both_sides_of_the_key_that_decided() -> None:
    ranking = rank(
        [
            contender(0, "++--"),
            contender(1, "+++-", progress=(None, None, None, (1, 2)), usage=usd(3)),
            contender(2, "+++-", progress=(None, None, None, (1, 2)), usage=usd(1)),
            contender(3, "+++-", progress=(None, None, None, (1, 4)), usage=usd(1)),
            contender(4, "+-++", usage=usd(1)),
            contender(5, "+++-", progress=(None, None, None, (1, 2)), usage=usd(1)),
            contender(6, tree=None, changed=False),
            contender(7, tree=None, changed=False, usage=Usage(wall_s=3.0)),
        ]
    )
    assert [(s.index, s.reason.code.value, s.reason.data) for s in ranking.order] == [
        (2, "won", {"decided_by": "index"}),
        (5, "later_index", {"index": 5, "winner": 2}),
        (1, "costlier", {"unit": "usd", "cost": 3, "winner": 1}),
        (3, "less_progress", {"progress": 0.25, "winner": 0.5}),
        (4, "lost_rungs", {"lost": 1, "winner": 0}),
        (0, "fewer_rungs", {"passed": 2, "winner": 3}),
        (6, "not_started", {}),
        (7, "unevaluable", {}),
    ]


def test_an_unknown_cost_is_told_as_unknown() -> None:
    ranking = rank([contender(0, "-"), contender(1, "+"), contender(2, "+", usage=tokens(7))])
    assert ranking.reason_of(1).data == {"unit": "tokens", "cost": None, "winner": 7}


@pytest.mark.parametrize("indices", [[], [1], [0, 1, 1], [0, 0]])
def test_a_ranking_needs_the_incumbent_and_distinct_indices(indices: list[int]) -> None:
    with pytest.raises(ValueError, match="incumbent"):
        rank([contender(index, "-") for index in indices])


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), -1.0])
def test_a_cost_that_is_no_number_cannot_be_written_down(amount: float) -> None:
    with pytest.raises(ValidationError):
        Usage(usd=amount)


LADDER = 3
USAGES = st.builds(Usage, usd=st.none() | st.floats(0, 10), tokens_in=st.none() | st.integers(0, 5))


PARTS = st.none() | st.tuples(st.integers(0, 3), st.just(3))
CANDIDATES = st.builds(
    Contender,
    index=st.just(1),
    tree=st.just(TREE),
    evaluable=st.booleans(),
    passed=st.tuples(*[st.booleans()] * LADDER),
    progress=st.tuples(*[PARTS] * LADDER),
    changed=st.booleans(),
    signoff=st.sampled_from(SignOff),
    usage=USAGES,
)


def numbered(contenders: list[Contender]) -> list[Contender]:
    head, *rest = contenders
    first = head.model_copy(update={"index": 0, "changed": False})
    return [first, *(c.model_copy(update={"index": n}) for n, c in enumerate(rest, 1))]


def contender_lists() -> st.SearchStrategy[list[Contender]]:
    return st.lists(CANDIDATES, min_size=1, max_size=6).map(numbered)


@given(contender_lists(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_selection_is_independent_of_permutation_and_order_of_completion(
    contenders: list[Contender], random: Any
) -> None:
    shuffled = random.sample(contenders, len(contenders))
    assert rank(shuffled) == rank(contenders)


@given(contender_lists())
@settings(deadline=None)
def test_the_incumbent_never_loses_to_something_worse(contenders: list[Contender]) -> None:
    head, winner = contenders[0], contenders[rank(contenders).winner]
    if winner.index == 0 or not head.evaluable:
        return
    lost = sum(had and not has for had, has in zip(head.passed, winner.passed, strict=True))
    order = list(SignOff)
    ahead = (sum(winner.passed), -lost, winner.advance, -order.index(winner.signoff))
    behind = (sum(head.passed), 0, head.advance, -order.index(head.signoff))
    assert winner.evaluable
    assert ahead > behind or (ahead == behind and winner.changed)


@given(contender_lists())
@settings(deadline=None)
def test_an_unevaluable_candidate_never_beats_an_evaluable_contender(contenders: list[Contender]) -> None:
    facts = {contender.index: contender.evaluable for contender in contenders}
    order = [facts[standing.index] for standing in rank(contenders).order]
    assert order == sorted(order, reverse=True)
    if not any(facts.values()):
        assert rank(contenders).winner == 0


@given(contender_lists())
@settings(deadline=None)
def test_every_loser_has_a_reason_and_only_the_winner_won(contenders: list[Contender]) -> None:
    ranking = rank(contenders)
    assert sorted(standing.index for standing in ranking.order) == [c.index for c in contenders]
    won = [standing.index for standing in ranking.order if standing.reason.code is CandidateReason.WON]
    assert won == [ranking.winner]


@given(contender_lists(), USAGES)
@settings(max_examples=50, deadline=None)
def test_what_the_incumbent_cost_never_decides(contenders: list[Contender], usage: Usage) -> None:
    head, *rest = contenders
    assert rank([head.model_copy(update={"usage": usage}), *rest]) == rank(contenders)


@given(contender_lists(), st.integers(1, 5))
@settings(max_examples=50, deadline=None)
def test_a_loser_that_drops_out_changes_nothing_for_those_ahead(contenders: list[Contender], at: int) -> None:
    plain = [c.model_copy(update={"usage": Usage()}) for c in contenders]
    order = [standing.index for standing in rank(plain).order]
    gone = order[min(at, len(order) - 1)]
    if gone != 0:
        rest = rank([c for c in plain if c.index != gone])
        assert [standing.index for standing in rest.order] == [index for index in order if index != gone]
