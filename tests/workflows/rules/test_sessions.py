"""Sessions: who takes up whose conversation, and that no two share one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.candidate import Candidate
from orch.workflows.model.outcome import Account, Outcome, OutcomeKind, Session, SessionMode
from orch.workflows.model.usage import Usage
from orch.workflows.rules.sessions import FRESH, Start, kind, own_session, starts, worth_anew

LEAD = AttemptKey(run="r", iteration=3, candidate=2, binding=7)
ID = "0199a213-81c0-7800-8aa1-bbab2a035a53"
NAMES = ("codex", "claude", "pi", "cmd")

UNSOUND = ("abc", "-rf", "../../etc", "a b c d", "x" * 129, "*bcd", "0199-won\n", "séance", "$(id)", "\ud83d" * 9)
PLACEHOLDERS = ("none", "NULL", "unknown", "undefined", "default", "00000000-0000-0000-0000-000000000000")

specs = st.builds("{}{}".format, st.sampled_from(NAMES), st.sampled_from(["", ":m", ":m,idle=3", ",max-turns=5"]))
crews = st.dictionaries(st.integers(1, 16), specs, min_size=1, max_size=16)
modes = st.sampled_from(SessionMode)


def lead(agent: str = "codex:m", session: str = ID, **more: object) -> Candidate:
    return Candidate.model_validate({"attempt": LEAD, "agent": agent, "session": session, **more})


leads = st.none() | st.builds(
    lead, specs, st.sampled_from([ID, "", "none", "ses_4f1"]), outcome=st.sampled_from([None, "context_full"]).map(
        lambda name: name and Outcome(kind=OutcomeKind(name))
    ),
)  # fmt: skip


def told(begun: dict[int, Start]) -> dict[int, str]:
    return {index: start.origin for index, start in begun.items()}


def test_first_of_its_kind_goes_on_and_the_others_branch_off() -> None:
    begun = starts(lead(), SessionMode.CONTINUE, {1: "claude", 2: "codex:m", 3: "codex:other,idle=9", 4: "codex"})

    assert told(begun) == {
        1: "fresh: the winner was another agent, codex",
        2: "continues i3-c2-b7",
        3: "forked from i3-c2-b7",
        4: "forked from i3-c2-b7",
    }
    assert [start.fork for start in begun.values()] == [False, False, True, True]
    assert {start.session.id for start in begun.values() if start.session} == {ID}
    assert [start.agent for start in begun.values()] == ["claude", "codex:m", "codex:other,idle=9", "codex"]


def test_fork_branches_off_for_all_of_its_kind() -> None:
    begun = starts(lead(), SessionMode.FORK, {1: "codex", 2: "codex"})

    assert [(start.fork, start.session is not None) for start in begun.values()] == [(True, True)] * 2


@pytest.mark.parametrize("head", [lead(), None])
def test_fresh_and_the_first_iteration_take_up_nothing(head: Candidate | None) -> None:
    mode = SessionMode.FRESH if head else SessionMode.CONTINUE

    assert starts(head, mode, {1: "codex", 2: "codex"}) == {1: Start("codex"), 2: Start("codex")}


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (lead(session=""), "i3-c2-b7 named no session"),
        *((lead(session=name), "i3-c2-b7 named no sound session") for name in (*UNSOUND, *PLACEHOLDERS)),
        (lead(outcome=Outcome(kind=OutcomeKind.CONTEXT_FULL)), "the context of i3-c2-b7 is full"),
    ],
)
def test_session_that_is_not_worth_taking_up_starts_fresh_and_says_why(head: Candidate, why: str) -> None:
    begun = starts(head, SessionMode.CONTINUE, {1: "codex", 2: "claude"})

    assert [(start.session, start.fork, start.origin) for start in begun.values()] == [
        (None, False, f"fresh: {why}"),
        (None, False, f"fresh: {why}"),
    ]


@pytest.mark.parametrize("outcome", [kind for kind in OutcomeKind if kind is not OutcomeKind.CONTEXT_FULL])
def test_any_other_outcome_leaves_a_session_to_go_on_with(outcome: OutcomeKind) -> None:
    assert starts(lead(outcome=Outcome(kind=outcome)), SessionMode.CONTINUE, {1: "codex"})[1].session


@pytest.mark.parametrize("used", [None, Usage(tokens_in=2500, usd=0.5)])
def test_what_the_session_used_so_far_goes_with_it(used: Usage | None) -> None:
    begun = starts(lead(session_used=used), SessionMode.CONTINUE, {1: "codex"})[1]

    assert begun.session is not None
    assert (begun.session.attempt, begun.session.used) == ("i3-c2-b7", used or Usage())


@pytest.mark.parametrize(
    ("spec", "name"),
    [("codex", "codex"), ("codex:m", "codex"), ("codex,idle=3", "codex"), (" pi : m", "pi"), ("cmd:a:b,c", "cmd")],
)
def test_kind_of_a_spec_is_its_name(spec: str, name: str) -> None:
    assert kind(spec) == name


@pytest.mark.parametrize("agent", ["codex", "codex:m,idle=3"])
def test_session_that_an_agent_named_soundly_is_its_own(agent: str) -> None:
    session = own_session(agent, ID, "i3-c2-b7", Usage(tokens_in=5))

    assert session == Session(agent="codex", id=ID, attempt="i3-c2-b7", used=Usage(tokens_in=5))
    assert not [name for name in (*UNSOUND, *PLACEHOLDERS) if own_session(agent, name, "i3-c2-b7", None)]


@pytest.mark.parametrize(
    ("outcome", "account", "failed"),
    [
        ("crashed", Account(), True),
        ("crashed", Account(turns=0), True),
        ("crashed", Account(turns=1), False),
        ("crashed", None, False),
        *((kind.value, Account(), False) for kind in OutcomeKind if kind.value not in {"crashed", "context_full"}),
    ],
)
def test_who_crashed_before_the_first_request_may_begin_anew(
    outcome: str, account: Account | None, failed: bool
) -> None:
    session = Session(agent="codex", id=ID, attempt=LEAD.name)

    assert worth_anew(session, "i4-c1-b9", Outcome(kind=OutcomeKind(outcome)), account) is failed


def test_who_inherited_a_full_context_may_begin_anew_and_who_filled_it_may_not() -> None:
    session, full = Session(agent="codex", id=ID, attempt=LEAD.name), Outcome(kind=OutcomeKind.CONTEXT_FULL)

    assert worth_anew(session, "i4-c1-b9", full, Account(turns=2))
    assert not worth_anew(session, LEAD.name, full, Account(turns=2))


@given(leads, modes, crews)
def test_no_two_share_a_session_without_a_fork(head: Candidate | None, mode: SessionMode, crew: dict[int, str]) -> None:
    begun = starts(head, mode, crew)

    heirs = [start for start in begun.values() if start.session and not start.fork]
    assert len(heirs) <= (mode is SessionMode.CONTINUE)


@given(leads, modes, crews)
def test_everybody_starts_as_itself_and_only_kin_take_up_a_session(
    head: Candidate | None, mode: SessionMode, crew: dict[int, str]
) -> None:
    begun = starts(head, mode, crew)

    assert {index: start.agent for index, start in begun.items()} == crew
    for start in begun.values():
        assert start.origin.startswith(FRESH) is (start.session is None)
        if start.session is None:
            assert not start.fork
        else:
            assert head is not None
            assert start.session.agent == kind(start.agent) == kind(head.agent)
