"""opencode: how it is started, and how a session moves to another folder."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from orch.activities.agents.adapter import Launch
from orch.activities.agents.opencode import OpencodeAgent
from orch.activities.agents.said import Complained
from orch.activities.agents.spec import parse
from orch.workflows.model.outcome import OutcomeKind

OPENCODE = OpencodeAgent()
SESSION = "ses_dd5b14018ffe7eo5KghvfK3iqQ"
SERVER = {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}


def _launch(folder: Path, spec: str = "opencode:m", secrets: dict[str, str] | None = None, **more: Any) -> Launch:
    places = (folder / "home", folder / "private", folder / "tree", folder / "prompt.md")
    return Launch(parse(spec), *places, SERVER if secrets is None else secrets, **more)


def _config(launch: Launch) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(OPENCODE.call(launch).env["OPENCODE_CONFIG_CONTENT"])
    return config


@pytest.mark.parametrize(
    ("more", "last"),
    [
        ({}, ()),
        ({"session": SESSION}, ("--session", SESSION)),
        ({"session": SESSION, "fork": True}, ("--session", SESSION, "--fork")),
    ],
)
def test_call_with_a_server(more: dict[str, Any], last: tuple[str, ...]) -> None:
    call = OPENCODE.call(_launch(Path("/a"), **more))

    start = ("opencode", "run", "--format", "json", "--pure", "--title", "orch", "--model", "orch/m")
    assert call.argv == (*start, *last)
    assert {name: value for name, value in call.env.items() if name.startswith(("XDG", "OPENAI"))} == {
        "OPENAI_API_KEY": "key",
        "XDG_CACHE_HOME": "/a/home/.cache",
        "XDG_CONFIG_HOME": "/a/home/.config",
        "XDG_DATA_HOME": "/a/home/.local/share",
        "XDG_STATE_HOME": "/a/home/.local/state",
    }


def test_server_becomes_a_provider_of_one_model_without_a_price() -> None:
    config = _config(_launch(Path("/a")))

    assert config["provider"]["orch"]["options"] == {
        "baseURL": "http://127.0.0.1:1/v1",
        "apiKey": "{env:OPENAI_API_KEY}",
    }
    assert config["provider"]["orch"]["npm"] == "@ai-sdk/openai-compatible"
    assert config["provider"]["orch"]["models"] == {"m": {}}
    assert (config["small_model"], config["enabled_providers"]) == ("orch/m", ["orch"])


def test_server_may_want_neither_key_nor_model() -> None:
    launch = _launch(Path("/a"), "opencode", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})

    assert OPENCODE.call(launch).argv[-1] == "orch/default"
    assert _config(launch)["provider"]["orch"]["options"]["apiKey"] == "none"


def test_nothing_is_asked_shared_or_fetched() -> None:
    call, config = OPENCODE.call(_launch(Path("/a"))), _config(_launch(Path("/a")))

    assert "ask" not in config["permission"].values()
    assert {name for name, may in config["permission"].items() if may == "deny"} == {
        "plan_enter",
        "plan_exit",
        "question",
        "task",
    }
    assert (config["autoupdate"], config["share"], config["snapshot"]) == (False, "disabled", False)
    assert {name for name, value in call.env.items() if value == "1"} == {
        "OPENCODE_DISABLE_AUTOUPDATE",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS",
        "OPENCODE_DISABLE_LSP_DOWNLOAD",
        "OPENCODE_DISABLE_MODELS_FETCH",
    }
    assert {str(path) for path in call.files} == {
        "/a/home/.config/opencode/node_modules/.keep",
        "/a/home/.config/opencode/package-lock.json",
    }


def test_without_a_server_it_uses_its_own_providers_with_the_one_key() -> None:
    keys = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}
    launch = _launch(Path("/a"), "opencode:anthropic/claude-sonnet-4-5,effort=high", keys)

    call = OPENCODE.call(launch)

    assert call.argv[7:] == ("--model", "anthropic/claude-sonnet-4-5", "--variant", "high")
    assert call.env["ANTHROPIC_API_KEY"] == "a"
    assert "OPENAI_API_KEY" not in call.env
    assert "provider" not in _config(launch)


def test_missing_program_is_named(tmp_path: Path) -> None:
    assert OPENCODE.missing(parse("opencode"), str(tmp_path)) == "opencode"
    assert OPENCODE.missing(parse("opencode,bin=/bin/sh"), str(tmp_path)) == ""


def test_unknown_session_is_told_on_stderr() -> None:
    (said,) = OPENCODE.leftovers(_launch(Path("/a")), "\x1b[91m\x1b[1mError: \x1b[0mSession not found\n")

    assert said == Complained(OutcomeKind.CRASHED, "Error: Session not found")


def _database(home: Path) -> Path:
    return home / ".local" / "share" / "opencode" / "opencode.db"


def _fill(home: Path, directory: str = "/w/old/tree") -> sqlite3.Connection:
    """A database with one session, as opencode keeps it; what was written last stands only in its journal."""
    _database(home).parent.mkdir(parents=True)
    database = sqlite3.connect(_database(home))
    database.executescript(
        """
        PRAGMA journal_mode = wal;
        CREATE TABLE session (id TEXT PRIMARY KEY, directory TEXT NOT NULL);
        CREATE TABLE message (id TEXT, session_id TEXT, data TEXT);
        CREATE TABLE part (id TEXT, session_id TEXT, data TEXT);
        """
    )
    database.execute("INSERT INTO session VALUES (?, ?)", (SESSION, directory))
    database.execute("INSERT INTO message VALUES ('m', ?, ?)", (SESSION, json.dumps({"path": {"cwd": directory}})))
    spoken = {"filePath": f"{directory}/a.py", "output": f"{directory}2 {directory}"}
    database.execute("INSERT INTO part VALUES ('p', ?, ?)", (SESSION, json.dumps(spoken)))
    database.commit()
    return database


def test_adopted_session_goes_on_in_the_new_folder(tmp_path: Path) -> None:
    launch = _launch(tmp_path / "new", session=SESSION)

    with closing(_fill(tmp_path / "old")):
        assert OPENCODE.adopt(launch, tmp_path / "old")

    tree = str(launch.tree)
    with closing(sqlite3.connect(_database(launch.home))) as database:
        assert database.execute("SELECT directory FROM session").fetchall() == [(tree,)]
        ((message,),) = database.execute("SELECT data FROM message").fetchall()
        ((part,),) = database.execute("SELECT data FROM part").fetchall()
    assert json.loads(message) == {"path": {"cwd": tree}}
    assert json.loads(part) == {"filePath": f"{tree}/a.py", "output": f"/w/old/tree2 {tree}"}


@pytest.mark.parametrize("directory", ["", "/w/old/tree"])
def test_session_that_is_not_there_is_not_adopted(tmp_path: Path, directory: str) -> None:
    other = SESSION if not directory else "ses_000000000000000000000000"
    launch = _launch(tmp_path / "new", session=other)

    assert not OPENCODE.adopt(launch, tmp_path / "old")
    _fill(tmp_path / "old", directory).close()
    assert not OPENCODE.adopt(launch, tmp_path / "old")
    assert not _database(launch.home).exists()


def test_what_is_no_database_is_not_adopted(tmp_path: Path) -> None:
    launch = _launch(tmp_path / "new", session=SESSION)
    theirs = _database(tmp_path / "old")
    theirs.parent.mkdir(parents=True)
    theirs.write_text("no database")

    assert not OPENCODE.adopt(launch, tmp_path / "old")
    assert not _database(launch.home).exists()

    theirs.unlink()
    _fill(tmp_path / "other").close()
    theirs.symlink_to(_database(tmp_path / "other"))
    assert not OPENCODE.adopt(launch, tmp_path / "old")
