"""opencode's events: what recorded streams come to, and what single events say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orch.activities.agents.opencode import OpencodeAgent
from orch.activities.agents.opencode_events import OpencodeTranslator
from orch.activities.agents.said import Denied, Edited, Ended, Failed, Said, Text, Tool, ToolEnded, Turn, Used
from orch.workflows.model.outcome import OutcomeKind as Kind
from orch.workflows.model.usage import Usage

from .recorded import OK, STREAMS, Row, failed, names, read, read_bytes, signalled, told

OPENCODE = OpencodeAgent()
FAILED, CUT = failed(1), signalled(9)
NONE = (None, None, None)
EDIT = (1300, 1200, 52)

TABLE = [
    Row("opencode-badtool", OK, Kind.DONE, (2100, 0, 41), 0.006915, "ses_dd7a", 2),
    Row("opencode-bash", OK, Kind.DONE, (2100, 0, 41), 0.006915, "ses_dd7a", 2),
    Row("opencode-commit", OK, Kind.DONE, (3300, 0, 63), 0.010845, "ses_dd7a", 3),
    Row("opencode-ctxfull", CUT, Kind.CONTEXT_FULL, (150, 0, 12), 0.00063, "ses_dd78", 8),
    Row("opencode-drop1", OK, Kind.DONE, EDIT, 0.00504, "ses_dd79", 2),
    Row("opencode-e400", FAILED, Kind.CRASHED, NONE, None, "ses_dd78", 1),
    Row("opencode-e401", FAILED, Kind.NOT_AUTHORISED, NONE, None, "ses_dd78", 1),
    Row("opencode-e403", FAILED, Kind.NOT_AUTHORISED, NONE, None, "ses_dd78", 1),
    Row("opencode-e429", FAILED, Kind.RATE_LIMITED, NONE, None, "ses_dd78", 1),
    Row("opencode-e429x2", OK, Kind.DONE, EDIT, 0.00504, "ses_dd79", 2),
    Row("opencode-e500", FAILED, Kind.OVERLOADED, NONE, None, "ses_dd78", 1),
    Row("opencode-empty", OK, Kind.EMPTY_ANSWER, (1000, 0, 20), 0.0033, "ses_dd79", 1),
    Row("opencode-maxtok", OK, Kind.CONTEXT_FULL, (1000, 0, 20), 0.0033, "ses_dd79", 1),
    Row("opencode-maxturns", CUT, Kind.CRASHED, (24500, 0, 285), 0.077775, "ses_dd7a", 5),
    Row("opencode-nogit", OK, Kind.DONE, EDIT, 0.00504, "ses_dd79", 2),
    Row("opencode-ok", OK, Kind.DONE, EDIT, 0.00504, "ses_dd7a", 2),
    Row("opencode-quota", FAILED, Kind.OUT_OF_QUOTA, NONE, None, "ses_dd78", 1),
    Row("opencode-refuse", FAILED, Kind.REFUSED, (1000, 0, 20), 0.0033, "ses_dd79", 1),
    Row("opencode-resume", OK, Kind.DONE, EDIT, 0.00504, "ses_dd79", 2),
    Row("opencode-resume2", OK, Kind.DONE, EDIT, 0.00504, "ses_dd79", 2),
    Row("opencode-resume3", FAILED, Kind.CRASHED, NONE, None, "", None),
    Row("opencode-rohome", FAILED, Kind.CRASHED, NONE, None, "", None),
    Row("opencode-streamerr", FAILED, Kind.OVERLOADED, NONE, None, "ses_dd79", 6),
    Row("opencode-two_edits", OK, Kind.DONE, (2100, 0, 41), 0.006915, "ses_dd7a", 2),
]
"""Retries after an error of the provider do not show. `maxturns` and `ctxfull` are the beginning and the end of longer
ones; `ctxfull` breaks off within a line."""


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.stream)
def test_recorded_stream_comes_to(row: Row) -> None:
    assert told(OPENCODE, row) == row


def test_every_recorded_stream_is_in_the_table_and_says_nothing_unknown() -> None:
    assert {row.stream for row in TABLE} == set(names("opencode-"))
    assert [row.stream for row in TABLE if read(OPENCODE, row.stream)[1].unknown] == ["opencode-ctxfull"]


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        ("opencode-ctxfull", "prompt is too long"),
        ("opencode-refuse", "blocked by the provider's content filter"),
        ("opencode-resume3", "Session not found"),
        ("opencode-rohome", "EROFS: read-only file system"),
    ],
)
def test_failure_keeps_its_words(stream: str, words: str) -> None:
    outcome, _ = read(OPENCODE, stream, ended=FAILED)

    assert words in outcome.detail


def _lines(stream: str) -> list[bytes]:
    return (STREAMS / f"{stream}.jsonl").read_bytes().splitlines(keepends=True)


def test_full_context_that_was_summed_up_is_no_failure() -> None:
    summed_up = b"".join([*_lines("opencode-ctxfull")[:5], *_lines("opencode-ok")])

    outcome, reading = read_bytes(OPENCODE, [summed_up], ended=FAILED)

    assert (outcome.kind, reading.answer) == (Kind.DONE, "All done: I created hello.py.")
    assert reading.turns == 4


@pytest.mark.parametrize("events", range(1, 18))
def test_full_context_stays_one_wherever_the_loop_is_cut(events: int) -> None:
    outcome, reading = read_bytes(OPENCODE, [b"".join(_lines("opencode-ctxfull")[:events])], ended=CUT)

    assert outcome.kind is Kind.CONTEXT_FULL
    assert reading.answer == ""


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_reading_is_the_same_however_the_stream_is_cut(data: st.DataObject) -> None:
    stream = data.draw(st.sampled_from([path.stem for path in sorted(STREAMS.glob("opencode-*.jsonl"))]))
    whole = (STREAMS / f"{stream}.jsonl").read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=30)))
    chunks = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    assert read_bytes(OPENCODE, chunks) == read_bytes(OPENCODE, [whole])


def test_unknown_events_are_counted_and_half_a_line_is_no_crash() -> None:
    strange = [{"type": "telepathy"}, {"no": "type"}, [1]]
    data = b"".join(json.dumps(event).encode() + b"\n" for event in strange) + b'{"type":"step_fi'

    outcome, reading = read_bytes(OPENCODE, [data], ended=FAILED)

    assert outcome.kind is Kind.CRASHED
    assert reading.unknown == 4


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "data", "input"]), inner),
    max_leaves=5,
)
_PART = {
    "tokens": _VALUES | st.dictionaries(st.sampled_from(["input", "output", "cache"]), _VALUES),
    "cost": _VALUES,
    "reason": st.sampled_from(["stop", "content-filter"]) | _VALUES,
    "state": _VALUES | st.dictionaries(st.sampled_from(["input", "metadata", "error", "output"]), _VALUES),
    "text": _VALUES,
    "tool": _VALUES,
}
_ERROR = {"name": _VALUES, "data": _VALUES | st.dictionaries(st.sampled_from(["message", "responseHeaders"]), _VALUES)}
_FIELDS = {
    "part": _VALUES | st.fixed_dictionaries({}, optional=_PART),
    "error": _VALUES | st.fixed_dictionaries({}, optional=_ERROR),
    "sessionID": _VALUES,
    "timestamp": _VALUES | st.integers(min_value=10**300),
}


@settings(deadline=None)
@given(
    kind=st.sampled_from(["step_start", "text", "tool_use", "step_finish", "error", "reasoning"]),
    fields=st.fixed_dictionaries({}, optional=_FIELDS),
)
def test_event_with_any_values_is_no_crash(kind: str, fields: dict[str, Any]) -> None:
    _, reading = read_bytes(OPENCODE, [json.dumps({"type": kind, **fields}).encode()])

    assert reading.account().denials is not None


def _say(*events: dict[str, Any]) -> list[Said]:
    translator = OpencodeTranslator()
    return [said for event in events for said in translator.read(event)]


def _tool(name: str, given: dict[str, Any], **state: Any) -> list[Said]:
    state = {"status": "completed", "input": given, "output": "out", **state}
    return _say({"type": "tool_use", "part": {"tool": name, "state": state}})


def test_tools_that_came_back() -> None:
    path = {"filePath": "/w/a.py"}
    done = ToolEnded(ok=True, output="out")

    assert _tool("bash", {"command": "ls"}, metadata={"exit": 0}) == [Tool("bash", "ls"), done]
    assert _tool("write", path) == [Tool("write", "/w/a.py"), Edited("/w/a.py"), done]
    assert _tool("read", path) == [Tool("read", "/w/a.py"), done]


def test_tools_that_failed() -> None:
    path = {"filePath": "/w/a.py"}

    assert _tool("bash", {"command": "ls"}, metadata={"exit": 2})[-1] == ToolEnded(ok=False, output="out")
    assert _tool("edit", path, status="error", error="no such file") == [
        Tool("edit", "/w/a.py"),
        ToolEnded(ok=False, output="no such file"),
    ]


def test_denied_tool_is_told() -> None:
    error = "The user rejected permission to use this specific tool call."

    assert Denied("edit") in _tool("edit", {}, status="error", error=error)


def test_reasoning_and_what_goes_to_the_cache_is_paid_for_and_a_price_of_zero_is_unknown() -> None:
    tokens = {"input": 10, "output": 2, "reasoning": 3, "cache": {"read": 5, "write": 7}}

    (used,) = _say({"type": "step_finish", "part": {"reason": "tool-calls", "tokens": tokens, "cost": 0}})

    assert used == Used(Usage(tokens_in=17, tokens_cached=5, tokens_out=5, usd=None))


def test_run_that_says_nothing_in_its_last_step_has_no_answer() -> None:
    said = _say(
        {"type": "step_start"},
        {"type": "text", "part": {"text": "I start."}},
        {"type": "step_finish", "part": {"reason": "tool-calls"}},
        {"type": "step_start"},
        {"type": "step_finish", "part": {"reason": "stop"}},
    )

    step = Used(Usage())
    assert said == [Turn(), Text("I start."), step, Turn(), step, Text("", final=True), Ended(stop="stop")]


def test_rate_limit_says_when_to_come_back() -> None:
    data = {"message": "slow down", "statusCode": 429, "responseHeaders": {"retry-after": "30"}}

    said = _say({"type": "error", "timestamp": 5_000_000, "error": {"name": "APIError", "data": data}})

    assert said == [Turn(), Failed(Kind.RATE_LIMITED, "slow down", 5030.0)]


def test_error_that_another_try_may_mend_is_a_broken_stream() -> None:
    words = "Cannot connect to API: Unable to connect."
    data = {"message": words, "isRetryable": True}

    (_, failure) = _say({"type": "error", "error": {"name": "APIError", "data": data}})

    assert failure == Failed(Kind.STREAM_BROKEN, words)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ContextOverflowError", Kind.CONTEXT_FULL),
        ("ProviderAuthError", Kind.NOT_AUTHORISED),
        ("UnknownError", Kind.CRASHED),
    ],
)
def test_error_is_known_by_its_name(name: str, kind: Kind) -> None:
    assert _say({"type": "error", "error": {"name": name}}) == [Turn(), Failed(kind, name)]
