"""What a run has spent: each launch notes its own, all are summed, and a passed cap tells by how much."""

from __future__ import annotations

from pathlib import Path

import pytest

from orch.activities.agents.spec import parse
from orch.activities.agents.spending import SPENT, note, over, over_own, spent
from orch.workflows.model.attempt import SpendCaps
from orch.workflows.model.outcome import Outcome, OutcomeKind
from orch.workflows.model.usage import Usage

JOBS = ("i1-c1-b1/agent", "i1-c1-b1/agent-2", "i1-c2-b2/agent", "i2-c0-b3/review/agent", "i2-c0-b3/review/agent-2")


def turns(detail: str) -> Outcome:
    return Outcome(kind=OutcomeKind.TURN_LIMIT, detail=detail)


def budget(detail: str) -> Outcome:
    return Outcome(kind=OutcomeKind.BUDGET_LIMIT, detail=detail)


def test_every_launch_of_every_attempt_and_review_is_summed(tmp_path: Path) -> None:
    for number, job in enumerate(JOBS):
        note(tmp_path / "attempts" / job, Usage(tokens_in=10**number, usd=0.5))

    assert spent(tmp_path) == Usage(tokens_in=11111, usd=2.5)


def test_latest_note_of_a_launch_replaces_the_one_before(tmp_path: Path) -> None:
    for tokens in (5, 7):
        note(tmp_path / "attempts" / JOBS[0], Usage(tokens_in=tokens))

    assert spent(tmp_path) == Usage(tokens_in=7)


def test_nothing_told_is_unknown_and_not_zero(tmp_path: Path) -> None:
    assert spent(tmp_path).tokens is None
    note(tmp_path / "attempts" / JOBS[0], Usage())
    assert spent(tmp_path) == Usage()


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'{"tokens_in": -1}', b'{"of": "another version"}'])
def test_note_that_cannot_be_read_is_unknown_and_hides_no_other(tmp_path: Path, text: bytes) -> None:
    note(tmp_path / "attempts" / JOBS[0], Usage(tokens_in=3))
    note(tmp_path / "attempts" / JOBS[1], Usage(tokens_in=4))
    (tmp_path / "attempts" / JOBS[1] / SPENT).write_bytes(text)

    assert spent(tmp_path) == Usage(tokens_in=3)


@pytest.mark.parametrize(
    ("caps", "usage", "passed"),
    [
        (SpendCaps(), Usage(tokens_in=10**9, usd=10**6), None),
        (SpendCaps(tokens=100), Usage(tokens_in=100), None),
        (SpendCaps(tokens=100), Usage(), None),
        (SpendCaps(tokens=100), Usage(usd=5.0), None),
        (SpendCaps(tokens=999), Usage(tokens_in=900, tokens_out=90, tokens_cached=11), "1,001 tokens of the run's 999"),
        (SpendCaps(usd=0.5), Usage(usd=0.5), None),
        (SpendCaps(usd=0.5), Usage(usd=0.75), "$0.7500 of the run's $0.5000"),
        (SpendCaps(tokens=1, usd=0.5), Usage(tokens_in=2, usd=0.75), "2 tokens of the run's 1"),
    ],
)  # fmt: skip
def test_cap_is_passed_above_it_and_tells_by_how_much(caps: SpendCaps, usage: Usage, passed: str | None) -> None:
    assert over(caps, usage, "the run's") == (None if passed is None else budget(passed))


@pytest.mark.parametrize(
    ("settings", "usage", "asked", "passed"),
    [
        ("", Usage(tokens_in=10**9, usd=10**6), 10**6, None),
        (",max-turns=3", Usage(), 3, None),
        (",max-turns=3", Usage(), None, None),
        (",max-turns=3", Usage(), 4, turns("4 turns of 3")),
        (",max-tokens=5", Usage(tokens_out=5), 1, None),
        (",max-tokens=5", Usage(tokens_out=6), 1, budget("6 tokens of the attempt's 5")),
        (",max-usd=0.01", Usage(usd=0.02), None, budget("$0.0200 of the attempt's $0.0100")),
        (",max-turns=3,max-tokens=5", Usage(tokens_in=6), 4, turns("4 turns of 3")),
    ],
)  # fmt: skip
def test_launch_has_the_limits_of_its_own_spec(
    settings: str, usage: Usage, asked: int | None, passed: Outcome | None
) -> None:
    assert over_own(parse(f"codex:m{settings}"), usage, asked) == passed
