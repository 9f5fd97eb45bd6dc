"""Claude Code's events: what recorded streams come to, and what single events say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orch.activities.agents.claude import ClaudeAgent
from orch.activities.agents.claude_events import ClaudeTranslator
from orch.activities.agents.said import Denied, Edited, Failed, Retrying, Said, Text, Tool, ToolEnded
from orch.workflows.model.outcome import OutcomeKind as Kind

from .recorded import OK, STREAMS, Row, failed, names, read, read_bytes, signalled, told

CLAUDE = ClaudeAgent()
FAILED, CUT = failed(1), signalled(9)
NONE = (None, None, None)
ZERO = (0, 0, 0)
EDIT = (2500, 1200, 52)

TABLE = [
    Row("claude-badtool", OK, Kind.DONE, (2100, 0, 41), 0.011525, "078030a3", 2),
    Row("claude-bash", OK, Kind.DONE, (2100, 0, 41), 0.011525, "24829818", 2),
    Row("claude-commit", OK, Kind.DONE, (3300, 0, 63), 0.018075, "5dc34d43", 3),
    Row("claude-ctxfull", FAILED, Kind.CONTEXT_FULL, ZERO, 0.0, "c8fb597b", None),
    Row("claude-denied", OK, Kind.DONE, (2100, 0, 41), 0.011525, "f14390da", 2),
    Row("claude-drop1", OK, Kind.DONE, EDIT, 0.0144, "b22b1a15", 2),
    Row("claude-e400", FAILED, Kind.CRASHED, ZERO, 0.0, "936381ce", None),
    Row("claude-e401", CUT, Kind.NOT_AUTHORISED, NONE, None, "8059e143", None),
    Row("claude-e403", FAILED, Kind.NOT_AUTHORISED, ZERO, 0.0, "c7e52a2d", None),
    Row("claude-e429", CUT, Kind.RATE_LIMITED, NONE, None, "e80bf578", None),
    Row("claude-e429x2", OK, Kind.DONE, EDIT, 0.0144, "0f09c86c", 2),
    Row("claude-e500", CUT, Kind.OVERLOADED, NONE, None, "469cffef", None),
    Row("claude-empty", OK, Kind.EMPTY_ANSWER, (2000, 0, 40), 0.011, "df5c77dd", None),
    Row("claude-gaveup", FAILED, Kind.RATE_LIMITED, ZERO, 0.0, "bab54dff", None),
    Row("claude-helper", OK, Kind.DONE, (12600, 0, 246), 0.06915, "ff97a693", 2),
    Row("claude-int", OK, Kind.STREAM_BROKEN, NONE, None, "9cacf80c", None),
    Row("claude-killed", CUT, Kind.CRASHED, (1200, 200, 40), None, "13709c7b", 1),
    Row("claude-maxtok", FAILED, Kind.CONTEXT_FULL, (4000, 0, 80), 0.022, "0642a130", 4),
    Row("claude-maxturns", FAILED, Kind.TURN_LIMIT, (3300, 0, 63), 0.018075, "922bd017", 3),
    Row("claude-nogit", OK, Kind.DONE, EDIT, 0.0144, "a91250dc", 2),
    Row("claude-ok", OK, Kind.DONE, EDIT, 0.0144, "c23bc54e", 2),
    Row("claude-partial", OK, Kind.DONE, EDIT, 0.0144, "4c1274dc", 2),
    Row("claude-quota", CUT, Kind.RATE_LIMITED, NONE, None, "a48a02df", None),
    Row("claude-refuse", FAILED, Kind.REFUSED, (1000, 0, 20), 0.0055, "7cab3dfd", None),
    Row("claude-resume", OK, Kind.DONE, EDIT, 0.0144, "172d82c5", 2),
    Row("claude-resume2", OK, Kind.DONE, EDIT, 0.0144, "172d82c5", 2),
    Row("claude-resume3", FAILED, Kind.CRASHED, ZERO, 0.0, "", None),
    Row("claude-rohome", OK, Kind.DONE, EDIT, 0.0144, "b0b59aae", 2),
    Row("claude-streamerr", OK, Kind.DONE, (6100, 1800, 55), 0.032775, "f2868dc4", 2),
    Row("claude-term", failed(143), Kind.CRASHED, NONE, None, "489cae1b", None),
    Row("claude-two_edits", OK, Kind.DONE, (2100, 0, 41), 0.011525, "d18f55ca", 2),
    Row("claude_308-resume", OK, Kind.DONE, EDIT, 0.01128, "a31fc6b4", 2),
    Row("claude_latest-badtool", OK, Kind.DONE, (2100, 0, 41), 0.00922, "90d6caf9", 2),
    Row("claude_latest-bash", OK, Kind.DONE, (2100, 0, 41), 0.00922, "57cc43cc", 2),
    Row("claude_latest-commit", OK, Kind.DONE, (3300, 0, 63), 0.01446, "879c13e3", 3),
    Row("claude_latest-ctxfull", FAILED, Kind.CONTEXT_FULL, ZERO, 0.0, "dfe12d4f", None),
    Row("claude_latest-denied", OK, Kind.DONE, (2100, 0, 41), 0.00922, "16ae2d29", 2),
    Row("claude_latest-drop1", OK, Kind.DONE, EDIT, 0.01128, "719b4e9a", 2),
    Row("claude_latest-e400", FAILED, Kind.CRASHED, ZERO, 0.0, "ee58eac0", None),
    Row("claude_latest-e401", CUT, Kind.NOT_AUTHORISED, NONE, None, "53afc9c4", None),
    Row("claude_latest-e403", FAILED, Kind.NOT_AUTHORISED, ZERO, 0.0, "71df2b21", None),
    Row("claude_latest-e429", CUT, Kind.RATE_LIMITED, NONE, None, "7f4e9d25", None),
    Row("claude_latest-e429x2", OK, Kind.DONE, EDIT, 0.01128, "d88267de", 2),
    Row("claude_latest-e500", CUT, Kind.OVERLOADED, NONE, None, "c681f688", None),
    Row("claude_latest-empty", OK, Kind.EMPTY_ANSWER, (2000, 0, 40), 0.0088, "346ab012", None),
    Row("claude_latest-gaveup", FAILED, Kind.RATE_LIMITED, ZERO, 0.0, "cc129176", None),
    Row("claude_latest-int", OK, Kind.STREAM_BROKEN, NONE, None, "6896fb2f", None),
    Row("claude_latest-killed", CUT, Kind.CRASHED, (1200, 200, 40), None, "95a14b26", 1),
    Row("claude_latest-maxtok", FAILED, Kind.CONTEXT_FULL, (4000, 0, 80), 0.0176, "942bbdaa", 4),
    Row("claude_latest-maxturns", FAILED, Kind.TURN_LIMIT, (3300, 0, 63), 0.01446, "a07e7d5d", 3),
    Row("claude_latest-nogit", OK, Kind.DONE, EDIT, 0.01128, "13944015", 2),
    Row("claude_latest-ok", OK, Kind.DONE, EDIT, 0.01128, "4fb9beee", 2),
    Row("claude_latest-partial", OK, Kind.DONE, EDIT, 0.01128, "748c597d", 2),
    Row("claude_latest-quota", CUT, Kind.RATE_LIMITED, NONE, None, "4520e834", None),
    Row("claude_latest-refuse", FAILED, Kind.REFUSED, (2000, 0, 40), 0.0088, "a3b6d151", None),
    Row("claude_latest-resume", OK, Kind.DONE, EDIT, 0.01128, "a881756a", 2),
    Row("claude_latest-resume2", OK, Kind.DONE, EDIT, 0.01128, "a881756a", 2),
    Row("claude_latest-resume3", FAILED, Kind.CRASHED, ZERO, 0.0, "", None),
    Row("claude_latest-rohome", OK, Kind.DONE, EDIT, 0.01128, "bb735a4f", 2),
    Row("claude_latest-streamerr", OK, Kind.DONE, EDIT, 0.01128, "8b6e5970", 2),
    Row("claude_latest-term", failed(143), Kind.CRASHED, NONE, None, "14df76e2", None),
    Row("claude_latest-two_edits", OK, Kind.DONE, (2100, 0, 41), 0.00922, "210d18f1", 2),
    Row("claude_latest-woken", OK, Kind.DONE, (3200, 0, 62), 0.01404, "fae422b5", 3),
]
COUNTS_SESSION = {"claude_308-resume2", "claude_308-fork"}
"""They count the runs before them, so they have a test of their own."""


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.stream)
def test_recorded_stream_comes_to(row: Row) -> None:
    assert told(CLAUDE, row) == row


def test_every_recorded_stream_is_in_the_table_and_says_nothing_unknown() -> None:
    assert {row.stream for row in TABLE} | COUNTS_SESSION == set(names("claude"))
    assert [row.stream for row in TABLE if read(CLAUDE, row.stream)[1].unknown] == []


def test_version_that_counts_a_session_is_charged_for_the_run() -> None:
    _, first = read(CLAUDE, "claude_308-resume")
    assert first.session_used is not None
    _, second = read(CLAUDE, "claude_308-resume2", before=first.session_used)
    assert second.session_used is not None
    _, fork = read(CLAUDE, "claude_308-fork", before=second.session_used)

    run = {"tokens_in": 2500, "tokens_cached": 1200, "tokens_out": 52}
    for reading in (first, second, fork):
        assert reading.usage.model_dump(include=set(run)) == run
        assert reading.usage.usd == pytest.approx(0.01128)
    assert second.session == first.session != fork.session
    assert fork.session_used is not None
    assert fork.session_used.tokens_in == 7500
    assert fork.session_used.usd == pytest.approx(0.03384)


@pytest.mark.parametrize("stream", ["claude-denied", "claude_latest-denied"])
def test_denied_tool_is_told_once(stream: str) -> None:
    _, reading = read(CLAUDE, stream)

    assert reading.denials == ["Write"]


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        ("claude-e403", "Failed to authenticate"),
        ("claude-gaveup", "Request rejected (429)"),
        ("claude-maxturns", "Reached maximum number of turns (3)"),
        ("claude-resume3", "No conversation found with session ID"),
        ("claude-e429", "rate_limit 429, retry 8 of 10"),
    ],
)
def test_failure_keeps_its_words(stream: str, words: str) -> None:
    outcome, _ = read(CLAUDE, stream, ended=FAILED)

    assert words in outcome.detail


def _without_its_end(stream: str) -> bytes:
    """The stream up to its last result."""
    return (STREAMS / f"{stream}.jsonl").read_bytes().rstrip().rpartition(b"\n")[0]


@pytest.mark.parametrize(
    ("stream", "tokens_out"), [("claude-ok", 2), ("claude-partial", 52), ("claude_latest-partial", 52)]
)
def test_each_message_is_counted_once_while_it_runs(stream: str, tokens_out: int) -> None:
    _, reading = read_bytes(CLAUDE, [_without_its_end(stream)])

    usage = reading.usage
    assert (usage.tokens_in, usage.tokens_cached, usage.tokens_out, usage.usd) == (2500, 1200, tokens_out, None)
    assert reading.turns == 2


def test_run_that_is_woken_after_its_end_and_cut_off_is_not_done_and_is_paid_in_full() -> None:
    outcome, reading = read_bytes(CLAUDE, [_without_its_end("claude_latest-woken")], ended=CUT)

    assert outcome.kind is Kind.CRASHED
    assert (reading.usage.tokens_in, reading.usage.tokens_out) == (3200, 62)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_reading_is_the_same_however_the_stream_is_cut(data: st.DataObject) -> None:
    stream = data.draw(st.sampled_from(names("claude")))
    whole = (STREAMS / f"{stream}.jsonl").read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=30)))
    chunks = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    assert read_bytes(CLAUDE, chunks) == read_bytes(CLAUDE, [whole])


def test_stream_read_byte_by_byte_is_the_same() -> None:
    assert read(CLAUDE, "claude-partial", chunk=1) == read(CLAUDE, "claude-partial")


def test_unknown_events_are_counted_and_half_a_line_is_no_crash() -> None:
    strange = [{"type": "telepathy"}, {"type": "system", "subtype": "telepathy"}, {"no": "type"}, [1]]
    data = b"".join(json.dumps(event).encode() + b"\n" for event in strange) + b'{"type":"result","subt'

    outcome, reading = read_bytes(CLAUDE, [data], ended=FAILED)

    assert outcome.kind is Kind.CRASHED
    assert reading.unknown == 5


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "usage", "type"]), inner),
    max_leaves=5,
)
_KINDS = ["system", "stream_event", "assistant", "user", "rate_limit_event", "result"]
_FIELDS = ["subtype", "event", "message", "rate_limit_info", "modelUsage", "errors", "result", "permission_denials"]


@settings(deadline=None)
@given(kind=st.sampled_from(_KINDS), fields=st.dictionaries(st.sampled_from(_FIELDS), _VALUES))
def test_event_with_any_values_is_no_crash(kind: str, fields: dict[str, Any]) -> None:
    data = json.dumps({"type": kind, **fields}).encode()

    _, reading = read_bytes(CLAUDE, [data])

    assert reading.account().denials is not None


def _say(*events: dict[str, Any], clock: float = 0.0) -> list[Said]:
    translator = ClaudeTranslator(lambda: clock)
    return [said for event in events for said in translator.read(event)]


def test_edit_is_told_when_it_is_done() -> None:
    block = {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "/w/a.py"}}
    done = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "updated"}]}

    said = _say(
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "Now."}, block]}},
        {"type": "user", "message": {"content": [done]}},
    )

    assert said == [Text("Now."), Tool("Edit", "/w/a.py"), Edited("/w/a.py"), ToolEnded(ok=True, output="updated")]


def test_edit_that_failed_is_none() -> None:
    block = {"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": "/w/a.py"}}
    refused = {"type": "tool_result", "tool_use_id": "t1", "content": "no", "is_error": True}

    said = _say(
        {"type": "assistant", "message": {"content": [block]}},
        {"type": "user", "message": {"content": [refused]}},
    )

    assert said == [Tool("Write", "/w/a.py"), ToolEnded(ok=False, output="no")]


def test_helpers_text_is_not_the_answer() -> None:
    event = {"type": "assistant", "parent_tool_use_id": "t1", "message": {"content": [{"type": "text", "text": "hi"}]}}

    assert _say(event) == []


def test_retry_is_told_with_its_wait() -> None:
    event = {"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 2, "retry_delay_ms": 600}

    assert _say({**event, "error_status": 529, "error": "overloaded"}) == [
        Retrying(Kind.OVERLOADED, "overloaded 529, retry 1 of 2", 0.6)
    ]
    assert _say({**event, "error_status": None, "error": "unknown"}) == [
        Retrying(Kind.STREAM_BROKEN, "unknown, retry 1 of 2", 0.6)
    ]


def test_used_up_subscription_says_when_it_is_reset() -> None:
    rejected = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1_796_006_400}}
    result = {"type": "result", "subtype": "success", "is_error": True, "result": "You've hit your session limit"}

    by_event = [said for said in _say(rejected, result) if isinstance(said, Failed)]
    by_words = [
        said for said in _say({**result, "result": "try again in 5 minutes"}, clock=7.0) if isinstance(said, Failed)
    ]

    assert by_event == [Failed(Kind.RATE_LIMITED, "You've hit your session limit", 1_796_006_400.0)]
    assert by_words[0].retry_at == 307.0


def test_denial_names_its_tool_once_however_often_it_is_told() -> None:
    denial = {"tool_name": "Bash", "tool_use_id": "t1"}

    said = _say(
        {"type": "system", "subtype": "permission_denied", **denial},
        {"type": "result", "subtype": "success", "permission_denials": [denial]},
    )

    assert [one for one in said if isinstance(one, Denied)] == [Denied("Bash")]
