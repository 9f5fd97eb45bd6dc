"""pi's events: what recorded streams come to, and what single events say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orch.activities.agents.pi import PiAgent
from orch.activities.agents.pi_events import PiTranslator
from orch.activities.agents.said import Began, Edited, Ended, Failed, Retrying, Said, Text, Tool, ToolEnded, Used
from orch.workflows.model.outcome import OutcomeKind as Kind
from orch.workflows.model.usage import Usage

from .recorded import OK, STREAMS, Row, failed, names, read, read_bytes, signalled, told

PI = PiAgent()
FAILED, CUT = failed(1), signalled(9)
NONE = (None, None, None)
EDIT = (1300, 1200, 52)

TABLE = [
    Row("pi-badtool", OK, Kind.DONE, (2100, 0, 41), 0.006915, "01a2285b", 2),
    Row("pi-bash", OK, Kind.DONE, (2100, 0, 41), 0.006915, "01a22859", 2),
    Row("pi-commit", OK, Kind.DONE, (3300, 0, 63), 0.010845, "01a2285a", 3),
    Row("pi-ctxfull", OK, Kind.CONTEXT_FULL, NONE, None, "01a22873", 1),
    Row("pi-drop1", OK, Kind.DONE, EDIT, 0.00504, "01a2286e", 3),
    Row("pi-e400", OK, Kind.CRASHED, NONE, None, "01a22872", 1),
    Row("pi-e401", OK, Kind.NOT_AUTHORISED, NONE, None, "01a22870", 1),
    Row("pi-e403", OK, Kind.NOT_AUTHORISED, NONE, None, "01a22871", 1),
    Row("pi-e429", OK, Kind.RATE_LIMITED, NONE, None, "01a22879", 4),
    Row("pi-e429x2", OK, Kind.DONE, EDIT, 0.00504, "01a2286f", 2),
    Row("pi-e500", OK, Kind.OVERLOADED, NONE, None, "01a2287d", 4),
    Row("pi-empty", OK, Kind.EMPTY_ANSWER, (1000, 0, 20), 0.0033, "01a2286e", 1),
    Row("pi-int", signalled(2), Kind.CRASHED, NONE, None, "01a2286a", 1),
    Row("pi-maxtok", OK, Kind.CONTEXT_FULL, (1000, 0, 20), 0.0033, "01a2286d", 1),
    Row("pi-maxturns", CUT, Kind.CRASHED, (3800, 0, 68), 0.01242, "01a2285c", 4),
    Row("pi-nogit", OK, Kind.DONE, EDIT, 0.00504, "01a22863", 2),
    Row("pi-ok", OK, Kind.DONE, EDIT, 0.00504, "01a22858", 2),
    Row("pi-quota", OK, Kind.OUT_OF_QUOTA, NONE, None, "01a22875", 4),
    Row("pi-refuse", OK, Kind.REFUSED, (1000, 0, 20), 0.0033, "01a2286d", 1),
    Row("pi-resume", OK, Kind.DONE, EDIT, 0.00504, "01a22864", 2),
    Row("pi-resume2", OK, Kind.DONE, EDIT, 0.00504, "01a22864", 2),
    Row("pi-resume3", FAILED, Kind.CRASHED, NONE, None, "", None),
    Row("pi-rohome", FAILED, Kind.CRASHED, NONE, None, "", None),
    Row("pi-streamerr", OK, Kind.STREAM_BROKEN, NONE, None, "01a2286e", 1),
    Row("pi-term", failed(143), Kind.CRASHED, NONE, None, "01a22868", 1),
    Row("pi-two_edits", OK, Kind.DONE, (2100, 0, 41), 0.006915, "01a2285a", 2),
]
"""`maxturns` is the beginning and the end of a longer one, which breaks off within a line."""


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.stream)
def test_recorded_stream_comes_to(row: Row) -> None:
    assert told(PI, row) == row


def test_every_recorded_stream_is_in_the_table_and_says_nothing_unknown() -> None:
    assert {row.stream for row in TABLE} == set(names("pi-"))
    assert [row.stream for row in TABLE if read(PI, row.stream)[1].unknown] == ["pi-maxturns"]


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        ("pi-e401", "401 scripted error 401"),
        ("pi-refuse", "Provider finish_reason: content_filter"),
        ("pi-resume3", "No session found matching"),
        ("pi-rohome", "Error: ENOENT: no such file or directory"),
    ],
)
def test_failure_keeps_its_words(stream: str, words: str) -> None:
    outcome, _ = read(PI, stream, ended=FAILED)

    assert words in outcome.detail


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_reading_is_the_same_however_the_stream_is_cut(data: st.DataObject) -> None:
    stream = data.draw(st.sampled_from([path.stem for path in sorted(STREAMS.glob("pi-*.jsonl"))]))
    whole = (STREAMS / f"{stream}.jsonl").read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=30)))
    chunks = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    assert read_bytes(PI, chunks) == read_bytes(PI, [whole])


def test_unknown_events_are_counted_and_half_a_line_is_no_crash() -> None:
    strange = [{"type": "telepathy"}, {"no": "type"}, [1]]
    data = b"".join(json.dumps(event).encode() + b"\n" for event in strange) + b'{"type":"agent_e'

    outcome, reading = read_bytes(PI, [data], ended=FAILED)

    assert outcome.kind is Kind.CRASHED
    assert reading.unknown == 4


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "input", "total"]), inner),
    max_leaves=5,
)
_MESSAGE = {
    "content": _VALUES,
    "usage": _VALUES | st.dictionaries(st.sampled_from(["input", "cacheRead", "cost"]), _VALUES),
    "stopReason": st.sampled_from(["stop", "error", "aborted"]) | _VALUES,
    "errorMessage": _VALUES,
    "timestamp": _VALUES | st.integers(min_value=10**300),
}
_FIELDS = {
    "message": _VALUES | st.fixed_dictionaries({"role": st.just("assistant")}, optional=_MESSAGE),
    "id": _VALUES,
    "args": _VALUES,
    "toolCallId": _VALUES,
    "toolName": st.just("write") | _VALUES,
    "result": _VALUES,
    "delayMs": _VALUES | st.integers(min_value=10**300),
}
_KINDS = ["session", "turn_start", "message_end", "tool_execution_start", "tool_execution_end", "auto_retry_start"]
_EVENTS = st.fixed_dictionaries({"type": st.sampled_from([*_KINDS, "agent_end"])}, optional=_FIELDS)


@settings(deadline=None)
@given(events=st.lists(_EVENTS, max_size=3))
def test_event_with_any_values_is_no_crash(events: list[dict[str, Any]]) -> None:
    end = {"type": "agent_end"}

    _, reading = read_bytes(PI, [b"".join(json.dumps(event).encode() + b"\n" for event in (*events, end))])

    assert reading.account().denials is not None


def _say(*events: dict[str, Any]) -> list[Said]:
    translator = PiTranslator()
    return [said for event in events for said in translator.read(event)]


def _message(**fields: Any) -> dict[str, Any]:
    return {"type": "message_end", "message": {"role": "assistant", "model": "m", **fields}}


def test_model_without_a_known_price_costs_nobody_knows_what() -> None:
    usage = {"input": 10, "output": 2, "cacheRead": 5, "cacheWrite": 3, "cost": {"total": 0}}

    (_, used, _) = _say(_message(stopReason="stop", usage=usage, content=[]))

    assert used == Used(Usage(tokens_in=13, tokens_cached=5, tokens_out=2, usd=None))


def test_message_says_its_model_and_its_text() -> None:
    content = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Done."}]

    said = _say(_message(stopReason="stop", content=content), {"type": "agent_end"})

    assert said == [Began(model="m"), Used(Usage()), Text("Done.", final=True), Ended(stop="stop")]


def test_what_the_user_and_the_tools_say_is_not_the_models() -> None:
    content = [{"type": "text", "text": "Do it."}]

    assert _say({"type": "message_end", "message": {"role": "user", "content": content}}) == []


def test_edit_is_told_when_it_is_done() -> None:
    call = {"toolCallId": "c", "toolName": "edit"}

    def said(error: object) -> list[Said]:
        result = {"content": [{"type": "text", "text": "out"}]}
        return _say(
            {"type": "tool_execution_start", **call, "args": {"path": "/w/a.py"}},
            {"type": "tool_execution_end", **call, "result": result, "isError": error},
        )

    assert said(error=False) == [Tool("edit", "/w/a.py"), Edited("/w/a.py"), ToolEnded(ok=True, output="out")]
    assert said(error=True) == [Tool("edit", "/w/a.py"), ToolEnded(ok=False, output="out")]


def test_retry_is_told_with_its_wait() -> None:
    event = {"type": "auto_retry_start", "attempt": 1, "delayMs": 2000, "errorMessage": "429 slow down"}

    assert _say(event) == [Retrying(Kind.RATE_LIMITED, "429 slow down", 2.0)]


def test_rate_limit_says_when_to_come_back_by_the_time_of_its_message() -> None:
    words = "429 Rate limit reached. Please try again in 100s."

    (*_, failure) = _say(
        _message(stopReason="error", errorMessage=words, timestamp=5_000_000), {"type": "agent_end", "messages": []}
    )

    assert failure == Failed(Kind.RATE_LIMITED, words, 5100.0)


def test_end_of_a_run_that_was_aborted_is_a_failure() -> None:
    (*_, failure) = _say(_message(stopReason="aborted"), {"type": "agent_end"})

    assert failure == Failed(Kind.CRASHED, "aborted")
