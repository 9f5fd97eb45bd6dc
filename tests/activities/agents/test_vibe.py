"""Mistral Vibe: what the recorded runs of version 3.0.2 come to, how it is started, and what its settings say."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orch.activities.agents.adapter import Launch
from orch.activities.agents.said import Complained, Denied, Edited, Said, Text, Tool, ToolEnded, Total, Unknown
from orch.activities.agents.vibe import VibeAgent
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.outcome import OutcomeKind
from orch.workflows.model.usage import Usage

from .left_behind import launch_in, read_left
from .recorded import OK, STREAMS, failed, names, read, read_bytes

AGENT = VibeAgent()
K = OutcomeKind
UNKNOWN = Usage()
STOPPED = Exit(kind=ExitKind.SIGNALLED, number=15, detail="stopped")


def _used(fresh: int, cached: int, out: int, usd: float | None = None) -> Usage:
    return Usage(tokens_in=fresh, tokens_cached=cached, tokens_out=out, usd=usd)


TABLE = [
    # stream, exit, outcome, usage, turns, session
    ("badtool", OK, K.DONE, _used(2100, 0, 41), 2, "9a306132"),
    ("ctxfull", failed(2), K.CONTEXT_FULL, UNKNOWN, 1, "edf066e1"),
    ("drop1", OK, K.DONE, _used(1300, 1200, 52), 2, "1d5563ee"),
    ("e401", failed(1), K.NOT_AUTHORISED, UNKNOWN, 1, "e8e09ef2"),
    ("e429", failed(2), K.RATE_LIMITED, UNKNOWN, 1, "70b2e8a8"),
    ("e500", failed(2), K.OVERLOADED, UNKNOWN, 1, "aa68f40d"),
    ("empty", OK, K.EMPTY_ANSWER, _used(1000, 0, 20), 1, "056d10a6"),
    ("lostsession", failed(1), K.CRASHED, UNKNOWN, None, ""),
    ("maxtok", failed(3), K.CONTEXT_FULL, _used(1000, 0, 20), 7, "899b060f"),  # it exports its last try alone
    ("maxtokens", failed(3), K.BUDGET_LIMIT, _used(3300, 0, 63), 3, "08b72455"),
    ("maxturns", failed(3), K.TURN_LIMIT, _used(3300, 0, 63), 3, "53c245be"),
    ("maxusd", failed(3), K.BUDGET_LIMIT, _used(2100, 0, 41, 0.006915), 2, "01e578a1"),  # prices added to its settings
    ("ok", OK, K.DONE, _used(1300, 1200, 52), 2, "c1cf0cf4"),
    ("priced", OK, K.DONE, _used(1300, 1200, 52, 0.00828), 2, "757b7ee3"),  # prices added to its settings
    ("refuse", OK, K.EMPTY_ANSWER, _used(1000, 0, 20), 1, "ba6be0e5"),  # it looks the same as an empty answer
    ("resume", OK, K.DONE, _used(2100, 0, 41), 2, "c1cf0cf4"),  # it counts this run alone
    ("term", STOPPED, K.KILLED, _used(1000, 200, 40), 2, "49000f7f"),
    ("termtool", STOPPED, K.KILLED, _used(1000, 0, 20), 1, "7e59dd11"),
]


@pytest.mark.parametrize(("stream", "ended", "kind", "usage", "turns", "session"), TABLE, ids=[row[0] for row in TABLE])
def test_recorded_run_comes_to(
    tmp_path: Path, *, stream: str, ended: Exit, kind: OutcomeKind, usage: Usage, turns: int | None, session: str
) -> None:
    outcome, reading = read_left(AGENT, f"vibe-{stream}", launch_in(tmp_path, AGENT), ended=ended)

    assert (outcome.kind, reading.usage, reading.turns) == (kind, usage, turns)
    assert reading.session.partition("-")[0] == session
    assert reading.unknown == 0


def test_every_recorded_run_stands_in_the_table() -> None:
    assert {name.partition(".")[0] for name in names("vibe-")} == {f"vibe-{row[0]}" for row in TABLE}


@settings(deadline=None, max_examples=60)
@given(stream=st.sampled_from([row[0] for row in TABLE if row[0] != "lostsession"]), size=st.integers(1, 5000))
def test_any_split_of_a_stream_reads_the_same(stream: str, size: int) -> None:
    assert read(AGENT, f"vibe-{stream}", chunk=size) == read(AGENT, f"vibe-{stream}")


def test_error_is_told_without_the_advice_around_it(tmp_path: Path) -> None:
    outcome, _ = read_left(AGENT, "vibe-e429", launch_in(tmp_path, AGENT), ended=failed(2))

    assert outcome.detail == "Client error '429 Too Many Requests': scripted error 429"


def test_run_that_was_killed_before_its_export_is_no_success() -> None:
    data = (STREAMS / "vibe-ok.jsonl").read_bytes()

    assert read_bytes(AGENT, [data], ended=failed(137))[0].kind is K.CRASHED
    assert read_bytes(AGENT, [data])[0].kind is K.STREAM_BROKEN


@pytest.mark.parametrize("half", [b'{"type":"mes', b'{"type":"effect","detail":{"toolName":"x'])
def test_half_a_line_at_the_end_is_counted_and_no_error(half: bytes) -> None:
    outcome, reading = read_bytes(AGENT, [half], ended=failed(137))

    assert (outcome.kind, reading.unknown, reading.usage) == (K.CRASHED, 1, UNKNOWN)


@pytest.mark.parametrize("line", [b'{"type":"hologram"}', b"[1]", b'{"type":null}', b"\xff\xfe"])
def test_unknown_event_is_counted_and_passed_over(line: bytes) -> None:
    _, reading = read_bytes(AGENT, [line + b"\n" + (STREAMS / "vibe-ok.jsonl").read_bytes()])

    assert (reading.unknown, reading.answer) == (1, "All done: I created hello.py.")


@pytest.mark.parametrize(
    "export", [b"", b"{", b"[]", b"\xff", b'{"outcome": 5, "usage": [], "config": "x", "steps": -1}']
)
def test_export_that_cannot_be_read_is_unknown_and_no_success(export: bytes, tmp_path: Path) -> None:
    launch = launch_in(tmp_path, AGENT)
    launch.private.mkdir()
    (launch.private / "export.json").write_bytes(export)

    outcome, reading = read_bytes(AGENT, [])
    reading.take(AGENT.leftovers(launch, ""))

    assert (outcome.kind, reading.usage, reading.turns) == (K.STREAM_BROKEN, UNKNOWN, None)
    assert reading.account().error in {None, K.CRASHED}


def test_link_in_place_of_the_export_is_not_followed(tmp_path: Path) -> None:
    launch = launch_in(tmp_path, AGENT)
    launch.private.mkdir()
    (launch.private / "export.json").symlink_to(STREAMS / "vibe-ok.export.json")

    assert list(AGENT.leftovers(launch, "Error: x\n")) == [Complained(K.CRASHED, "Error: x")]


def _journal(launch: Launch) -> Path:
    """The journal of `vibe-maxtok`, where the launch would have written it."""
    journal = launch.home / ".vibe" / "logs" / "session" / "unified" / "abcd-1" / "journal" / "0000000000000001.jsonl"
    journal.parent.mkdir(parents=True)
    shutil.copyfile(STREAMS / "vibe-maxtok.journal", journal)
    return journal


def test_journal_counts_what_the_export_leaves_out(tmp_path: Path) -> None:
    launch = launch_in(tmp_path, AGENT)
    _journal(launch)

    outcome, reading = read_left(AGENT, "vibe-maxtok", launch, ended=failed(3))

    assert (outcome.kind, reading.usage) == (K.CONTEXT_FULL, _used(7000, 0, 140))


def test_killed_run_without_an_export_used_what_its_journal_says(tmp_path: Path) -> None:
    launch = launch_in(tmp_path, AGENT)
    journal = _journal(launch)

    assert list(AGENT.leftovers(launch, "")) == [Total(_used(7000, 0, 140))]

    journal.write_text(journal.read_text()[:-9])
    assert list(AGENT.leftovers(launch, "")) == [Total(_used(6000, 0, 120))]


def test_journal_from_before_the_prompt_is_not_of_this_run(tmp_path: Path) -> None:
    launch = launch_in(tmp_path, AGENT)
    os.utime(_journal(launch), (1, 1))
    launch.prompt.write_text("x")

    assert list(AGENT.leftovers(launch, "")) == []


def _told(event: dict[str, Any]) -> list[Said]:
    translator = AGENT.translator()
    assert translator is not None
    return list(translator.read(event))


def _effect(state: dict[str, Any]) -> dict[str, Any]:
    detail = {"toolName": "file_system.write_file", "kind": "file_write", "input": {"filePath": "a.py"}}
    return {"type": "effect", "detail": detail, "state": {"display": {"success": True}, "outputText": "out", **state}}


def test_effects_are_tools_with_what_came_of_them() -> None:
    tool = Tool("file_system.write_file", "a.py")
    failure = {"status": "failed", "error": {"message": "disk full"}}
    skipped = {"status": "skipped", "decision": "skip", "reason": "not allowed"}

    assert _told(_effect({"status": "completed"})) == [tool, Edited("a.py"), ToolEnded(True, "out")]
    assert _told(_effect(failure)) == [tool, ToolEnded(False, "disk full")]
    assert _told(_effect(skipped)) == [tool, Denied(tool.name), ToolEnded(False, "not allowed")]


def test_discarded_answer_is_none_and_a_kept_one_is() -> None:
    message = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "half"}]}

    assert _told({**message, "outcome": {"type": "discarded", "cause": "retry"}}) == []
    assert _told({**message, "outcome": {"type": "committed"}}) == [Text("half")]
    assert _told({"type": "hologram"}) == [Unknown("hologram")]


def test_it_is_started_unattended_with_every_limit_it_knows(tmp_path: Path) -> None:
    limits = {"max-turns": "7.5", "max-tokens": "1000", "max-usd": "0.25"}
    launch = launch_in(tmp_path, AGENT, settings=limits, secrets={"MISTRAL_API_KEY": "k"}, session="abcd-1")

    call = AGENT.call(launch)

    prompt, private = str(launch.prompt), str(launch.private)
    start = ("vibe", "--prompt-file", prompt, "--output", "streaming", "--auto-approve", "--trust")
    bounds = ("--max-turns", "7", "--max-tokens", "1000", "--max-price", "0.25")
    assert call.argv == (*start, "--output-dir", private, *bounds, "--resume", "abcd-1")
    assert call.env == {"VIBE_HOME": str(launch.home / ".vibe"), "MISTRAL_API_KEY": "k"}


def _config(tmp_path: Path, model: str, **secrets: str) -> dict[str, Any]:
    launch = launch_in(tmp_path, AGENT, model, secrets=secrets)
    (path, text), *others = AGENT.call(launch).files.items()
    assert (path, others) == (launch.home / ".vibe" / "config.toml", [])
    return tomllib.loads(text)


def test_without_a_model_its_own_default_is_used_and_nothing_phones_home(tmp_path: Path) -> None:
    config = _config(tmp_path, "", MISTRAL_API_KEY="k")

    assert "active_model" not in config
    assert [config[f"enable_{name}"] for name in ("telemetry", "update_checks", "auto_update")] == [False] * 3
    assert config["experiments"] == {"enable": False}


def test_model_is_one_of_mistral_unless_a_server_is_given(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/v1"

    own = _config(tmp_path, "mistral/devstral", MISTRAL_API_KEY="k", OPENAI_BASE_URL=url)
    served = _config(tmp_path, 'odd"model', OPENAI_BASE_URL=url)

    assert own["models"] == [{"alias": "orch", "name": "devstral", "provider": "mistral"}]
    assert served["models"] == [{"alias": "orch", "name": 'odd"model', "provider": "orch"}]
    assert served["providers"][0]["api_base"] == url
    assert served["active_model"] == own["active_model"] == "orch"


def test_server_gets_its_key_or_a_placeholder_and_no_other(tmp_path: Path) -> None:
    given_ = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "MISTRAL_API_KEY": "m"}

    without = AGENT.call(launch_in(tmp_path, AGENT, secrets=given_)).env
    with_key = AGENT.call(launch_in(tmp_path, AGENT, secrets={**given_, "OPENAI_API_KEY": "o"})).env

    assert (without["OPENAI_API_KEY"], with_key["OPENAI_API_KEY"]) == ("none", "o")
    assert "MISTRAL_API_KEY" not in {**without, **with_key}


def test_session_of_another_working_copy_is_not_adopted(tmp_path: Path) -> None:
    session = tmp_path / "old" / ".vibe" / "logs" / "session" / "unified" / "abcd-1"
    session.mkdir(parents=True)
    (session / "meta.json").write_text(json.dumps({"environment": {"working_directory": os.fspath(tmp_path)}}))

    assert not AGENT.adopt(launch_in(tmp_path, AGENT, session="abcd-1"), tmp_path / "old")
