"""Gemini CLI's events: what recorded streams come to, and what single events say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orch.activities.agents.gemini import GeminiAgent
from orch.activities.agents.gemini_events import GeminiTranslator
from orch.activities.agents.said import Edited, Ended, Failed, Said, Text, Tool, ToolEnded, Total, Turn
from orch.workflows.model.outcome import OutcomeKind as Kind
from orch.workflows.model.usage import Usage

from .recorded import OK, STREAMS, Row, failed, names, read, read_bytes, signalled, told

GEMINI = GeminiAgent()
CUT = signalled(9)
NONE = (None, None, None)
ZERO = (0, 0, 0)
EDIT = (1300, 1200, 52)

TABLE = [
    Row("gemini-badtool", OK, Kind.DONE, (2100, 0, 41), None, "aeee47ca", 2),
    Row("gemini-bash", OK, Kind.DONE, (2100, 0, 41), None, "9b36d258", 2),
    Row("gemini-commit", OK, Kind.DONE, (3300, 0, 63), None, "cb1bca88", 3),
    Row("gemini-ctxfull", failed(144), Kind.CONTEXT_FULL, ZERO, None, "43d773fa", None),
    Row("gemini-drop1", OK, Kind.DONE, EDIT, None, "7f237251", 2),
    Row("gemini-e400", failed(144), Kind.CRASHED, ZERO, None, "7afa0c2f", None),
    Row("gemini-e401", failed(145), Kind.NOT_AUTHORISED, ZERO, None, "99a15197", None),
    Row("gemini-e403", failed(147), Kind.NOT_AUTHORISED, ZERO, None, "5b5966d6", None),
    Row("gemini-e429", CUT, Kind.CRASHED, NONE, None, "75960a20", None),
    Row("gemini-e429x2", OK, Kind.DONE, EDIT, None, "4016c41f", 2),
    Row("gemini-e500", CUT, Kind.CRASHED, NONE, None, "49c5d900", None),
    Row("gemini-empty", OK, Kind.EMPTY_ANSWER, (4000, 0, 80), None, "870f9d1c", None),
    Row("gemini-gaveup", failed(173), Kind.RATE_LIMITED, ZERO, None, "be79f82f", None),
    Row("gemini-int", CUT, Kind.CRASHED, NONE, None, "4fcbcc20", None),
    Row("gemini-killed", CUT, Kind.CRASHED, NONE, None, "01834af7", 1),
    Row("gemini-maxtok", OK, Kind.DONE, (1000, 0, 20), None, "4d77c5ed", 1),
    Row("gemini-maxturns", failed(53), Kind.TURN_LIMIT, (3300, 0, 63), None, "b6f9ecff", 3),
    Row("gemini-nogit", OK, Kind.DONE, EDIT, None, "20bca3f8", 2),
    Row("gemini-ok", OK, Kind.DONE, EDIT, None, "c5e7ae2a", 2),
    Row("gemini-quota", CUT, Kind.CRASHED, NONE, None, "1b783fdc", None),
    Row("gemini-refuse", OK, Kind.REFUSED, (4000, 0, 80), None, "d2859b11", None),
    Row("gemini-resume", OK, Kind.DONE, EDIT, None, "2b0250a9", 2),
    Row("gemini-resume2", OK, Kind.DONE, EDIT, None, "2b0250a9", 2),
    Row("gemini-resume3", failed(42), Kind.CRASHED, NONE, None, "", None),
    Row("gemini-rohome", failed(1), Kind.CRASHED, NONE, None, "", None),
    Row("gemini-streamerr", failed(1), Kind.STREAM_BROKEN, ZERO, None, "a4a7b095", 1),
    Row("gemini-term", CUT, Kind.CRASHED, NONE, None, "7f57fd93", None),
    Row("gemini-two_edits", OK, Kind.DONE, (2100, 0, 41), None, "72bd3cd7", 2),
]
"""Retries stand only on stderr, which was not kept of e429, e500 and quota."""


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.stream)
def test_recorded_stream_comes_to(row: Row) -> None:
    assert told(GEMINI, row) == row


def test_every_recorded_stream_is_in_the_table_and_says_nothing_unknown() -> None:
    assert {row.stream for row in TABLE} == set(names("gemini"))
    assert [row.stream for row in TABLE if read(GEMINI, row.stream)[1].unknown] == []


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        ("gemini-e401", "UNAUTHENTICATED"),
        ("gemini-maxturns", "Reached max session turns"),
        ("gemini-refuse", "blocked due to safety settings"),
        ("gemini-resume3", "Error resuming session: Invalid session identifier"),
        ("gemini-rohome", "An unexpected critical error occurred:Error: EROFS"),
    ],
)
def test_failure_keeps_its_words(stream: str, words: str) -> None:
    outcome, _ = read(GEMINI, stream, ended=failed(1))

    assert words in outcome.detail


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        (b"Attempt 1 failed with status 429. Retrying with backoff... _ApiError\n", Kind.RATE_LIMITED),
        (b"Attempt 2 failed with status 503. Retrying with backoff... _ApiError\n    at x\n", Kind.OVERLOADED),
        (b"Please set an Auth method in your settings.json\n", Kind.NOT_AUTHORISED),
        (b"Invalid auth method selected.\n", Kind.NOT_AUTHORISED),
        (b"When using Gemini API, you must specify the GEMINI_API_KEY environment variable.\n", Kind.NOT_AUTHORISED),
        (b"Error authenticating: FatalAuthenticationError: Manual authorization is required\n", Kind.NOT_AUTHORISED),
        (b"Warning: 256-color support not detected.\n", Kind.CRASHED),
    ],
)
def test_stderr_says_why_it_was_cut_off(stderr: bytes, kind: Kind) -> None:
    outcome, _ = read_bytes(GEMINI, [b'{"type":"init","session_id":"s"}\n'], stderr, ended=failed(1))

    assert outcome.kind is kind


def test_complaint_on_stderr_does_not_spoil_a_good_end() -> None:
    stream = (STREAMS / "gemini-ok.jsonl").read_bytes()

    outcome, _ = read_bytes(GEMINI, [stream], b"Attempt 1 failed with status 429. Retrying with backoff...\n")

    assert outcome.kind is Kind.DONE


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_reading_is_the_same_however_the_stream_is_cut(data: st.DataObject) -> None:
    stream = data.draw(st.sampled_from([path.stem for path in sorted(STREAMS.glob("gemini*.jsonl"))]))
    whole = (STREAMS / f"{stream}.jsonl").read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=30)))
    chunks = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    assert read_bytes(GEMINI, chunks) == read_bytes(GEMINI, [whole])


def test_unknown_events_are_counted_and_half_a_line_is_no_crash() -> None:
    data = b'{"type":"telepathy"}\n{"no":"type"}\n[1]\n{"type":"result","stat'

    outcome, reading = read_bytes(GEMINI, [data], ended=failed(1))

    assert outcome.kind is Kind.CRASHED
    assert reading.unknown == 4


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["message", "cached"]), inner),
    max_leaves=5,
)
_KINDS = ["init", "message", "tool_use", "tool_result", "error", "result"]
_FIELDS = ["role", "content", "tool_name", "tool_id", "parameters", "status", "output", "error", "stats", "severity"]


@settings(deadline=None)
@given(kind=st.sampled_from(_KINDS), fields=st.dictionaries(st.sampled_from(_FIELDS), _VALUES))
def test_event_with_any_values_is_no_crash(kind: str, fields: dict[str, Any]) -> None:
    _, reading = read_bytes(GEMINI, [json.dumps({"type": kind, **fields}).encode()])

    assert reading.unknown == 0


def _say(*events: dict[str, Any], clock: float = 0.0) -> list[Said]:
    translator = GeminiTranslator(lambda: clock)
    return [said for event in events for said in translator.read(event)]


def _piece(content: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": content, "delta": True}


USER = {"type": "message", "role": "user", "content": "do it"}
STATS = {"input_tokens": 10, "cached": 4, "output_tokens": 2, "total_tokens": 15}


def test_pieces_of_a_message_are_told_as_one_and_thoughts_are_paid_for() -> None:
    said = _say(USER, _piece("Do"), _piece("ne."), {"type": "result", "status": "success", "stats": STATS})

    usage = Usage(tokens_in=6, tokens_cached=4, tokens_out=5)
    assert said == [Turn(), Text("Done.", final=True), Total(usage), Ended("success")]


def test_edit_is_told_when_it_is_done() -> None:
    use = {"type": "tool_use", "tool_name": "replace", "tool_id": "t1", "parameters": {"file_path": "/w/a.py"}}

    done = _say(USER, use, {"type": "tool_result", "tool_id": "t1", "status": "success"})
    refused = _say(USER, use, {"type": "tool_result", "tool_id": "t1", "status": "error", "error": {"message": "no"}})

    assert done == [Turn(), Tool("replace", "/w/a.py"), Edited("/w/a.py"), ToolEnded(ok=True)]
    assert refused == [Turn(), Tool("replace", "/w/a.py"), ToolEnded(ok=False, output="no")]


def test_tools_side_by_side_are_one_turn() -> None:
    use, result = {"type": "tool_use", "tool_name": "x"}, {"type": "tool_result", "status": "success"}

    said = _say(USER, use, use, result, result, _piece("Done."))

    assert said.count(Turn()) == 2


def test_warning_is_no_failure() -> None:
    assert _say({"type": "error", "severity": "warning", "message": "Loop detected, stopping execution"}) == []


def test_limit_says_when_to_come_back() -> None:
    words = "[API Error: Your quota will reset after 1h0m5s.] 429 RESOURCE_EXHAUSTED"

    said = _say({"type": "result", "status": "error", "error": {"type": "unknown", "message": words}}, clock=10.0)

    assert Failed(Kind.RATE_LIMITED, words, 3615.0) in said
