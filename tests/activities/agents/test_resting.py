"""Who may not be launched now: a resting provider on this host, and an agent that failed for good in its run."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

from orch.activities.agents import resting
from orch.activities.home import Home
from orch.workflows.model.outcome import Outcome, OutcomeKind
from orch.workflows.rules.outcome import POLICIES

AGENT, RUN = "codex:m", "goal-x"
FATAL = sorted(kind for kind, policy in POLICIES.items() if policy.fatal)
QUIET = sorted(set(OutcomeKind) - set(FATAL) - {OutcomeKind.RATE_LIMITED})


def limited(retry_at: float | None = None) -> Outcome:
    return Outcome(kind=OutcomeKind.RATE_LIMITED, detail="429", retry_at=retry_at)


def test_nobody_rests_at_first(home: Home) -> None:
    assert resting.blocked(home, RUN, AGENT) is None


def test_provider_rests_until_the_time_it_said_for_every_run_of_this_host(home: Home) -> None:
    until = time.time() + 100
    resting.learn(home, RUN, AGENT, limited(until))

    assert resting.blocked(home, RUN, AGENT) == limited(until)
    assert resting.blocked(home, "goal-other", AGENT) == limited(until)
    assert resting.blocked(home, RUN, "claude") is None


def test_provider_that_says_no_time_rests_for_the_first_wait(home: Home) -> None:
    resting.learn(home, RUN, AGENT, limited())

    found = resting.blocked(home, RUN, AGENT)
    assert found is not None
    assert found.retry_at == pytest.approx(time.time() + POLICIES[OutcomeKind.RATE_LIMITED].first_wait_s, abs=5)


@pytest.mark.parametrize("ago", [0.0, 100.0])
def test_rest_that_is_over_blocks_nobody(home: Home, ago: float) -> None:
    resting.learn(home, RUN, AGENT, limited(time.time() - ago))

    assert resting.blocked(home, RUN, AGENT) is None


@pytest.mark.parametrize("until", [4e9, 1e300, math.inf, math.nan])
def test_provider_is_asked_again_after_a_day_whatever_it_said(home: Home, until: float) -> None:
    resting.learn(home, RUN, AGENT, limited(until))

    found = resting.blocked(home, RUN, AGENT)
    assert found is not None
    assert found.retry_at == pytest.approx(time.time() + resting.LONGEST_S, abs=5)


@pytest.mark.parametrize("kind", FATAL)
def test_agent_that_failed_for_good_is_never_launched_again_in_its_run(home: Home, kind: OutcomeKind) -> None:
    resting.learn(home, RUN, AGENT, Outcome(kind=kind, detail="401", retry_at=time.time() - 1))

    assert resting.blocked(home, RUN, AGENT) == Outcome(kind=kind, detail="401")
    assert resting.blocked(home, "goal-other", AGENT) is None
    assert resting.blocked(home, RUN, "codex:other") is None


def test_failure_for_good_goes_before_a_rest(home: Home) -> None:
    resting.learn(home, RUN, AGENT, Outcome(kind=OutcomeKind.NOT_AUTHORISED))
    resting.learn(home, RUN, AGENT, limited(time.time() + 100))

    found = resting.blocked(home, RUN, AGENT)
    assert found is not None
    assert found.kind is OutcomeKind.NOT_AUTHORISED


@pytest.mark.parametrize("kind", QUIET)
def test_what_concerns_one_attempt_alone_is_not_told(home: Home, kind: OutcomeKind) -> None:
    resting.learn(home, RUN, AGENT, Outcome(kind=kind, retry_at=time.time() + 100))

    assert resting.blocked(home, RUN, AGENT) is None
    assert not home.root.exists()


@pytest.mark.parametrize("text", ["", "{", "null", '{"kind": "of another version"}', "[" * 100_000])
def test_mark_that_cannot_be_read_blocks_nobody(home: Home, text: str) -> None:
    resting.learn(home, RUN, AGENT, limited(time.time() + 100))
    resting.learn(home, RUN, AGENT, Outcome(kind=OutcomeKind.NOT_AUTHORISED))
    for path in _marks(home):
        path.write_text(text)

    assert resting.blocked(home, RUN, AGENT) is None


def test_any_spec_names_a_mark_of_its_own(home: Home) -> None:
    specs = ("cmd:../../x", "cmd:a/b", "cmd:" + "x" * 1000, "cmd:\n\0é")
    for spec in specs:
        resting.learn(home, RUN, spec, limited(time.time() + 100))

    assert len(_marks(home)) == len(specs)


def _marks(home: Home) -> list[Path]:
    return [path for path in home.root.rglob("*") if path.is_file()]


@pytest.mark.parametrize("same", ["codex:m,max-tokens=5", "codex:m,max-usd=0.5,max-turns=3", "codex:m,idle=60"])
def test_specs_that_differ_in_their_limits_alone_ask_the_same_provider(home: Home, same: str) -> None:
    until = time.time() + 100
    resting.learn(home, RUN, same, limited(until))

    assert resting.blocked(home, RUN, AGENT) == limited(until)
    assert resting.blocked(home, RUN, "codex:m,bin=other") is None
    assert resting.blocked(home, RUN, "codex:n") is None
