"""An attempt of several launches: what is kept of each, what is summed, and whose conversation goes on."""

from __future__ import annotations

from typing import Any

import pytest

from orch.workflows.attempt import Attempt
from orch.workflows.model.attempt import AgentReport, AttemptKey, AttemptRequest
from orch.workflows.model.candidate import Candidate, Failure
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.outcome import Account, Outcome, OutcomeKind, Session
from orch.workflows.model.usage import Usage
from orch.workflows.model.verdict import Excerpt
from orch.workflows.rules.outcome import judge

KEY = AttemptKey(run="r", iteration=2, candidate=1, binding=3)
OK, FAILED = Exit(kind=ExitKind.OK), Exit(kind=ExitKind.FAILED, number=1)
PARENTS = Session(agent="codex", id="0199-won", attempt="i1-c2-b2", used=Usage(tokens_in=2500))
LIMITED = Account(error=OutcomeKind.RATE_LIMITED, detail="429")
ANSWERED = Account(final=True, answered=True)
RESTING = Outcome(kind=OutcomeKind.RATE_LIMITED, detail="429", retry_at=9e9)
BARRED = Outcome(kind=OutcomeKind.NOT_AUTHORISED, detail="401")


def attempt(**more: Any) -> Attempt:
    contract = Contract(goal="x", rungs=(Rung(name="a", run="true"),))
    whole = {"host": "h", "store": "s", "commit": "0" * 40, "limit_s": 9.0, "sandbox": False, **more}
    return Attempt(AttemptRequest(attempt=KEY, agent="codex:m", contract=contract, **whole))


def launch(ended: Exit = OK, account: Account | None = ANSWERED, **more: Any) -> AgentReport:
    return AgentReport(exit=ended, account=account, **more)


def blocked(outcome: Outcome) -> AgentReport:
    return AgentReport(exit=Exit(kind=ExitKind.NOT_STARTED, detail=outcome.detail), blocked=outcome)


def after(one: Attempt, *reports: AgentReport) -> Candidate:
    for report in reports:
        one._account_for(report, report.blocked or judge(report.exit, report.account, report.limit))
    return one._candidate


def test_usage_of_all_launches_is_summed_and_the_last_one_is_told() -> None:
    cut = launch(FAILED, LIMITED, usage=Usage(tokens_in=10, wall_s=1.0), stderr=Excerpt(head="429"), message="let me")
    done = launch(usage=Usage(tokens_in=5, wall_s=2.0), stderr=Excerpt(head="warning"), message="done")

    candidate = after(attempt(), cut, done)

    assert (candidate.launches, candidate.usage) == (2, Usage(tokens_in=15, wall_s=3.0))
    assert (candidate.exit, candidate.message, candidate.output) == (OK, "done", Excerpt())
    assert candidate.outcome == Outcome(kind=OutcomeKind.DONE)


def test_time_of_an_attempt_is_what_its_launches_took() -> None:
    one = attempt(limit_s=9.0)
    after(one, blocked(RESTING), launch(FAILED, LIMITED, usage=Usage(wall_s=4.0)), blocked(RESTING))

    assert one._left_s() == 5.0


def test_agent_that_never_ran_failed_to_start() -> None:
    candidate = after(attempt(), blocked(BARRED))

    assert (candidate.failure, candidate.failure_detail, candidate.launches) == (Failure.NOT_STARTED, "401", 0)
    assert candidate.outcome == BARRED


def test_agent_that_had_to_wait_before_its_first_launch_has_not_failed() -> None:
    candidate = after(attempt(), blocked(RESTING), blocked(RESTING), launch())

    assert (candidate.failure, candidate.failure_detail, candidate.launches) == (None, "", 1)
    assert candidate.exit == OK


def test_block_after_a_launch_leaves_what_that_launch_told() -> None:
    cut = launch(FAILED, LIMITED, message="let me", session="0199-own")

    candidate = after(attempt(), cut, blocked(BARRED))

    assert (candidate.exit, candidate.account, candidate.message) == (FAILED, LIMITED, "let me")
    assert (candidate.failure, candidate.outcome) == (None, BARRED)


def test_next_launch_goes_on_in_the_conversation_that_the_last_one_named() -> None:
    one = attempt(session=PARENTS, fork=True, origin="forked from i1-c2-b2")
    candidate = after(one, launch(FAILED, LIMITED, session="0199-own", session_used=Usage(tokens_in=2600)))

    own = Session(agent="codex", id="0199-own", attempt=KEY.name, used=Usage(tokens_in=2600))
    assert (one._session, one._fork) == (own, False)
    assert candidate.origin == "forked from i1-c2-b2"


@pytest.mark.parametrize("fork", [True, False])
def test_launch_that_never_got_to_a_conversation_is_tried_again_as_before(fork: bool) -> None:
    one = attempt(session=PARENTS, fork=fork, origin="continues i1-c2-b2")
    candidate = after(one, launch(FAILED, LIMITED))

    assert (one._session, one._fork, candidate.origin) == (PARENTS, fork, "continues i1-c2-b2")


def test_lost_session_is_told_and_not_asked_for_again() -> None:
    one = attempt(session=PARENTS, origin="continues i1-c2-b2")
    candidate = after(one, launch(FAILED, LIMITED, lost_session=True))

    assert candidate.origin == "fresh: the session of i1-c2-b2 cannot be taken up"
    assert one._session is None


def test_unsound_name_of_a_session_begins_the_next_launch_anew() -> None:
    one = attempt(session=PARENTS)
    after(one, launch(FAILED, LIMITED, session="../x"))

    assert one._session is None


@pytest.mark.parametrize(
    ("outcome", "crashed"),
    [
        *((kind, False) for kind in (
            OutcomeKind.DONE, OutcomeKind.NO_CHANGE, OutcomeKind.TURN_LIMIT, OutcomeKind.BUDGET_LIMIT,
            OutcomeKind.TIMED_OUT, OutcomeKind.REFUSED, OutcomeKind.EMPTY_ANSWER, OutcomeKind.CONTEXT_FULL,
        )),
        *((kind, True) for kind in (
            OutcomeKind.CRASHED, OutcomeKind.KILLED, OutcomeKind.NOT_STARTED, OutcomeKind.STREAM_BROKEN,
            OutcomeKind.RATE_LIMITED, OutcomeKind.OVERLOADED, OutcomeKind.NOT_AUTHORISED, OutcomeKind.OUT_OF_QUOTA,
        )),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ended", [OK, FAILED, Exit(kind=ExitKind.SIGNALLED, number=15, detail="stopped")])
def test_candidate_crashed_by_its_outcome_and_not_by_its_exit_status(
    ended: Exit, outcome: OutcomeKind, crashed: bool
) -> None:
    candidate = Candidate(attempt=KEY, agent="codex", exit=ended, outcome=Outcome(kind=outcome))

    assert candidate.crashed is crashed
