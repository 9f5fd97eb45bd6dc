"""The fold of what an agent said: outcome facts, session, answer, and what this run alone used."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.activities.agents.reading import ANSWER, WORDS, Reading, since
from orch.activities.agents.said import (
    Began,
    Complained,
    Denied,
    Edited,
    Ended,
    Failed,
    Recorded,
    Retrying,
    Said,
    SessionTotal,
    Text,
    Tool,
    ToolEnded,
    Total,
    Turn,
    Unknown,
    Used,
)
from orch.workflows.model.outcome import Account, OutcomeKind
from orch.workflows.model.usage import Usage

LIMITED, OVERLOADED = OutcomeKind.RATE_LIMITED, OutcomeKind.OVERLOADED
STEP = Usage(tokens_in=10, tokens_out=2)

counts = st.none() | st.integers(0, 10**9)
dollars = st.none() | st.integers(0, 10**6).map(lambda cents: cents / 100)
usages = st.builds(Usage, tokens_in=counts, tokens_out=counts, tokens_cached=counts, usd=dollars)


def read(*said: Said, before: Usage | None = None) -> Reading:
    reading = Reading(before=before or Usage())
    reading.take(said)
    return reading


def test_silent_agent_told_nothing() -> None:
    reading = read()

    assert reading.account() == Account()
    assert (reading.usage, reading.session, reading.session_used) == (Usage(), "", None)


def test_whole_run_is_told() -> None:
    reading = read(
        Began("s-1", "model-a", "1.2"), Turn(), Text("let me see"), Tool("bash", "ls"), Denied("bash"),
        ToolEnded(ok=False), Used(STEP), Unknown("news"), Turn(), Edited("a.py"), Text("done"), Used(STEP),
        Ended("stop"),
    )  # fmt: skip

    assert reading.account() == Account(
        final=True, answered=True, stop="stop", turns=2, denials=("bash",), unknown_events=1
    )
    assert (reading.session, reading.model, reading.answer) == ("s-1", "model-a", "done")
    assert reading.usage == Usage(tokens_in=20, tokens_out=4)


def test_later_name_of_the_session_counts_and_an_empty_one_does_not() -> None:
    reading = read(Began("s-1", "a"), Began("s-2"), Began("", "b"))

    assert (reading.session, reading.model) == ("s-2", "b")


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ([Failed(LIMITED, "429", 5.0), Ended()], LIMITED),
        ([Ended(), Failed(LIMITED, "429", 5.0)], LIMITED),
        ([Failed(LIMITED), Turn(), Text("on we go"), Ended()], None),
        ([Failed(LIMITED), Turn(), Failed(OVERLOADED)], OVERLOADED),
        ([Retrying(OVERLOADED)], OVERLOADED),
        ([Retrying(OVERLOADED), Ended()], None),
        ([Retrying(OVERLOADED), Text("back")], None),
        ([Retrying(OVERLOADED), Tool("bash")], None),
        ([Retrying(OVERLOADED), Used(STEP)], OVERLOADED),
        ([Retrying(OVERLOADED), Retrying(LIMITED)], LIMITED),
        ([Retrying(OVERLOADED), Failed(LIMITED)], LIMITED),
        ([Complained(LIMITED)], LIMITED),
        ([Complained(LIMITED), Complained(OVERLOADED)], LIMITED),
        ([Retrying(OVERLOADED), Complained(LIMITED)], OVERLOADED),
        ([Text("done"), Ended(), Complained(LIMITED)], None),
        ([Failed(OVERLOADED), Complained(LIMITED)], OVERLOADED),
    ],
)
def test_failure_is_the_last_one_reported_or_what_it_was_retrying_when_it_was_cut_off(
    said: list[Said], error: OutcomeKind | None
) -> None:
    assert read(*said).account().error is error


def test_another_turn_takes_the_last_word_back() -> None:
    account = read(Turn(), Text("cut"), Ended("length"), Turn(), Text("whole"), Ended()).account()

    assert (account.final, account.stop) == (True, "")
    assert read(Turn(), Ended("stop"), Turn()).account().final is False


@pytest.mark.parametrize(
    ("texts", "answer"),
    [
        ([Text("a"), Text("b")], "b"),
        ([Text("a"), Text("  \n")], "a"),
        ([Text("a"), Text("", final=True)], ""),
        ([Text("a"), Text("b", final=True)], "b"),
    ],
)
def test_answer_is_the_last_text(texts: list[Said], answer: str) -> None:
    reading = read(*texts, Ended())

    assert (reading.answer, reading.account().answered) == (answer, bool(answer))


def test_nothing_said_grows_without_bound() -> None:
    long = "x" * 1_000_000
    reading = read(Began(long), Text(f"{long}last line"), Failed(LIMITED, long), Ended(long), *([Denied(long)] * 100))

    account = reading.account()
    assert (len(reading.answer), reading.answer[-9:]) == (ANSWER, "last line")
    assert (len(account.detail), len(account.stop), len(account.denials)) == (WORDS, 100, 20)
    assert len(account.model_dump_json()) < 20_000
    assert len(reading.session) == WORDS


@pytest.mark.parametrize(("said", "kept"), [(5.0, 5.0), (None, None), (math.inf, None), (math.nan, None)])
def test_time_that_is_none_is_not_kept(said: float | None, kept: float | None) -> None:
    assert read(Failed(LIMITED, "", said)).account().retry_at == kept


@pytest.mark.parametrize(
    ("said", "used"),
    [
        ([Used(STEP), Used(STEP)], Usage(tokens_in=20, tokens_out=4)),
        ([Used(STEP), Total(Usage(tokens_in=7, usd=0.5))], Usage(tokens_in=7, usd=0.5)),
        ([Total(Usage(tokens_in=7)), Used(STEP)], Usage(tokens_in=17, tokens_out=2)),
        ([Used(STEP), Total(Usage(tokens_in=0))], Usage(tokens_in=0)),
        ([Used(STEP), Total(Usage())], STEP),
        ([Total(STEP), SessionTotal(Usage())], STEP),
        ([Total(Usage())], Usage()),
    ],
)
def test_own_total_replaces_the_sum_of_the_steps_unless_it_tells_nothing(said: list[Said], used: Usage) -> None:
    assert read(*said).usage == used


def test_sessions_total_counts_without_what_the_session_had_used_before() -> None:
    before, total = Usage(tokens_in=2500, usd=0.1), Usage(tokens_in=5000, tokens_out=40, usd=0.3)

    reading = read(SessionTotal(Usage(tokens_in=3000, usd=0.2)), SessionTotal(total), before=before)

    assert reading.usage == Usage(tokens_in=2500, tokens_out=40, usd=0.2)
    assert reading.session_used == total


def test_smaller_total_is_a_new_count_and_taken_whole() -> None:
    before, total = Usage(tokens_in=2500, tokens_out=40), Usage(tokens_in=600, tokens_out=90)

    assert read(SessionTotal(total), before=before).usage == total


@pytest.mark.parametrize(
    ("said", "tokens"),
    [
        ([Recorded(Usage(tokens_in=4000))], 1500),
        ([SessionTotal(Usage(tokens_in=5000)), Recorded(Usage(tokens_in=4000))], 2500),
        ([Total(Usage(tokens_in=7)), Recorded(Usage(tokens_in=4000))], 7),
        ([Used(STEP), Recorded(Usage(tokens_in=4000))], 1500),
        ([Used(STEP), Recorded(Usage())], 12),
    ],
)
def test_what_was_recorded_fills_in_for_a_total_that_was_not_told(said: list[Said], tokens: int) -> None:
    assert read(*said, before=Usage(tokens_in=2500)).usage.tokens == tokens


def test_total_that_tells_nothing_does_not_hide_what_the_session_used() -> None:
    reading = read(SessionTotal(STEP), SessionTotal(Usage()))

    assert (reading.usage, reading.session_used) == (STEP, STEP)


@given(usages, usages)
def test_usage_since_is_what_comes_on_top(before: Usage, more: Usage) -> None:
    added = since(before + more, before)

    for name in ("tokens_in", "tokens_out", "tokens_cached", "usd"):
        known = getattr(before + more, name) is not None
        assert getattr(added, name) == (pytest.approx(getattr(more, name) or 0, abs=1e-6) if known else None)


@given(usages, usages)
def test_usage_since_is_never_negative_and_never_more_than_the_total(total: Usage, before: Usage) -> None:
    added = since(total, before)

    for name in ("tokens_in", "tokens_out", "tokens_cached", "usd"):
        now, whole = getattr(added, name), getattr(total, name)
        assert (now is None) is (whole is None)
        assert now is None or 0 <= now <= whole + 1e-6
