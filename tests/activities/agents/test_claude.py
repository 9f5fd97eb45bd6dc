"""Claude Code: how it is started, and how a session moves to another folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from orch.activities.agents.adapter import Launch
from orch.activities.agents.claude import ClaudeAgent
from orch.activities.agents.spec import parse

CLAUDE = ClaudeAgent()
SESSION = "172d82c5-5c5b-4f8a-8714-00614558ae3a"


def _launch(folder: Path, spec: str = "claude", **more: Any) -> Launch:
    secrets = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}
    return Launch(
        parse(spec), folder / "home", folder / "private", folder / "tree", folder / "prompt.md", secrets, **more
    )


def test_fresh_call_asks_nobody_and_names_no_prompt() -> None:
    call = CLAUDE.call(_launch(Path("/a")))

    assert call.argv == (
        "claude", "-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages",
        "--permission-mode", "acceptEdits",
        "--allowedTools", "Bash,Edit,NotebookEdit,Read,Skill,WebFetch,WebSearch,Write",
        "--disallowedTools", "AskUserQuestion,CronCreate,EnterWorktree,ExitWorktree,ScheduleWakeup",
    )  # fmt: skip
    assert call.env == {
        "ANTHROPIC_API_KEY": "key",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "CLAUDE_CONFIG_DIR": "/a/home/.claude",
        "DISABLE_AUTOUPDATER": "1",
    }
    assert call.files == {}


@pytest.mark.parametrize(
    ("spec", "more", "last"),
    [
        ("claude", {"session": SESSION}, ("--resume", SESSION)),
        ("claude", {"session": SESSION, "fork": True}, ("--resume", SESSION, "--fork-session")),
        ("claude:opus", {}, ("--model", "opus")),
        ("claude:opus,effort=low", {}, ("--model", "opus", "--effort", "low")),
        ("claude,max-turns=12", {}, ("--max-turns", "12")),
        ("claude,max-turns=0.5", {}, ("--max-turns", "1")),
        ("claude,max-usd=0.00002", {}, ("--max-budget-usd", "0.00002")),
        ("claude,max-usd=10", {}, ("--max-budget-usd", "10")),
    ],
)
def test_call_ends_with_what_is_asked_for(spec: str, more: dict[str, Any], last: tuple[str, ...]) -> None:
    call = CLAUDE.call(_launch(Path("/a"), spec, **more))

    assert call.argv[-len(last) :] == last


def test_call_takes_the_program_of_the_spec() -> None:
    assert CLAUDE.call(_launch(Path("/a"), "claude,bin=/opt/claude")).argv[0] == "/opt/claude"


def test_missing_program_is_named(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    assert CLAUDE.missing(parse("claude"), str(tmp_path)) == "claude"

    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    assert CLAUDE.missing(parse("claude"), str(tmp_path)) == ""
    assert CLAUDE.missing(parse("claude,bin=other"), str(tmp_path)) == "other"


def _session(home: Path, cwd: str, *lines: dict[str, Any]) -> Path:
    record = home / ".claude" / "projects" / "old" / f"{SESSION}.jsonl"
    record.parent.mkdir(parents=True)
    first = [{"type": "queue-operation"}, {"type": "user", "cwd": cwd}]
    record.write_text("".join(json.dumps(line) + "\n" for line in (*first, *lines)))
    return record


def test_adopted_session_lies_where_the_new_folder_is_looked_for_and_speaks_of_it(tmp_path: Path) -> None:
    launch = _launch(tmp_path / "n-1", session=SESSION)
    thought = {"type": "thinking", "thinking": "in /w/old/tree", "signature": "s"}
    edit = {"type": "tool_use", "input": {"file_path": "/w/old/tree/a.py"}}
    _session(tmp_path / "old", "/w/old/tree", {"message": {"content": [thought, edit, "/w/old/tree2"]}})

    assert CLAUDE.adopt(launch, tmp_path / "old")

    folder = str(launch.tree).translate({ord(sign): "-" for sign in "/_."})
    lines = (launch.home / ".claude" / "projects" / folder / f"{SESSION}.jsonl").read_text().splitlines()
    assert json.loads(lines[1])["cwd"] == str(launch.tree)
    assert json.loads(lines[2])["message"]["content"] == [
        thought,
        {"type": "tool_use", "input": {"file_path": f"{launch.tree}/a.py"}},
        "/w/old/tree2",
    ]


@pytest.mark.parametrize(("start", "hashed"), [("/w/", "8qfznd"), ("/w/é_😀/", "700rz")])
def test_long_folder_is_named_by_a_hash(tmp_path: Path, start: str, hashed: str) -> None:
    _session(tmp_path / "old", "/w/old")
    launch = Launch(parse("claude"), tmp_path, tmp_path, Path(start + "d" * 210), tmp_path, session=SESSION)

    assert CLAUDE.adopt(launch, tmp_path / "old")

    (found,) = (path for path in (tmp_path / ".claude" / "projects").iterdir())
    assert found.name.startswith("-w-")
    assert found.name[200:] == f"-{hashed}"


def test_session_that_is_not_there_is_not_adopted(tmp_path: Path) -> None:
    assert not CLAUDE.adopt(_launch(tmp_path, session=SESSION), tmp_path / "old")


def test_link_or_pipe_in_place_of_a_session_is_not_adopted(tmp_path: Path) -> None:
    launch = _launch(tmp_path, session=SESSION)
    record = _session(tmp_path / "old", "/w/old")
    secret = record.rename(tmp_path / "secret")

    record.symlink_to(secret)
    assert not CLAUDE.adopt(launch, tmp_path / "old")
    record.unlink()
    os.mkfifo(record)
    assert not CLAUDE.adopt(launch, tmp_path / "old")
