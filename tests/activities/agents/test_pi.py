"""pi: how it is started, and how a session moves to another folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from orch.activities.agents.adapter import AgentCall, Launch
from orch.activities.agents.pi import PiAgent
from orch.activities.agents.said import Complained
from orch.activities.agents.spec import parse
from orch.workflows.model.outcome import OutcomeKind

PI = PiAgent()
SESSION = "01a22864-6419-75f2-b778-666e764848e3"
SERVER = {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}


def _launch(folder: Path, spec: str = "pi:m", secrets: dict[str, str] | None = None, **more: Any) -> Launch:
    places = (folder / "home", folder / "private", folder / "tree", folder / "prompt.md")
    return Launch(parse(spec), *places, SERVER if secrets is None else secrets, **more)


def _file(call: AgentCall, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(call.files[Path("/a/home/.pi/agent") / name])
    return content


@pytest.mark.parametrize(
    ("more", "last"),
    [
        ({}, ()),
        ({"session": SESSION}, ("--session", SESSION)),
        ({"session": SESSION, "fork": True}, ("--fork", SESSION)),
    ],
)
def test_call_with_a_server(more: dict[str, Any], last: tuple[str, ...]) -> None:
    call = PI.call(_launch(Path("/a"), **more))

    start = ("pi", "-p", "--mode", "json", "--offline", "--provider", "orch", "--model", "m")
    assert call.argv == (*start, *last)
    assert call.env == {
        "OPENAI_API_KEY": "key",
        "PI_CODING_AGENT_DIR": "/a/home/.pi/agent",
        "PI_CODING_AGENT_SESSION_DIR": "/a/home/.pi/agent/sessions",
        "PI_TELEMETRY": "0",
    }


def test_server_becomes_a_provider_of_one_model_without_a_price() -> None:
    assert _file(PI.call(_launch(Path("/a"))), "models.json") == {
        "providers": {
            "orch": {
                "baseUrl": "http://127.0.0.1:1/v1",
                "api": "openai-completions",
                "apiKey": "OPENAI_API_KEY",
                "compat": {"supportsDeveloperRole": False},
                "models": [{"id": "m", "reasoning": False}],
            }
        }
    }


def test_server_may_want_neither_key_nor_model() -> None:
    call = PI.call(_launch(Path("/a"), "pi", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}))

    provider = _file(call, "models.json")["providers"]["orch"]
    assert call.argv[-1] == "default"
    assert (provider["apiKey"], provider["models"][0]["id"]) == ("none", "default")
    assert "OPENAI_API_KEY" not in call.env


def test_it_tries_again_but_twice_by_itself() -> None:
    retry = _file(PI.call(_launch(Path("/a"))), "settings.json")["retry"]

    assert retry == {"maxRetries": 2, "baseDelayMs": 2000, "provider": {"maxRetries": 0}}


def test_without_a_server_it_uses_its_own_providers_with_the_one_key() -> None:
    keys = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}

    call = PI.call(_launch(Path("/a"), "pi:anthropic/claude-sonnet-4-5,effort=low", keys))

    assert call.argv[5:] == ("--model", "anthropic/claude-sonnet-4-5", "--thinking", "low")
    assert call.env["ANTHROPIC_API_KEY"] == "a"
    assert "OPENAI_API_KEY" not in call.env
    assert [path.name for path in call.files] == ["settings.json"]


def test_effort_makes_the_servers_model_one_that_reasons() -> None:
    provider = _file(PI.call(_launch(Path("/a"), "pi:m,effort=high")), "models.json")["providers"]["orch"]

    assert provider["models"] == [{"id": "m", "reasoning": True}]


def test_missing_program_is_named(tmp_path: Path) -> None:
    assert PI.missing(parse("pi"), str(tmp_path)) == "pi"
    assert PI.missing(parse("pi,bin=/bin/sh"), str(tmp_path)) == ""


def test_missing_key_is_told_on_stderr() -> None:
    stderr = "\x1b[31mNo API key found for anthropic.\x1b[39m\n\nUse /login to log into a provider\n"

    (said,) = PI.leftovers(_launch(Path("/a")), stderr)

    assert said == Complained(OutcomeKind.NOT_AUTHORISED, "No API key found for anthropic.")


def _session(home: Path, cwd: str = "/w/old/tree") -> Path:
    session = home / ".pi" / "agent" / "sessions" / f"2026-11-29T17-39-57-612Z_{SESSION}.jsonl"
    session.parent.mkdir(parents=True)
    header = {"type": "session", "version": 3, "id": SESSION, "cwd": cwd}
    call = {"type": "toolCall", "name": "write", "arguments": {"path": f"{cwd}/a.py"}}
    session.write_text("".join(json.dumps(line) + "\n" for line in (header, {"type": "message", "content": [call]})))
    return session


def test_adopted_session_goes_on_in_the_new_folder(tmp_path: Path) -> None:
    session, launch = _session(tmp_path / "old"), _launch(tmp_path / "new", session=SESSION)

    assert PI.adopt(launch, tmp_path / "old")

    header, message = (launch.home / session.relative_to(tmp_path / "old")).read_text().splitlines()
    assert json.loads(header)["cwd"] == str(launch.tree)
    assert json.loads(message)["content"][0]["arguments"] == {"path": f"{launch.tree}/a.py"}


def test_session_that_is_not_there_is_not_adopted(tmp_path: Path) -> None:
    launch = _launch(tmp_path / "new", session=SESSION)
    assert not PI.adopt(launch, tmp_path / "old")

    _session(tmp_path / "old", cwd="")
    assert not PI.adopt(launch, tmp_path / "old")


def test_link_or_pipe_in_place_of_a_session_is_not_adopted(tmp_path: Path) -> None:
    session, launch = _session(tmp_path / "old"), _launch(tmp_path / "new", session=SESSION)
    secret = session.rename(tmp_path / "secret")

    session.symlink_to(secret)
    assert not PI.adopt(launch, tmp_path / "old")
    session.unlink()
    os.mkfifo(session)
    assert not PI.adopt(launch, tmp_path / "old")
