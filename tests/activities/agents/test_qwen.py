"""Qwen Code: what its recorded streams come to, how it is started, and which sessions it goes on in.

The streams are of version 0.15.10 and, as `qwen_latest`, of 0.24.4, each started by the adapter's own call.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orch.activities.agents.qwen import DENIED, ENVIRONMENT, QwenAgent
from orch.activities.agents.said import Complained, Edited, Recorded, Tool, ToolEnded
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.outcome import OutcomeKind
from orch.workflows.model.usage import Usage

from .left_behind import launch_in
from .recorded import OK, STREAMS, failed, names, read, read_bytes

AGENT = QwenAgent()
K = OutcomeKind
UNKNOWN = Usage()
STOPPED = Exit(kind=ExitKind.SIGNALLED, number=15, detail="stopped")
FIRST = Usage(tokens_in=1300, tokens_cached=1200, tokens_out=52)
"""What the first run of a session had used before it was taken up again."""


def _used(fresh: int, cached: int, out: int) -> Usage:
    return Usage(tokens_in=fresh, tokens_cached=cached, tokens_out=out)


TABLE = [
    # stream, exit, outcome, usage, turns, session; a price is never told
    ("qwen-badtool", OK, K.DONE, _used(2100, 0, 41), 2, "66e7206f"),
    ("qwen-ctxfull", OK, K.CONTEXT_FULL, _used(50, 0, 4), 1, "8dd75c8c"),  # the failed attempt to compress
    ("qwen-drop1", OK, K.STREAM_BROKEN, UNKNOWN, 1, "cbba0503"),
    ("qwen-e400", OK, K.CRASHED, UNKNOWN, 1, "8e97a31f"),
    ("qwen-e401", OK, K.NOT_AUTHORISED, UNKNOWN, 1, "1a84a69a"),
    ("qwen-e429", OK, K.RATE_LIMITED, UNKNOWN, 1, "bfc16a57"),
    ("qwen-e429_mid", OK, K.RATE_LIMITED, _used(1000, 200, 40), 2, "a6255257"),
    ("qwen-e429x2", OK, K.DONE, _used(1300, 1200, 52), 2, "211e7d28"),
    ("qwen-e500", OK, K.OVERLOADED, UNKNOWN, 1, "ddebea2c"),
    ("qwen-empty", OK, K.EMPTY_ANSWER, _used(3000, 0, 60), 1, "1ac11a8e"),  # it asks three times
    ("qwen-lostsession", failed(1), K.CRASHED, UNKNOWN, None, ""),
    ("qwen-maxtok", OK, K.DONE, _used(10_000, 0, 200), 1, "7b4ef870"),  # it goes on by itself, and tells no stop reason
    ("qwen-maxturns", failed(53), K.TURN_LIMIT, _used(3300, 0, 63), 3, "a7b57a5f"),
    ("qwen-nokey", failed(1), K.NOT_AUTHORISED, UNKNOWN, None, ""),
    ("qwen-ok", OK, K.DONE, FIRST, 2, "b944248f"),
    ("qwen-quota", OK, K.OUT_OF_QUOTA, UNKNOWN, 1, "0fd9b002"),
    ("qwen-refuse", OK, K.EMPTY_ANSWER, _used(3000, 0, 60), 1, "08c767f2"),  # it looks the same as an empty answer
    ("qwen-resume", OK, K.DONE, _used(2100, 0, 41), 2, "b944248f"),
    ("qwen-resume_e401", OK, K.NOT_AUTHORISED, _used(0, 0, 0), 1, "b944248f"),
    ("qwen-streamerr", OK, K.STREAM_BROKEN, UNKNOWN, 1, "1451f8c5"),
    ("qwen-term", STOPPED, K.KILLED, _used(1000, 200, 40), 1, "8e5478d0"),
    ("qwen-termtool", STOPPED, K.KILLED, _used(1000, 0, 20), 1, "eafb2273"),
    ("qwen-text", OK, K.DONE, _used(20, 0, 10), 1, "f64d05f3"),
    ("qwen_latest-drop1", OK, K.DONE, FIRST, 2, "da02e8cf"),
    ("qwen_latest-e401", failed(1), K.NOT_AUTHORISED, UNKNOWN, 1, "b0eb99b8"),
    ("qwen_latest-maxturns", failed(53), K.TURN_LIMIT, _used(3300, 0, 63), 3, "e533fe76"),
    ("qwen_latest-ok", OK, K.DONE, FIRST, 2, "d8a47b17"),
    ("qwen_latest-refuse", failed(1), K.EMPTY_ANSWER, _used(5000, 0, 100), 1, "91fe2638"),  # it asks five times
    ("qwen_latest-resume", OK, K.DONE, _used(2100, 0, 41), 2, "d8a47b17"),
    ("qwen_latest-term", STOPPED, K.KILLED, _used(1000, 200, 40), 1, "4c554aac"),
]


@pytest.mark.parametrize(("stream", "ended", "kind", "usage", "turns", "session"), TABLE, ids=[row[0] for row in TABLE])
def test_recorded_stream_comes_to(
    stream: str, ended: Exit, kind: OutcomeKind, usage: Usage, turns: int | None, session: str
) -> None:
    before = FIRST if "resume" in stream else UNKNOWN

    outcome, reading = read(AGENT, stream, ended=ended, before=before)

    assert (outcome.kind, reading.usage, reading.turns) == (kind, usage, turns)
    assert reading.session.partition("-")[0] == session
    assert reading.unknown == 0


def test_every_recorded_stream_stands_in_the_table() -> None:
    assert set(names("qwen")) == {row[0] for row in TABLE}


@settings(deadline=None, max_examples=60)
@given(stream=st.sampled_from([row[0] for row in TABLE if "lost" not in row[0]]), size=st.integers(1, 5000))
def test_any_split_of_a_stream_reads_the_same(stream: str, size: int) -> None:
    assert read(AGENT, stream, chunk=size) == read(AGENT, stream)


@pytest.mark.parametrize("half", [b'{"type":"res', b'{"type":"assistant","message":{"content":[{"ty'])
def test_half_a_line_at_the_end_is_counted_and_no_error(half: bytes) -> None:
    outcome, reading = read_bytes(AGENT, [half], ended=failed(137))

    assert (outcome.kind, reading.unknown, reading.usage) == (K.CRASHED, 1, UNKNOWN)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"hologram"}',
        b'{"type":"system","subtype":"hologram"}',
        b"[1]",
        b'{"type":null}',
        b"\xff\xfe",
    ],
)
def test_unknown_event_is_counted_and_passed_over(line: bytes) -> None:
    data = (STREAMS / "qwen-ok.jsonl").read_bytes()

    outcome, reading = read_bytes(AGENT, [line + b"\n" + data])

    assert (outcome.kind, reading.unknown, reading.usage) == (K.DONE, 1, FIRST)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "assistant", "message": {"content": "text", "usage": {"input_tokens": -1, "output_tokens": "many"}}},
        {"type": "assistant", "message": None},
        {"type": "user", "message": {"content": [1, None, {"type": "tool_result", "content": 7}]}},
        {"type": "result", "usage": [], "permission_denials": {}, "result": 5, "error": "x"},
    ],
)
def test_event_of_another_form_is_no_error_and_counts_nothing(event: dict[str, object]) -> None:
    _, reading = read_bytes(AGENT, [json.dumps(event).encode()])

    assert reading.usage == UNKNOWN


def test_model_that_talks_about_an_api_error_has_not_failed() -> None:
    words = "The log says [API Error: 401 no key] where I mended the handler."
    result = json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": words}).encode()

    outcome, reading = read_bytes(AGENT, [result])

    assert (outcome.kind, reading.answer) == (K.DONE, words)


def test_failure_of_a_version_that_reports_it_as_such_is_read_too() -> None:
    result = {"type": "result", "subtype": "error_during_execution", "is_error": True, "error": {"message": "403 no"}}

    outcome, _ = read_bytes(AGENT, [json.dumps(result).encode()], ended=failed(1))

    assert (outcome.kind, outcome.detail) == (K.NOT_AUTHORISED, "403 no")


def test_written_file_is_an_edit_once_the_tool_came_back() -> None:
    translator = AGENT.translator()
    assert translator is not None
    events = map(json.loads, (STREAMS / "qwen-ok.jsonl").read_text().splitlines())

    said = [one for event in events for one in translator.read(event) if isinstance(one, Tool | Edited | ToolEnded)]

    output = "Successfully created and wrote to new file: /w/tree/hello.py."
    assert said == [Tool("write_file", "/w/tree/hello.py"), Edited("/w/tree/hello.py"), ToolEnded(True, output)]


def test_it_is_started_unattended_and_without_a_child_of_its_own(tmp_path: Path) -> None:
    secrets = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}

    call = AGENT.call(launch_in(tmp_path, AGENT, "coder", settings={"max-turns": "7"}, secrets=secrets))

    start = ("qwen", "--auth-type", "openai", "--approval-mode", "yolo", "--output-format", "stream-json")
    assert call.argv == (*start, "--exclude-tools", DENIED, "--model", "coder", "--max-session-turns", "7")
    assert "ask_user_question" in DENIED.split(",")
    assert call.env == {**ENVIRONMENT, **secrets}
    (path, text), *others = call.files.items()
    assert (path, others) == (tmp_path / "home" / ".qwen" / "settings.json", [])
    assert json.loads(text)["model"]["generationConfig"]["maxRetries"] == 0


def test_server_without_a_key_gets_a_placeholder_and_no_server_none(tmp_path: Path) -> None:
    url = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}

    assert AGENT.call(launch_in(tmp_path, AGENT, secrets=url)).env["OPENAI_API_KEY"] == "none"
    assert "OPENAI_API_KEY" not in AGENT.call(launch_in(tmp_path, AGENT)).env


def test_fraction_of_a_turn_is_one_turn_and_a_session_is_taken_up_by_its_id(tmp_path: Path) -> None:
    call = AGENT.call(launch_in(tmp_path, AGENT, settings={"max-turns": "0.5", "bin": "/q"}, session="abcd-1"))

    assert call.argv[0] == "/q"
    assert call.argv[-4:] == ("--max-session-turns", "1", "--resume", "abcd-1")


def _record(home: Path, tree: str, session: str) -> Path:
    """A session's record, as Qwen Code keeps it for a working copy."""
    record = home / ".qwen" / "projects" / "-w-tree" / "chats" / f"{session}.jsonl"
    record.parent.mkdir(parents=True)
    lines = [{"sessionId": session, "cwd": tree}, {"cwd": tree, "said": f"wrote {tree}/a.py, not {tree}s/b.py"}]
    record.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return record


def test_session_from_another_home_goes_on_in_the_new_working_copy(tmp_path: Path) -> None:
    _record(tmp_path / "old", "/w/tree", "abcd-1")
    launch = launch_in(tmp_path / "new", AGENT, session="abcd-1")

    assert AGENT.adopt(launch, tmp_path / "old")

    tree = os.path.realpath(launch.tree)
    (record,) = (launch.home / ".qwen" / "projects").glob("*/chats/*.jsonl")
    assert record.parent.parent.name == "".join(char if char.isalnum() else "-" for char in tree)
    first, second = map(json.loads, record.read_text().splitlines())
    assert (first["cwd"], second["said"]) == (tree, f"wrote {tree}/a.py, not /w/trees/b.py")


def test_session_that_is_not_there_or_a_link_is_not_adopted(tmp_path: Path) -> None:
    record = _record(tmp_path / "old", "/w/tree", "abcd-1")
    record.rename(tmp_path / "elsewhere")
    record.symlink_to(tmp_path / "elsewhere")

    assert not AGENT.adopt(launch_in(tmp_path, AGENT, session="abcd-1"), tmp_path / "old")
    assert not AGENT.adopt(launch_in(tmp_path, AGENT, session="abcd-2"), tmp_path / "old")


def test_record_of_a_stopped_run_tells_what_its_session_used(tmp_path: Path) -> None:
    launch = launch_in(tmp_path, AGENT)
    record = launch.home / ".qwen" / "projects" / "-w-tree" / "chats" / "s.jsonl"
    record.parent.mkdir(parents=True)
    shutil.copyfile(STREAMS / "qwen-maxturns.record", record)

    said = list(AGENT.leftovers(launch, (STREAMS / "qwen-maxturns.stderr").read_text()))

    assert said == [Recorded(_used(3300, 0, 63)), Complained(K.TURN_LIMIT, "reached max session turns")]


def test_record_from_before_the_prompt_tells_nothing_of_this_run(tmp_path: Path) -> None:
    launch = launch_in(tmp_path, AGENT)
    record = _record(launch.home, "/w/tree", "abcd-1")
    shutil.copyfile(STREAMS / "qwen-maxturns.record", record)
    os.utime(record, (1, 1))
    launch.prompt.write_text("x")

    assert list(AGENT.leftovers(launch, "")) == []
