"""Any agent can be the reviewer: what passes by itself is waited for, and all of its launches are paid."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import pytest

from orch.activities.agents import resting
from orch.activities.artifacts import write_whole
from orch.activities.home import Home
from orch.activities.places import Place
from orch.activities.reviewing import PROMPT, _answered, read_answer
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.outcome import Outcome, OutcomeKind
from orch.workflows.model.review import ReviewHead
from orch.workflows.model.verdict import Verdict

SHA = "0" * 40
CONTRACT = Contract(goal="x", rungs=(Rung(name="a", run="true"),))
YES = r"""printf '%s\n' '{"tokens": 5, "text": "fine\n{\"nonce\": \"n\", \"veto\": false}", "end": "stop"}'"""
COUNT = "echo . >> ../count; "
SOON = """echo "{\\"tokens\\": 3, \\"fail\\": \\"rate_limited\\", \\"at\\": $(date -d '+1 second' +%s)}" """
ONCE_LIMITED = f"{COUNT} if [ $(wc -l < ../count) -lt 2 ]; then {SOON}; else {YES}; fi"


class Stage(Protocol):
    home: Home
    key: Callable[..., AttemptKey]


def review(stage: Stage, script: str) -> tuple[Place, ReviewHead]:
    """A review whose prompt is a script."""
    key = stage.key(candidate=0)
    place = Place(stage.home, key, stage.home.attempt(key) / "review")
    (place.folder / "tree").mkdir(parents=True)
    write_whole(place.folder / PROMPT, f"{script}\n")
    verdict = Verdict(tree=SHA, contract_digest=CONTRACT.digest, host="h", rungs=(), rungs_total=1)
    return place, ReviewHead(
        attempt=key, agent="talker", store="s", old=SHA, new=SHA, contract=CONTRACT, verdict=verdict,
        deadline=None, limit_s=30.0, sandbox=False,
    )  # fmt: skip


async def test_reviewer_answers_by_its_stream(stage: Stage) -> None:
    ran, usage = await _answered(*review(stage, YES))

    assert read_answer(ran.answer, "n").approved
    assert usage.tokens == 5


async def test_reviewer_that_is_limited_is_asked_again_and_both_launches_are_paid(stage: Stage) -> None:
    place, request = review(stage, ONCE_LIMITED)

    ran, usage = await _answered(place, request)

    assert read_answer(ran.answer, "n").approved
    assert (place.folder / "count").read_text() == ".\n.\n"
    assert usage.tokens == 8
    assert usage.wall_s > ran.report.usage.wall_s


async def test_reviewer_whose_provider_rests_is_not_launched_before_its_time(stage: Stage) -> None:
    place, request = review(stage, f"{COUNT}{YES}")
    until = time.time() + 1.2
    resting.learn(stage.home, request.attempt.run, "talker", Outcome(kind=OutcomeKind.RATE_LIMITED, retry_at=until))

    ran, _ = await _answered(place, request)

    assert time.time() >= until
    assert read_answer(ran.answer, "n").approved
    assert (place.folder / "count").read_text() == ".\n"
    assert [path.name for path in place.folder.glob("agent*")] == ["agent"]


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("""echo '{"fail": "rate_limited", "at": 9e9}'""", OutcomeKind.RATE_LIMITED),
        ("""echo '{"fail": "not_authorised"}'""", OutcomeKind.NOT_AUTHORISED),
        ("exit 3", OutcomeKind.CRASHED),
    ],
)
async def test_what_does_not_pass_in_time_is_not_waited_for(stage: Stage, script: str, kind: OutcomeKind) -> None:
    place, request = review(stage, f"{COUNT}{script}")

    ran, _ = await _answered(place, request)

    assert ran.outcome.kind is kind
    assert (place.folder / "count").read_text() == ".\n"
