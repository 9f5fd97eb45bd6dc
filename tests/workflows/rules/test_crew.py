"""The crew: who still competes when some agents failed for good, and when the run has none left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.workflows.model.outcome import Outcome, OutcomeKind
from orch.workflows.model.reason import RunReason
from orch.workflows.rules.crew import assign, unusable

NO_KEY = Outcome(kind=OutcomeKind.NOT_AUTHORISED, detail="401 invalid api key")
NO_MONEY = Outcome(kind=OutcomeKind.OUT_OF_QUOTA, detail="x" * 500)


@pytest.mark.parametrize(
    ("agents", "failed", "crew"),
    [
        ("a", "", "aaaa"),
        ("ab", "", "abab"),
        ("abc", "b", "acac"),
        ("aab", "a", "bbbb"),
        ("aab", "", "aaba"),
        ("ab", "ab", "abab"),
        ("a", "z", "aaaa"),
    ],
)
def test_agents_that_can_work_take_turns(agents: str, failed: str, crew: str) -> None:
    assert "".join(assign(agents, dict.fromkeys(failed, NO_KEY), 4).values()) == crew


@given(st.lists(st.sampled_from("abcd"), min_size=1), st.sets(st.sampled_from("abcd")), st.integers(0, 20))
def test_who_failed_is_paid_for_no_more_while_another_can_work(agents: list[str], failed: set[str], count: int) -> None:
    crew = assign(agents, dict.fromkeys(failed, NO_KEY), count)

    assert list(crew) == list(range(1, count + 1))
    assert set(crew.values()) <= set(agents)
    if set(agents) - failed:
        assert not set(crew.values()) & failed


@given(st.lists(st.sampled_from("abcd")), st.sets(st.sampled_from("abcd")))
def test_run_has_no_agent_left_only_when_all_failed(agents: list[str], failed: set[str]) -> None:
    reason = unusable(agents, dict.fromkeys(failed, NO_KEY))

    assert (reason is not None) is (bool(agents) and set(agents) <= failed)


def test_reason_names_the_first_agent_and_what_it_was_told() -> None:
    reason = unusable(["b", "a"], {"a": NO_KEY, "b": NO_MONEY})

    assert reason is not None
    assert reason.code is RunReason.AGENT_UNUSABLE
    assert reason.data == {"agent": "b", "outcome": "out_of_quota", "detail": "x" * 300}
