"""Gemini CLI: how it is started, how a session moves to another folder, and what its record of one tells."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from orch.activities.agents.adapter import Launch
from orch.activities.agents.gemini import GeminiAgent
from orch.activities.agents.said import Recorded
from orch.activities.agents.spec import parse
from orch.workflows.model.usage import Usage

GEMINI = GeminiAgent()
SESSION = "2b0250a9-85a5-4071-88c8-f4c4a0070aaf"
ARGV = ("gemini", "--output-format", "stream-json", "--approval-mode", "yolo", "--skip-trust")


def _launch(folder: Path, spec: str = "gemini", secrets: dict[str, str] | None = None, **more: Any) -> Launch:
    known = {"GEMINI_API_KEY": "key"} if secrets is None else secrets
    return Launch(
        parse(spec), folder / "home", folder / "private", folder / "tree", folder / "prompt.md", known, **more
    )


def _settings(launch: Launch) -> Any:
    ((path, text),) = GEMINI.call(launch).files.items()
    assert path == launch.home / ".gemini" / "settings.json"
    return json.loads(text)


def test_fresh_call_approves_all_and_names_no_prompt() -> None:
    launch = _launch(Path("/a"))

    call = GEMINI.call(launch)

    assert call.argv == ARGV
    assert call.env == {
        "GEMINI_API_KEY": "key",
        "GEMINI_CLI_NO_RELAUNCH": "true",
        "NO_BROWSER": "true",
        "NO_COLOR": "1",
    }
    assert _settings(launch) == {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": 3},
        "privacy": {"usageStatisticsEnabled": False},
        "model": {},
    }


@pytest.mark.parametrize(
    ("spec", "more", "rest"),
    [
        ("gemini:gemini-2.5-flash", {}, ("--model", "gemini-2.5-flash")),
        ("gemini", {"session": SESSION}, ("--resume", SESSION)),
        (
            "gemini",
            {"session": SESSION, "fork": True},
            ("--session-file", "/a/home/.gemini/tmp/orch/chats/session-adopted-2b0250a9.jsonl"),
        ),
    ],
)
def test_call_ends_with_what_is_asked_for(spec: str, more: dict[str, Any], rest: tuple[str, ...]) -> None:
    assert GEMINI.call(_launch(Path("/a"), spec, **more)).argv == ARGV + rest


def test_turn_limit_stands_in_its_settings() -> None:
    assert _settings(_launch(Path("/a"), "gemini,max-turns=7"))["model"] == {"maxSessionTurns": 7}


@pytest.mark.parametrize(
    ("secrets", "how"),
    [
        ({"GEMINI_API_KEY": "key"}, "gemini-api-key"),
        ({"GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_API_KEY": "key"}, "vertex-ai"),
        ({}, "oauth-personal"),
    ],
)
def test_it_logs_in_by_what_there_is(secrets: dict[str, str], how: str) -> None:
    assert _settings(_launch(Path("/a"), secrets=secrets))["security"]["auth"]["selectedType"] == how


def _session(home: Path, tree: str, *lines: dict[str, Any], name: str = "session-1-2b0250a9.jsonl") -> Path:
    record = home / ".gemini" / "tmp" / "tree" / "chats" / name
    record.parent.mkdir(parents=True, exist_ok=True)
    (record.parent.parent / ".project_root").write_text(tree)
    record.write_text("".join(json.dumps(line) + "\n" for line in ({"sessionId": SESSION}, *lines)))
    return record


def _message(name: str, tokens_in: int, cached: int, total: int) -> dict[str, Any]:
    return {"id": name, "type": "gemini", "tokens": {"input": tokens_in, "cached": cached, "total": total}}


def test_adopted_session_lies_in_a_folder_marked_as_the_new_one_and_speaks_of_it(tmp_path: Path) -> None:
    launch = _launch(tmp_path / "new", session=SESSION)
    _session(tmp_path / "old", "/w/old", {"content": [{"text": "see /w/old/a.py"}]})

    assert GEMINI.adopt(launch, tmp_path / "old")

    folder = launch.home / ".gemini" / "tmp" / "orch"
    record = folder / "chats" / "session-adopted-2b0250a9.jsonl"
    assert (folder / ".project_root").read_text() == str(launch.tree)
    assert json.loads(record.read_text().splitlines()[1]) == {"content": [{"text": f"see {launch.tree}/a.py"}]}


def test_other_session_or_link_or_pipe_is_not_adopted(tmp_path: Path) -> None:
    launch, old = _launch(tmp_path / "new", session=SESSION), tmp_path / "old"
    assert not GEMINI.adopt(launch, old)

    record = _session(old, "/w/old")
    assert not GEMINI.adopt(_launch(tmp_path / "new", session=SESSION[:-1] + "0"), old)
    moved = record.rename(tmp_path / "elsewhere")
    record.symlink_to(moved)
    assert not GEMINI.adopt(launch, old)
    record.unlink()
    os.mkfifo(record)
    assert not GEMINI.adopt(launch, old)


def test_record_tells_what_a_killed_run_used_each_message_once(tmp_path: Path) -> None:
    launch = _launch(tmp_path)
    launch.prompt.write_text("do it")
    _session(
        launch.home,
        "/w",
        {"id": "u", "type": "user", "content": "tokens"},
        _message("a", 1200, 200, 1240),
        _message("a", 1200, 200, 1240),
        _message("b", 1300, 1000, 1312),
    )

    assert list(GEMINI.leftovers(launch, "")) == [Recorded(Usage(tokens_in=1300, tokens_cached=1200, tokens_out=52))]


def test_record_of_an_earlier_launch_tells_nothing_of_this_one(tmp_path: Path) -> None:
    launch = _launch(tmp_path)
    record = _session(launch.home, "/w", _message("a", 1200, 200, 1240))
    os.utime(record, (1, 1))
    launch.prompt.write_text("do it")

    assert list(GEMINI.leftovers(launch, "")) == []
