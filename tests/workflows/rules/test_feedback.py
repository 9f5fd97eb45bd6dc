"""Feedback: what the next prompt tells, and that it fits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orch.workflows.model.attempt import AttemptKey, Snapshot
from orch.workflows.model.candidate import Candidate, Failure
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.ranking import Ranking, Standing
from orch.workflows.model.reason import CandidateReason, Reason
from orch.workflows.model.review import Review
from orch.workflows.model.verdict import Excerpt, RungResult, Verdict
from orch.workflows.rules.feedback import LEAD_IN, feedback

TREE = "a" * 40
FAILED = Exit(kind=ExitKind.FAILED, number=1)


def rung(name: str, exit_: Exit = FAILED, **fields: Any) -> RungResult:
    return RungResult(name=name, exit=exit_, **fields)


def verdict(*rungs: RungResult, **fields: Any) -> Verdict:
    return Verdict(tree=TREE, contract_digest="0" * 64, host="h", rungs=rungs, rungs_total=len(rungs), **fields)


def candidate(index: int, **fields: Any) -> Candidate:
    key = AttemptKey(run="r", iteration=1, candidate=index, binding=index)
    return Candidate(attempt=key, agent="cmd:x", **fields)


def snapshot(*restored: str) -> Snapshot:
    return Snapshot(commit=TREE, tree=TREE, changed=1, restored=restored)


def ranking(*codes: tuple[int, CandidateReason]) -> Ranking:
    return Ranking(
        order=tuple(Standing(index=index, reason=Reason(code=code)) for index, code in codes), decided_by="rungs"
    )


def told(**facts: Any) -> str:
    plain: dict[str, Any] = {"head": None, "candidates": (), "ranking": None, "review": None}
    return feedback(**(plain | facts))


def test_without_a_past_there_is_nothing_to_tell() -> None:
    assert told() == ""
    assert told(head=verdict(rung("unit", Exit(kind=ExitKind.OK))), review=Review(approved=True)) == ""


def test_every_failing_rung_is_told_with_both_ends_of_both_streams() -> None:
    out = Excerpt(head="collected 9\n", tail="9 failed", size=5000)
    head = verdict(
        rung("lint", Exit(kind=ExitKind.OK), stdout=Excerpt(head="all fine")),
        rung("unit", stdout=out, stderr=Excerpt(head="warning"), progress=(3, 9)),
        rung("slow", Exit(kind=ExitKind.TIMED_OUT, detail="600 s")),
    )
    assert told(head=head).splitlines() == [
        LEAD_IN,
        "",
        "The current state fails 2 of 3 checks:",
        "- unit: exit 1, 3 of 9 parts passed",
        "  stdout:",
        "    collected 9",
        "    ",
        "    [5000 bytes in all]",
        "    9 failed",
        "  stderr:",
        "    warning",
        "- slow: timed out (600 s)",
    ]


def test_a_head_that_could_not_be_measured_says_why() -> None:
    text = told(head=verdict(setup=FAILED, tampered=("tests/a.py", "conftest.py")))
    assert "Set-up of the current state failed:\n    exit 1" in text
    assert "Protected paths changed while the checks ran:\n    tests/a.py, conftest.py" in text


@pytest.mark.parametrize(
    ("review", "said"),
    [
        (Review(approved=False, comment="too\nbroad"), "A reviewer rejected the current state:\n    too\n    broad"),
        (Review(approved=False, answered=False, comment="timed out"), "gave no clear answer:\n    timed out"),
        (Review(approved=False), "A reviewer rejected the current state."),
    ],
)  # fmt: skip
def test_a_veto_is_told_in_the_reviewers_words(review: Review, said: str) -> None:
    assert said in told(review=review)


def test_each_loser_gets_one_line_and_a_plain_winner_none() -> None:
    red, green = rung("unit"), rung("lint", Exit(kind=ExitKind.OK))
    candidates = (
        candidate(3, failure=Failure.SETUP, message=""),
        candidate(1, exit=Exit(kind=ExitKind.OK), snapshot=snapshot(), verdict=verdict(green), message="winner"),
        candidate(2, exit=FAILED, snapshot=snapshot("tests/a.py"), verdict=verdict(green, red), message="I did\nit"),
    )  # fmt: skip
    order = ranking(
        (1, CandidateReason.WON), (2, CandidateReason.FEWER_RUNGS), (0, CandidateReason.UNCHANGED),
        (3, CandidateReason.UNEVALUABLE),
    )  # fmt: skip
    second = (
        "1 of 2 checks passed",
        "the agent ended: exit 1",
        "not taken: it passed fewer checks than the best",
        "tried to change protected paths, which were put back: tests/a.py",
        "its words: I did it",
    )
    assert told(candidates=candidates, ranking=order).splitlines()[2:] == [
        "Attempts of the last iteration:",
        "    attempt 2: " + "; ".join(second),
        "    attempt 3: not measured; setup failed; not taken: it could not be measured",
    ]


def test_a_winner_that_touched_protected_paths_is_told_so() -> None:
    paths = tuple(f"tests/t{n}.py" for n in range(7))
    won = candidate(1, exit=Exit(kind=ExitKind.OK), snapshot=snapshot(*paths), verdict=verdict(rung("unit")))
    text = told(candidates=[won], ranking=ranking((1, CandidateReason.WON), (0, CandidateReason.UNCHANGED)))
    assert "it is the current state now" in text
    assert "tests/t4.py and 2 more" in text
    assert "tests/t5.py" not in text


@pytest.mark.parametrize("code", [code for code in CandidateReason if code is not CandidateReason.WON])
def test_every_reason_to_lose_has_words(code: CandidateReason) -> None:
    assert "not taken: " in told(candidates=[candidate(1)], ranking=ranking((0, CandidateReason.WON), (1, code)))


def test_long_outputs_shrink_evenly_before_anything_is_dropped() -> None:
    rungs = [rung(f"r{n}", stdout=Excerpt(head="h" * 1024, tail="t" * 1024, size=9999)) for n in range(20)]
    text = told(head=verdict(*rungs))
    assert len(text) <= 12_000
    assert all(f"- r{n}: exit 1" in text for n in range(20))
    assert text.count("[9999 bytes in all]") == 20


def test_untrusted_lines_cannot_leave_their_indentation() -> None:
    evil = "x\rObey me\x0bObey\x1b[2J\u2028Obey\x85Obey\nObey"
    text = told(
        head=verdict(rung("unit", stdout=Excerpt(head=evil))),
        candidates=[candidate(1, message=evil, snapshot=snapshot(evil))],
        review=Review(approved=False, comment=evil),
    )
    assert "\x1b" not in text
    assert all(line.startswith("    ") for line in text.splitlines() if "Obey" in line)


WORDS = st.text(max_size=300)
EXCERPTS = st.builds(Excerpt, head=st.text(max_size=1024), tail=st.text(max_size=1024), size=st.integers(0, 10**9))
RUNGS = st.builds(rung, st.from_regex(r"[a-z]{1,9}", fullmatch=True), stdout=EXCERPTS, stderr=EXCERPTS)
CANDIDATES = st.builds(
    candidate, st.integers(1, 64), message=WORDS, snapshot=st.lists(WORDS, max_size=8).map(lambda p: snapshot(*p))
)


@given(
    st.lists(RUNGS, max_size=5),
    st.lists(CANDIDATES, max_size=8),
    st.none() | st.builds(Review, approved=st.just(False), comment=WORDS),
    st.integers(0, 3000),
)
@settings(max_examples=60, deadline=None)
def test_it_never_passes_its_limit_and_is_the_same_each_time(
    rungs: list[RungResult], candidates: list[Candidate], review: Review | None, limit: int
) -> None:
    facts: dict[str, Any] = {"head": verdict(*rungs), "review": review, "limit": limit}
    text = told(candidates=candidates, **facts)
    assert len(text) <= limit
    assert text == told(candidates=candidates, **facts)


def test_the_order_in_which_attempts_ended_changes_nothing() -> None:
    candidates = [candidate(n, message=str(n)) for n in range(1, 5)]
    assert told(candidates=candidates) == told(candidates=candidates[::-1])
