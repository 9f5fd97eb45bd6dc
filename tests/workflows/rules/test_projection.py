"""The projection: a whole run by example, every prefix of generated ledgers by properties."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orch.workflows.model.attempt import AttemptKey, Snapshot
from orch.workflows.model.budget import Caps
from orch.workflows.model.candidate import Candidate, Failure
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.event import (
    EVENT,
    AttemptReplaced,
    AttemptStarted,
    BaselineMeasured,
    BaselineTaken,
    CandidateMeasured,
    Event,
    GateMeasured,
    HeadReviewed,
    IterationDecided,
    IterationStarted,
    NoteAdded,
    RunEnded,
    RunPromoted,
    RunStarted,
    SealDecided,
    SealRequested,
)
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.promotion import PromoteTarget, Promotion
from orch.workflows.model.ranking import Ranking, Standing
from orch.workflows.model.reason import CandidateReason, PromotionReason, Reason, RunReason
from orch.workflows.model.review import Decision, Note, Review
from orch.workflows.model.usage import Usage
from orch.workflows.model.verdict import RungResult, Verdict
from orch.workflows.model.view import CandidateStatus, RunStatus, RunView
from orch.workflows.rules.projection import project

OLD, NEW, OTHER = "a" * 40, "b" * 40, "c" * 40
OK, RED = Exit(kind=ExitKind.OK), Exit(kind=ExitKind.FAILED, number=1)
LATE = Exit(kind=ExitKind.TIMED_OUT, detail="600 s")
CONTRACT = Contract(
    goal="keep digits",
    rungs=(Rung(name="lint", run="ruff"), Rung(name="unit", run="pytest")),
    protected=("tests/**",),
)


def ledger(*events: tuple[type[Any], dict[str, Any]]) -> list[Event]:
    return [kind(seq=n, at=f"2026-01-01T00:00:{n:02}Z", **data) for n, (kind, data) in enumerate(events, 1)]


def verdict(*exits: Exit, tree: str = OLD) -> Verdict:
    rungs = tuple(
        RungResult(name=rung.name, exit=exit_, wall_s=1.5) for rung, exit_ in zip(CONTRACT.rungs, exits, strict=False)
    )
    return Verdict(tree=tree, contract_digest=CONTRACT.digest, host="h", rungs=rungs, rungs_total=2)


def key(candidate: int, iteration: int = 1, binding: int | None = None) -> AttemptKey:
    return AttemptKey(run="r", iteration=iteration, candidate=candidate, binding=binding or candidate)


def measured(attempt: AttemptKey, *exits: Exit, **fields: Any) -> tuple[type[Any], dict[str, Any]]:
    facts: dict[str, Any] = {"attempt": attempt, "agent": "cmd:a", "usage": Usage(tokens_in=10, usd=0.5, wall_s=2)}
    if exits:
        facts |= {"exit": OK, "verdict": verdict(*exits, tree=NEW)}
        facts |= {"snapshot": Snapshot(commit=OTHER, tree=NEW, changed=1, paths=("x.py",), restored=("tests/t.py",))}
    return CandidateMeasured, {"candidate": Candidate(**(facts | fields))}


def decided(winner: int, *losers: int, ordinal: int = 1, commit: str = OTHER) -> tuple[type[Any], dict[str, Any]]:
    order = (
        Standing(index=winner, reason=Reason(code=CandidateReason.WON)),
        *(Standing(index=n, reason=Reason(code=CandidateReason.FEWER_RUNGS)) for n in losers),
    )
    ranking = Ranking(order=order, decided_by="rungs")
    return IterationDecided, {"ordinal": ordinal, "ranking": ranking, "commit": commit, "tree": NEW}


STARTED = (
    RunStarted,
    {"run": "goal-1", "repo": "/r", "goal": "keep digits", "agents": ("cmd:a", "cmd:b"),
     "caps": Caps(), "promote": PromoteTarget()},
)  # fmt: skip
BASELINE = (
    BaselineTaken,
    {"store": "s", "commit": OLD, "tree": OLD, "parent": None, "dirty": True, "contract": CONTRACT,
     "contract_digest": CONTRACT.digest, "sandbox": True, "warnings": ("w",)},
)  # fmt: skip
ITERATION = (
    IterationStarted,
    {"ordinal": 1, "commit": OLD, "tree": OLD, "attempts": (key(1), key(2), key(3), key(4))},
)
WHOLE = ledger(
    STARTED,
    BASELINE,
    (BaselineMeasured, {"verdict": verdict(OK, RED)}),
    (SealRequested, {"contract_digest": CONTRACT.digest}),
    (SealDecided, {"decision": Decision(approved=True)}),
    ITERATION,
    (AttemptStarted, {"attempt": key(1), "agent": "cmd:a"}),
    (AttemptStarted, {"attempt": key(2), "agent": "cmd:b"}),
    (AttemptStarted, {"attempt": key(3), "agent": "cmd:a"}),
    measured(key(2), RED, RED, agent="cmd:b", message="tried"),
    measured(key(3), OK, LATE),
    (AttemptStarted, {"attempt": key(4), "agent": "cmd:b"}),
    measured(key(1), OK, OK),
    measured(key(4), failure=Failure.SETUP, failure_detail="pip broke", agent="cmd:b"),
    (NoteAdded, {"note": Note(text="mind the gap")}),
    decided(1, 2, 0, 3, 4),
    (GateMeasured, {"ordinal": 1, "verdict": verdict(OK, OK, tree=NEW)}),
    (HeadReviewed, {"ordinal": 1, "tree": NEW, "review": Review(approved=True, usage=Usage(tokens_out=7))}),
    (RunPromoted, {"promotion": Promotion(target=PromoteTarget(), tree=NEW, paths=1)}),
    (RunEnded, {"status": "succeeded", "reason": Reason(code=RunReason.DONE), "usage": Usage(tokens_in=999)}),
)


def after(last: type[Any], count: int = 1) -> RunView:
    """The view when the `count`-th event of a kind has just been recorded."""
    places = [n for n, event in enumerate(WHOLE, 1) if isinstance(event, last)]
    return project(WHOLE[: places[count - 1]])


def statuses(view: RunView) -> list[str]:
    return [candidate.status.value for candidate in view.iterations[-1].candidates]


def test_a_finished_run_tells_who_won_and_why() -> None:
    view = project(WHOLE)
    assert (view.id, view.status, view.head, view.baseline) == ("goal-1", RunStatus.SUCCEEDED, OTHER, OLD)
    assert (view.reason, view.ended_at) == (Reason(code=RunReason.DONE), WHOLE[-1].at)
    assert (view.baseline_dirty, view.baseline_rungs_passed, view.sandbox) == (True, 1, True)
    assert (view.rungs, view.protected, view.warnings) == (("lint", "unit"), ("tests/**",), ("w",))
    assert (view.contract_digest, view.notes, view.promote) == (CONTRACT.digest, ("mind the gap",), "worktree")
    assert view.promoted is not None
    assert (view.promoted.tree, view.promoted.mode.value, view.promoted.paths) == (NEW, "worktree", 1)
    iteration = view.iterations[0]
    assert (iteration.ordinal, iteration.winner, iteration.decided_by) == (1, 1, "rungs")
    assert (iteration.gate, iteration.review) == ("passed", "approved")
    assert statuses(view) == ["passed", "red", "unevaluable", "failed"]
    codes = [candidate.reason.code.value if candidate.reason else "" for candidate in iteration.candidates]
    assert codes == ["won", "fewer_rungs", "fewer_rungs", "fewer_rungs"]


def test_a_measured_candidate_shows_its_facts() -> None:
    _, red, late, failed = project(WHOLE).iterations[0].candidates
    assert [(rung.name, rung.result, rung.wall_s) for rung in late.rungs] == [
        ("lint", "ok", 1.5),
        ("unit", "timed out (600 s)", 1.5),
    ]
    assert (red.rungs_passed, red.rungs_total, red.changed, red.message) == (0, 2, True, "tried")
    assert (red.tree, red.commit, red.paths, red.restored) == (NEW, OTHER, ("x.py",), ("tests/t.py",))
    assert (red.agent, red.agent_exit, red.usage.tokens, red.usage.usd) == ("cmd:b", "ok", 10, 0.5)
    assert (failed.rungs_passed, failed.rungs_total, failed.changed, failed.tree) == (None, 2, None, None)
    assert (failed.agent_exit, failed.failure) == ("", "setup_failed: pip broke")


def test_usage_is_the_sum_over_all_candidates_and_reviews() -> None:
    usage = project(WHOLE).usage
    assert (usage.tokens, usage.usd, usage.wall_s) == (47, 2.0, 8.0)


def test_a_live_run_shows_who_waits_and_who_runs() -> None:
    assert statuses(after(IterationStarted)) == ["queued"] * 4
    assert statuses(after(AttemptStarted, 2)) == ["running", "running", "queued", "queued"]
    view = after(CandidateMeasured)
    assert statuses(view) == ["running", "red", "running", "queued"]
    assert [c.agent for c in view.iterations[0].candidates] == ["cmd:a", "cmd:b", "cmd:a", "cmd:b"]
    assert [c.reason for c in view.iterations[0].candidates] == [None] * 4
    assert (view.status, view.head, view.iterations[0].winner) == (RunStatus.RUNNING, OLD, None)


def test_a_run_waits_while_the_seal_is_not_answered() -> None:
    waiting = after(SealRequested)
    assert (waiting.status, waiting.reason) == (RunStatus.WAITING, Reason(code=RunReason.SEAL_WAITING))
    assert (after(SealDecided).status, after(SealDecided).reason) == (RunStatus.RUNNING, None)


def test_without_events_there_is_a_nameless_running_view() -> None:
    assert (project([]).id, project([]).status, project([]).iterations) == ("", RunStatus.RUNNING, ())


def test_a_lost_binding_is_charged_and_a_new_one_takes_its_place() -> None:
    again = key(1, binding=5)
    events = ledger(
        STARTED,
        BASELINE,
        ITERATION,
        (AttemptStarted, {"attempt": key(1), "agent": "cmd:a"}),
        measured(key(1), failure=Failure.HOST_LOST),
        (AttemptStarted, {"attempt": again, "agent": "cmd:a"}),
        measured(again, OK, OK),
    )
    assert [statuses(project(events[:n]))[0] for n in (4, 5, 6, 7)] == ["running", "failed", "running", "passed"]
    assert project(events).usage.tokens == 20


def test_nothing_runs_any_more_in_a_run_that_ended() -> None:
    cancelled = (RunEnded, {"status": "cancelled", "reason": Reason(code=RunReason.CANCELLED)})
    view = project(ledger(STARTED, BASELINE, ITERATION, (AttemptStarted, {"attempt": key(2), "agent": "x"}), cancelled))
    assert view.status is RunStatus.CANCELLED
    assert {c.status for c in view.iterations[0].candidates} == {CandidateStatus.FAILED}
    assert [c.failure for c in view.iterations[0].candidates[:2]] == ["not_started", "cancelled"]


def test_a_refused_promotion_says_why() -> None:
    refused: Reason[PromotionReason] = Reason(code=PromotionReason.EDITED)
    promotion = Promotion(target=PromoteTarget.parse("branch:x"), refused=refused)
    view = project(ledger(STARTED, (RunPromoted, {"promotion": promotion})))
    assert view.promoted is not None
    assert (view.promoted.tree, view.promoted.branch, view.promoted.refused) == (None, "x", refused)


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (verdict(OK, OK), "passed"),
        (verdict(OK, RED), "unit: exit 1"),
        (verdict(LATE), "lint: timed out (600 s)"),
        (verdict(OK), "incomplete"),
        (verdict(OK, OK).model_copy(update={"setup": RED}), "set-up: exit 1"),
        (verdict(OK, OK).model_copy(update={"tampered": ("t",)}), "protected paths changed while it ran"),
    ],
)
def test_the_gate_is_told_in_a_few_words(facts: Verdict, text: str) -> None:
    gate = (GateMeasured, {"ordinal": 1, "verdict": facts})
    assert project(ledger(STARTED, BASELINE, ITERATION, gate)).iterations[0].gate == text


def test_a_veto_is_told_with_the_reviewers_words() -> None:
    review = (HeadReviewed, {"ordinal": 1, "tree": NEW, "review": Review(approved=False, comment="too broad")})
    assert project(ledger(STARTED, BASELINE, ITERATION, review)).iterations[0].review == "vetoed: too broad"


def test_a_ledger_read_back_from_disk_gives_the_same_view() -> None:
    again = [EVENT.validate_json(EVENT.dump_json(event)) for event in WHOLE]
    assert project(again) == project(WHOLE)
    assert RunView.model_validate_json(project(WHOLE).model_dump_json()) == project(WHOLE)


@st.composite
def ledgers(draw: st.DrawFn) -> list[Event]:
    """A run of some iterations; attempts start and end in any order."""
    events: list[tuple[type[Any], dict[str, Any]]] = [STARTED, BASELINE]
    if draw(st.booleans()):
        events += [(SealRequested, {"contract_digest": ""}), (SealDecided, {"decision": Decision(approved=True)})]
    usages = st.builds(Usage, tokens_in=st.none() | st.integers(0, 9), usd=st.none() | st.floats(0, 9))
    exits = st.sampled_from([(), (OK, OK), (RED, OK), (OK, LATE)])
    for ordinal in range(1, draw(st.integers(0, 3)) + 1):
        keys = tuple(key(n, ordinal, ordinal * 10 + n) for n in range(1, draw(st.integers(1, 4)) + 1))
        events.append((IterationStarted, {"ordinal": ordinal, "commit": OLD, "tree": OLD, "attempts": keys}))
        events += [(AttemptStarted, {"attempt": k, "agent": "x"}) for k in draw(st.permutations(keys))]
        events += [measured(k, *draw(exits), usage=draw(usages)) for k in draw(st.permutations(keys))]
        events.append(decided(draw(st.integers(0, len(keys))), ordinal=ordinal))
        if draw(st.booleans()):
            review = Review(approved=draw(st.booleans()), usage=draw(usages))
            events.append((HeadReviewed, {"ordinal": ordinal, "tree": NEW, "review": review}))
    events.append((RunEnded, {"status": "failed", "reason": Reason(code=RunReason.ITERATION_CAP)}))
    return ledger(*events)


@given(ledgers())
@settings(max_examples=50, deadline=None)
def test_every_prefix_is_a_live_run_and_usage_only_grows(events: list[Event]) -> None:
    views = [project(events[:n]) for n in range(len(events) + 1)]
    for before, now in pairwise(views):
        assert (before.usage.tokens or 0) <= (now.usage.tokens or 0)
        assert (before.usage.usd or 0) <= (now.usage.usd or 0)
        assert before.usage.wall_s <= now.usage.wall_s
        assert len(before.iterations) <= len(now.iterations)
    assert all(view.ended_at is None and view.status is not RunStatus.FAILED for view in views[:-1])


@given(ledgers())
@settings(max_examples=50, deadline=None)
def test_a_reason_comes_only_with_the_decision(events: list[Event]) -> None:
    for n in range(len(events)):
        for iteration in project(events[:n]).iterations:
            for candidate in iteration.candidates:
                assert candidate.reason is None or iteration.winner is not None


def test_candidate_whose_host_was_lost_runs_again_and_tells_why() -> None:
    lost = Candidate(
        attempt=key(1), agent="cmd:a", host="h2", failure=Failure.HOST_LOST, usage=Usage(tokens_in=3, wall_s=1)
    )
    again = key(1, binding=5)
    begun = (
        STARTED,
        BASELINE,
        ITERATION,
        (AttemptStarted, {"attempt": key(1), "agent": "cmd:a"}),
        (AttemptReplaced, {"lost": lost, "attempt": again, "agent": "cmd:a"}),
    )

    running = project(ledger(*begun))
    over = project(ledger(*begun, measured(again, OK, OK, host="h1")))

    assert statuses(running)[0] == "running"
    (first, *_), (now, *_) = running.iterations[0].candidates, over.iterations[0].candidates
    assert first.replaced == now.replaced == ("i1-c1-b1 was lost with its host h2",)
    assert (now.status, now.host) == (CandidateStatus.PASSED, "h1")
    assert (running.usage.tokens, over.usage.tokens) == (3, 13)
