"""Codex's events: what recorded streams come to, and what single events say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orch.activities.agents.codex import CodexAgent
from orch.activities.agents.codex_events import CodexTranslator
from orch.activities.agents.said import (
    Denied,
    Edited,
    Ended,
    Failed,
    Retrying,
    Said,
    SessionTotal,
    Text,
    Tool,
    ToolEnded,
    Turn,
)
from orch.workflows.model.outcome import OutcomeKind as Kind
from orch.workflows.model.usage import Usage

from .recorded import OK, STREAMS, Row, failed, names, read, read_bytes, signalled, told

CODEX = CodexAgent()
FAILED, CUT = failed(1), signalled(9)
NONE = (None, None, None)
EDIT = (1300, 1200, 52)

TABLE = [
    Row("codex-badtool", OK, Kind.DONE, (2100, 0, 41), None, "01a2285a", 1),
    Row("codex-bash", OK, Kind.DONE, (2100, 0, 41), None, "01a22859", 2),
    Row("codex-commit", OK, Kind.DONE, (3300, 0, 63), None, "01a2285a", 3),
    Row("codex-ctxfull", FAILED, Kind.CONTEXT_FULL, NONE, None, "01a22872", 1),
    Row("codex-drop1", OK, Kind.DONE, EDIT, None, "01a2286e", 2),
    Row("codex-e400", FAILED, Kind.CRASHED, NONE, None, "01a22871", 1),
    Row("codex-e401", FAILED, Kind.NOT_AUTHORISED, NONE, None, "01a22870", 1),
    Row("codex-e403", FAILED, Kind.NOT_AUTHORISED, NONE, None, "01a22871", 1),
    Row("codex-e429", FAILED, Kind.RATE_LIMITED, NONE, None, "01a22878", 1),
    Row("codex-e429x2", OK, Kind.DONE, EDIT, None, "01a2286f", 2),
    Row("codex-e500", FAILED, Kind.OVERLOADED, NONE, None, "01a2287c", 1),
    Row("codex-empty", OK, Kind.EMPTY_ANSWER, (1000, 0, 20), None, "01a2286d", 1),
    Row("codex-int", FAILED, Kind.CRASHED, NONE, None, "01a22869", 1),
    Row("codex-maxtok", FAILED, Kind.CONTEXT_FULL, NONE, None, "01a2286d", 1),
    Row("codex-maxturns", CUT, Kind.CRASHED, NONE, None, "01a2285b", 6),
    Row("codex-nogit", OK, Kind.DONE, EDIT, None, "01a22863", 2),
    Row("codex-ok", OK, Kind.DONE, EDIT, None, "01a22858", 2),
    Row("codex-quota", FAILED, Kind.OUT_OF_QUOTA, NONE, None, "01a22874", 1),
    Row("codex-refuse", OK, Kind.EMPTY_ANSWER, (1000, 0, 20), None, "01a2286d", 1),
    Row("codex-resume", OK, Kind.DONE, EDIT, None, "01a22863", 2),
    Row("codex-resume3", FAILED, Kind.CRASHED, NONE, None, "", None),
    Row("codex-rohome", FAILED, Kind.CRASHED, NONE, None, "", None),
    Row("codex-streamerr", FAILED, Kind.STREAM_BROKEN, NONE, None, "01a2286e", 1),
    Row("codex-term", signalled(15), Kind.CRASHED, NONE, None, "01a22868", 1),
    Row("codex-two_edits", OK, Kind.DONE, (2100, 0, 41), None, "01a22859", 3),
]
"""`badtool` asked the model twice, but the call of an unknown tool does not show; `two_edits` asked it twice, too, but
called two tools at once. `maxturns` is the beginning and the end of a longer one."""


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.stream)
def test_recorded_stream_comes_to(row: Row) -> None:
    assert told(CODEX, row) == row


def test_every_recorded_stream_is_in_the_table_and_says_nothing_unknown() -> None:
    assert {row.stream for row in TABLE} | {"codex-resume2"} == set(names("codex-"))
    assert [row.stream for row in TABLE if read(CODEX, row.stream)[1].unknown] == []


def test_thread_that_goes_on_is_charged_for_the_run() -> None:
    _, first = read(CODEX, "codex-resume")
    assert first.session_used is not None

    outcome, second = read(CODEX, "codex-resume2", before=first.session_used)

    assert outcome.kind is Kind.DONE
    assert second.session == first.session
    assert second.usage == first.usage == Usage(tokens_in=1300, tokens_cached=1200, tokens_out=52)
    assert second.session_used == Usage(tokens_in=2600, tokens_cached=2400, tokens_out=104)


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        ("codex-e401", "unexpected status 401 Unauthorized"),
        ("codex-ctxfull", "ran out of room in the model's context window"),
        ("codex-maxtok", "the answer was cut: max_output_tokens"),
        ("codex-resume3", "no rollout found for thread id"),
        ("codex-rohome", "Read-only file system"),
    ],
)
def test_failure_keeps_its_words(stream: str, words: str) -> None:
    outcome, _ = read(CODEX, stream, ended=FAILED)

    assert words in outcome.detail


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_reading_is_the_same_however_the_stream_is_cut(data: st.DataObject) -> None:
    stream = data.draw(st.sampled_from([path.stem for path in sorted(STREAMS.glob("codex-*.jsonl"))]))
    whole = (STREAMS / f"{stream}.jsonl").read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=30)))
    chunks = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    assert read_bytes(CODEX, chunks) == read_bytes(CODEX, [whole])


def test_unknown_events_are_counted_and_half_a_line_is_no_crash() -> None:
    strange = [{"type": "telepathy"}, {"type": "item.completed", "item": {"type": "telepathy"}}, {"no": "type"}, [1]]
    data = b"".join(json.dumps(event).encode() + b"\n" for event in strange) + b'{"type":"turn.compl'

    outcome, reading = read_bytes(CODEX, [data], ended=FAILED)

    assert outcome.kind is Kind.CRASHED
    assert reading.unknown == 5


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "path", "message"]), inner),
    max_leaves=5,
)
_KINDS = ["thread.started", "turn.started", "item.started", "item.completed", "turn.completed", "turn.failed", "error"]
_ITEM = {"type": st.sampled_from(["agent_message", "command_execution", "file_change", "todo_list", "error"])}
_FIELDS = {
    "item": _VALUES | st.fixed_dictionaries(_ITEM, optional={"changes": _VALUES, "text": _VALUES, "status": _VALUES}),
    "usage": _VALUES | st.dictionaries(st.sampled_from(["input_tokens", "cached_input_tokens"]), _VALUES),
    "error": _VALUES,
    "message": _VALUES,
}


@settings(deadline=None)
@given(kind=st.sampled_from(_KINDS), fields=st.fixed_dictionaries({}, optional=_FIELDS))
def test_event_with_any_values_is_no_crash(kind: str, fields: dict[str, Any]) -> None:
    _, reading = read_bytes(CODEX, [json.dumps({"type": kind, **fields}).encode()])

    assert reading.account().denials is not None


def _say(*events: dict[str, Any], clock: float = 0.0) -> list[Said]:
    translator = CodexTranslator(lambda: clock)
    return [said for event in events for said in translator.read(event)]


def _item(state: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"item.{state}", "item": {"type": kind, **fields}}


def test_model_is_asked_again_when_a_tool_has_come_back() -> None:
    said = _say(
        {"type": "turn.started"},
        _item("completed", "reasoning"),
        _item("completed", "agent_message", text="Now."),
        _item("started", "command_execution", command="ls"),
        _item("completed", "command_execution", status="completed", exit_code=0, aggregated_output="a"),
        _item("completed", "agent_message", text="Done."),
    )

    done = ToolEnded(ok=True, output="a")
    assert said == [Turn(), Text("Now."), Tool("command_execution", "ls"), done, Turn(), Text("Done.")]


def test_plan_counts_when_it_changes_and_not_at_the_end() -> None:
    todo = [_item("started", "todo_list"), _item("updated", "todo_list"), _item("completed", "todo_list")]

    assert _say({"type": "turn.started"}, *todo) == [Turn(), Turn()]


def test_patch_names_its_files() -> None:
    changes = [{"path": "/w/a.py", "kind": "add"}, {"path": "/w/b.py", "kind": "update"}]

    begun = _say(_item("started", "file_change", changes=changes))
    done = _say(_item("completed", "file_change", changes=changes, status="completed"))
    failure = _say(_item("completed", "file_change", changes=changes, status="failed"))

    assert begun == [Tool("file_change", "/w/a.py"), Tool("file_change", "/w/b.py")]
    assert done == [Edited("/w/a.py"), Edited("/w/b.py"), ToolEnded(ok=True)]
    assert failure == [ToolEnded(ok=False)]


def test_command_that_fails_or_is_declined() -> None:
    ended = {"status": "failed", "exit_code": 2, "aggregated_output": "no"}

    assert _say(_item("completed", "command_execution", **ended)) == [ToolEnded(ok=False, output="no")]
    assert _say(_item("completed", "command_execution", status="declined")) == [
        Denied("command_execution"),
        ToolEnded(ok=False),
    ]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)", Kind.RATE_LIMITED),
        ("Reconnecting... waiting for network (stream closed before response.completed)", Kind.STREAM_BROKEN),
    ],
)
def test_reconnecting_is_no_failure(message: str, kind: Kind) -> None:
    assert _say({"type": "error", "message": message}) == [Retrying(kind, message)]


def test_used_up_plan_says_when_to_come_back() -> None:
    message = "You've hit your usage limit. Try again in 2 hours 5 minutes."

    said = _say({"type": "turn.failed", "error": {"message": message}}, clock=1000.0)

    assert said == [Failed(Kind.RATE_LIMITED, message, 1000.0 + 7500)]


def test_warning_is_not_told() -> None:
    assert _say(_item("completed", "error", message="Model metadata not found")) == []


def test_run_that_says_nothing_after_its_last_tool_has_no_answer() -> None:
    said = _say(
        _item("completed", "agent_message", text="I start."),
        _item("started", "command_execution", command="ls"),
        _item("completed", "command_execution", status="completed", exit_code=0),
        {"type": "turn.completed", "usage": {"input_tokens": 5, "cached_input_tokens": 9}},
    )

    assert said[-3:] == [SessionTotal(Usage(tokens_in=0, tokens_cached=9)), Text("", final=True), Ended()]
