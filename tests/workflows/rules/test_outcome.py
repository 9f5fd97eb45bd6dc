"""Outcomes: judged by table from exit and account; when an agent is launched again, by properties."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.outcome import Account, Outcome, OutcomeKind
from orch.workflows.rules.outcome import CUT, POLICIES, STOPPED, Policy, judge, retry_at, with_tree

OK = Exit(kind=ExitKind.OK)
FAILED = Exit(kind=ExitKind.FAILED, number=1)
SEGFAULT = Exit(kind=ExitKind.SIGNALLED, number=11)
STOP = Exit(kind=ExitKind.SIGNALLED, number=15, detail=STOPPED)
LOST = Exit(kind=ExitKind.SIGNALLED, number=9, detail="supervisor lost")
LATE = Exit(kind=ExitKind.TIMED_OUT, detail="deadline")
BOMB = Exit(kind=ExitKind.LIMITED, detail="2,048 processes")
ABSENT = Exit(kind=ExitKind.NOT_STARTED, detail="codex: No such file or directory")

ANSWERED = Account(final=True, answered=True, stop="end_turn")
SILENT = Account(final=True)
CUT_OFF = Account()

WAITING = [OutcomeKind.RATE_LIMITED, OutcomeKind.OVERLOADED, OutcomeKind.STREAM_BROKEN]
FATAL = {OutcomeKind.NOT_AUTHORISED, OutcomeKind.OUT_OF_QUOTA, OutcomeKind.NOT_STARTED}

times = st.floats(0, 1e10)


def refused(kind: OutcomeKind, **more: object) -> Account:
    return Account.model_validate({"error": kind, "detail": "its words", **more})


@pytest.mark.parametrize(
    ("ended", "account", "kind"),
    [
        (OK, None, "done"),
        (FAILED, None, "crashed"),
        (SEGFAULT, None, "crashed"),
        (LOST, None, "crashed"),
        (STOP, None, "killed"),
        (LATE, None, "timed_out"),
        (BOMB, None, "resource_limit"),
        (BOMB, ANSWERED, "resource_limit"),
        (BOMB, refused(OutcomeKind.OVERLOADED), "resource_limit"),
        (ABSENT, None, "not_started"),
        (OK, ANSWERED, "done"),
        (FAILED, ANSWERED, "done"),
        (OK, SILENT, "empty_answer"),
        (FAILED, SILENT, "empty_answer"),
        (OK, CUT_OFF, "stream_broken"),
        (FAILED, CUT_OFF, "crashed"),
        (SEGFAULT, CUT_OFF, "crashed"),
        (LOST, CUT_OFF, "crashed"),
        (OK, Account(answered=True), "stream_broken"),
        (STOP, ANSWERED, "killed"),
        (STOP, refused(OutcomeKind.OVERLOADED), "killed"),
        (LATE, refused(OutcomeKind.RATE_LIMITED), "timed_out"),
        (ABSENT, CUT_OFF, "not_started"),
        *((OK, refused(kind), kind.value) for kind in OutcomeKind),
        *((FAILED, refused(kind, final=True, answered=True), kind.value) for kind in OutcomeKind),
        *((OK, Account(final=True, answered=True, stop=stop), "context_full") for stop in sorted(CUT)),
    ],
)
def test_outcome_follows_from_what_the_process_did_and_what_the_agent_told(
    ended: Exit, account: Account | None, kind: str
) -> None:
    assert judge(ended, account).kind.value == kind


@pytest.mark.parametrize("account", [None, ANSWERED, CUT_OFF, refused(OutcomeKind.REFUSED)])
@pytest.mark.parametrize("limit", [OutcomeKind.TURN_LIMIT, OutcomeKind.BUDGET_LIMIT])
def test_limit_at_which_we_stopped_it_is_the_outcome_whatever_it_told(
    limit: OutcomeKind, account: Account | None
) -> None:
    stopped = STOP.model_copy(update={"detail": "7 turns of 6"})

    assert judge(stopped, account, limit) == Outcome(kind=limit, detail="7 turns of 6")


def test_words_and_time_of_the_provider_reach_the_outcome() -> None:
    account = refused(OutcomeKind.RATE_LIMITED, retry_at=1234.5)

    assert judge(FAILED, account) == Outcome(kind=OutcomeKind.RATE_LIMITED, detail="its words", retry_at=1234.5)


@pytest.mark.parametrize(
    ("ended", "account", "detail"),
    [
        (OK, ANSWERED, ""),
        (FAILED, ANSWERED, "exit 1"),
        (FAILED, CUT_OFF, "exit 1, without its closing event"),
        (OK, CUT_OFF, "ok, without its closing event"),
        (SEGFAULT, None, "signal 11"),
        (LATE, CUT_OFF, "deadline"),
        (ABSENT, None, "codex: No such file or directory"),
        (OK, Account(final=True, answered=True, stop="length"), "the answer was cut: length"),
    ],
)
def test_outcome_tells_the_facts_behind_it(ended: Exit, account: Account | None, detail: str) -> None:
    assert judge(ended, account).detail == detail


def test_every_outcome_has_a_policy() -> None:
    assert set(POLICIES) == set(OutcomeKind)
    assert {kind for kind, policy in POLICIES.items() if policy.fatal} == FATAL
    assert {kind for kind, policy in POLICIES.items() if policy.retries} == set(WAITING)


def test_nothing_is_both_waited_for_and_fatal() -> None:
    assert not [kind for kind, policy in POLICIES.items() if policy.fatal and policy.retries]


@pytest.mark.parametrize("policy", [POLICIES[kind] for kind in WAITING])
def test_no_retry_comes_at_once(policy: Policy) -> None:
    assert 0 < policy.first_wait_s <= policy.most_wait_s


@pytest.mark.parametrize(
    ("kind", "changed", "after"),
    [
        ("done", True, "done"),
        ("done", False, "no_change"),
        ("empty_answer", True, "done"),
        ("empty_answer", False, "empty_answer"),
        *((kind.value, changed, kind.value) for kind in sorted(FATAL) for changed in (True, False)),
        ("turn_limit", False, "turn_limit"),
        ("refused", True, "refused"),
    ],
)
def test_who_says_it_is_done_and_changed_nothing_has_not_done_anything(kind: str, changed: bool, after: str) -> None:
    outcome = Outcome(kind=OutcomeKind(kind), detail="d", retry_at=3.0)

    assert with_tree(outcome, changed=changed) == Outcome(kind=OutcomeKind(after), detail="d", retry_at=3.0)


@pytest.mark.parametrize("kind", [kind for kind in OutcomeKind if kind not in WAITING])
def test_what_does_not_pass_by_itself_is_not_tried_again(kind: OutcomeKind) -> None:
    outcome = Outcome(kind=kind, retry_at=200.0)

    assert retry_at(outcome, before=0, now=100.0, deadline=1e9) is None


def test_provider_that_says_when_is_asked_then() -> None:
    outcome = Outcome(kind=OutcomeKind.RATE_LIMITED, retry_at=5000.0)

    assert [retry_at(outcome, before=n, now=100.0, deadline=1e9) for n in (0, 1, 50)] == [5000.0] * 3


def test_time_that_has_passed_is_asked_about_soon_and_never_without_a_pause() -> None:
    past = Outcome(kind=OutcomeKind.RATE_LIMITED, retry_at=99.0)

    found = [retry_at(past, before=n, now=100.0, deadline=1e9) for n in (0, 1, 3, 50)]

    assert found == [101.0, 102.0, 108.0, 1000.0]


@pytest.mark.parametrize("kind", WAITING)
def test_wait_doubles_up_to_its_cap(kind: OutcomeKind) -> None:
    policy, outcome = POLICIES[kind], Outcome(kind=kind)
    found = [retry_at(outcome, before=n, now=0.0, deadline=1e9) for n in range(policy.retries + 1)]
    waits = [wait for wait in found if wait is not None]

    assert (waits[0], found[-1]) == (policy.first_wait_s, None)
    assert len(waits) == policy.retries
    assert all(later == min(2 * sooner, policy.most_wait_s) for sooner, later in pairwise(waits))


@given(
    kind=st.sampled_from([*WAITING, OutcomeKind.DONE]),
    said=st.none() | times | st.floats(allow_nan=True, allow_infinity=True),
    before=st.integers(0, 10) | st.integers(0, 10**6),
    now=times,
    left=st.floats(-100, 1000),
)
def test_retry_lies_between_now_and_the_deadline(
    kind: OutcomeKind, said: float | None, before: int, now: float, left: float
) -> None:
    at = retry_at(Outcome(kind=kind, retry_at=said), before=before, now=now, deadline=now + left)

    assert at is None or now <= at < now + left


@pytest.mark.parametrize(
    ("said", "deadline", "at"),
    [(None, 130.0, None), (None, 130.1, 130.0), (500.0, 500.0, None), (500.0, 501.0, 500.0), (None, 100.0, None)],
)
def test_what_would_come_after_the_deadline_does_not_come(
    said: float | None, deadline: float, at: float | None
) -> None:
    outcome = Outcome(kind=OutcomeKind.RATE_LIMITED, retry_at=said)

    assert retry_at(outcome, before=0, now=100.0, deadline=deadline) == at


@given(kind=st.sampled_from(WAITING), said=st.none() | times, now=times, ahead=st.floats(0, 1e6))
def test_no_retry_comes_sooner_than_the_one_before_it(
    kind: OutcomeKind, said: float | None, now: float, ahead: float
) -> None:
    outcome = Outcome(kind=kind, retry_at=said)
    found = [retry_at(outcome, before=n, now=now, deadline=now + ahead) for n in range(12)]
    until = next((n for n, at in enumerate(found) if at is None), len(found))
    kept = [at for at in found[:until] if at is not None]

    assert kept == sorted(kept)
    assert not any(found[until:])
