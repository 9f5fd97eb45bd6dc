"""Codex: how it is started, what its records tell, and how a thread moves to another folder."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from orch.activities.agents.adapter import Launch
from orch.activities.agents.codex import CodexAgent
from orch.activities.agents.said import Began, Complained, Recorded
from orch.activities.agents.spec import parse
from orch.workflows.model.outcome import OutcomeKind
from orch.workflows.model.usage import Usage

CODEX = CodexAgent()
ROOT = "01a22863-f853-7cf0-8407-d089d007d40d"
BRANCH = "01a22a41-0285-7e20-9bc9-a73a4f52b2b9"
SERVER = {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}


def _launch(folder: Path, spec: str = "codex", secrets: dict[str, str] | None = None, **more: Any) -> Launch:
    places = (folder / "home", folder / "private", folder / "tree", folder / "prompt.md")
    return Launch(parse(spec), *places, SERVER if secrets is None else secrets, **more)


def _config(launch: Launch) -> dict[str, Any]:
    ((path, text),) = CODEX.call(launch).files.items()
    assert path == launch.home / ".codex" / "config.toml"
    return tomllib.loads(text)


@pytest.mark.parametrize(
    ("spec", "more", "middle"),
    [
        ("codex", {}, ()),
        ("codex", {"session": ROOT}, ("resume", ROOT)),
        ("codex", {"session": ROOT, "fork": True}, ("fork", ROOT)),
    ],
)
def test_call_takes_the_prompt_from_stdin(spec: str, more: dict[str, Any], middle: tuple[str, ...]) -> None:
    call = CODEX.call(_launch(Path("/a"), spec, **more))

    assert call.argv == ("codex", "exec", *middle, "--json", "--skip-git-repo-check", "-")
    assert call.env == {"CODEX_HOME": "/a/home/.codex", "OPENAI_API_KEY": "key"}


def test_program_and_model_are_those_of_the_spec() -> None:
    argv = CODEX.call(_launch(Path("/a"), "codex:gpt-5.5,bin=/opt/codex")).argv

    assert argv == ("/opt/codex", "exec", "--json", "--skip-git-repo-check", "--model", "gpt-5.5", "-")


def test_server_becomes_a_provider_that_gives_up_soon() -> None:
    config = _config(_launch(Path("/a")))

    assert config["model_provider"] == "orch"
    assert config["model_providers"] == {
        "orch": {
            "name": "orch",
            "base_url": "http://127.0.0.1:1/v1",
            "env_key": "OPENAI_API_KEY",
            "wire_api": "responses",
            "request_max_retries": 1,
            "stream_max_retries": 2,
        }
    }


def test_server_may_want_no_key() -> None:
    launch = _launch(Path("/a"), secrets={"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})

    assert "env_key" not in _config(launch)["model_providers"]["orch"]
    assert CODEX.call(launch).env == {"CODEX_HOME": "/a/home/.codex"}


def test_codex_asks_nobody_and_looks_nothing_up() -> None:
    config = _config(_launch(Path("/a"), secrets={}))

    assert "model_provider" not in config
    assert config["approval_policy"] == "never"
    assert config["sandbox_mode"] == "danger-full-access"
    assert not config["check_for_update_on_startup"]
    assert not any(config[part]["enabled"] for part in ("agents", "analytics", "feedback"))
    assert not any(config["features"].values())


def test_its_commands_do_not_see_the_key() -> None:
    assert _config(_launch(Path("/a")))["shell_environment_policy"] == {"exclude": ["CODEX_API_KEY", "OPENAI_API_KEY"]}


def test_settings_of_the_spec_are_its_own() -> None:
    config = _config(_launch(Path("/a"), 'codex,effort=hi"gh,sandbox=workspace-write'))

    assert config["model_reasoning_effort"] == 'hi"gh'
    assert config["sandbox_mode"] == "workspace-write"
    assert config["model_provider"] == "orch"


@pytest.mark.parametrize(
    ("secrets", "key"),
    [
        ({"CODEX_API_KEY": "own", "OPENAI_API_KEY": "other"}, "own"),
        ({"OPENAI_API_KEY": "other"}, "other"),
        ({}, None),
    ],
)
def test_without_a_server_the_key_has_the_name_it_reads(secrets: dict[str, str], key: str | None) -> None:
    env = CODEX.call(_launch(Path("/a"), secrets=secrets)).env

    assert env.get("CODEX_API_KEY") == key
    assert "OPENAI_API_KEY" not in env


def test_login_goes_before_a_key_meant_for_others(tmp_path: Path) -> None:
    launch = _launch(tmp_path, secrets={"OPENAI_API_KEY": "other"})
    (launch.home / ".codex").mkdir(parents=True)
    (launch.home / ".codex" / "auth.json").write_text("{}")

    assert set(CODEX.call(launch).env) == {"CODEX_HOME"}


def test_missing_program_is_named(tmp_path: Path) -> None:
    assert CODEX.missing(parse("codex"), str(tmp_path)) == "codex"
    assert CODEX.missing(parse("codex,bin=/bin/sh"), str(tmp_path)) == ""


def _record(home: Path, session: str, second: int, tokens: int, cwd: str = "/w/old/tree") -> Path:
    """A thread's record, as Codex keeps it."""
    used = {"input_tokens": tokens, "cached_input_tokens": tokens // 2, "output_tokens": 7}
    lines = [
        {"timestamp": "t", "type": "session_meta", "payload": {"id": session, "cwd": cwd}},
        {"timestamp": "t", "type": "turn_context", "payload": {"cwd": cwd, "model": "gpt-5.5"}},
        {"timestamp": "t", "type": "token_usage_record", "payload": {"thread_token_usage": {"input_tokens": 1}}},
        {"timestamp": "t", "type": "token_usage_record", "payload": {"thread_token_usage": used}},
        {"timestamp": "t", "type": "response_item", "payload": {"output": f"in {cwd}/a.py: token_usage_record"}},
    ]
    folder = home / ".codex" / "sessions" / "2026" / "11" / "30"
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / f"rollout-2026-11-30T02-20-{second:02}-{session}.jsonl"
    record.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines) + '{"half')
    return record


def _recorded(launch: Launch) -> list[Usage]:
    return [said.usage for said in CODEX.leftovers(launch, "") if isinstance(said, Recorded)]


@pytest.mark.parametrize(
    ("more", "tokens_in"), [({}, 50), ({"session": ROOT}, 10), ({"session": ROOT, "fork": True}, 50)]
)
def test_stopped_run_is_counted_by_the_record_of_its_thread(
    tmp_path: Path, more: dict[str, Any], tokens_in: int
) -> None:
    launch = _launch(tmp_path, **more)
    _record(launch.home, ROOT, 1, 20)
    _record(launch.home, BRANCH, 2, 100)

    assert Began(model="gpt-5.5") in CODEX.leftovers(launch, "")
    assert _recorded(launch) == [Usage(tokens_in=tokens_in, tokens_cached=tokens_in, tokens_out=7)]


def test_without_a_record_nothing_is_known(tmp_path: Path) -> None:
    assert _recorded(_launch(tmp_path)) == [Usage()]


def test_pipe_in_place_of_a_record_is_not_waited_for(tmp_path: Path) -> None:
    launch = _launch(tmp_path)
    record = _record(launch.home, ROOT, 1, 20)
    record.unlink()
    os.mkfifo(record)

    assert _recorded(launch) == [Usage()]
    assert not CODEX.adopt(_launch(tmp_path / "new", session=ROOT), launch.home)


def test_its_last_word_on_stderr_explains_why_it_did_not_begin() -> None:
    stderr = "WARNING: proceeding\nError: thread/resume failed: no rollout found for thread id 0 (code -32600)\n"

    said = list(CODEX.leftovers(_launch(Path("/nonexistent")), stderr))

    words = "Error: thread/resume failed: no rollout found for thread id 0 (code -32600)"
    assert said[-1] == Complained(OutcomeKind.CRASHED, words)


def test_adopted_branch_brings_its_root_and_speaks_of_the_new_folder(tmp_path: Path) -> None:
    root, branch = (_record(tmp_path / "old", *thread, 20) for thread in ((ROOT, 1), (BRANCH, 2)))
    launch = _launch(tmp_path / "new", session=BRANCH)

    assert CODEX.adopt(launch, tmp_path / "old")

    for record in (root, branch):
        text = (launch.home / record.relative_to(tmp_path / "old")).read_text()
        assert "/w/old/tree" not in text
        assert f"in {launch.tree}/a.py" in text
    assert _recorded(launch) == [Usage(tokens_in=10, tokens_cached=10, tokens_out=7)]


def test_thread_that_is_not_there_is_not_adopted(tmp_path: Path) -> None:
    _record(tmp_path / "old", ROOT, 1, 20)
    launch = _launch(tmp_path / "new", session=BRANCH)

    assert not CODEX.adopt(launch, tmp_path / "old")
    assert not launch.home.exists()
