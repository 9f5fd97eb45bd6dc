"""Gemini CLI by `gemini -o stream-json`: how it is started, and where it keeps its sessions."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...workflows.model.usage import Usage
from .adapter import AgentCall, Launch, OnPath, Traits, Translator
from .api_errors import classify
from .fields import loaded, mapping, tail, text
from .gemini_events import GeminiTranslator, usage_of
from .relocation import head, relocate
from .said import Complained, Recorded, Said

ENVIRONMENT = {"GEMINI_CLI_NO_RELAUNCH": "true", "NO_BROWSER": "true", "NO_COLOR": "1"}
"""One process instead of two, of which the outer one keeps signals to itself; and nobody to log in by a browser."""

ATTEMPTS = 3
"""How often it tries a request: few, because `orch` itself waits and knows the deadline."""

RECORD_LIMIT = 64 << 20
"""Bytes at the end of a session's record that are searched for what was used."""

_MARK = ".project_root"
"""In the folder of one project's sessions: the working directory they belong to."""

_HEAD = 64 << 10

_COMPLAINT = re.compile(
    r"^(?:Error|Attempt \d+ failed|An unexpected critical error|.*[Aa]uth method|.*you must specify).*", re.MULTILINE
)


class GeminiAgent(OnPath):
    """Google's Gemini CLI. It tells what it used only at its end; its record of the session helps when it is killed."""

    name = "gemini"
    traits = Traits(
        program="gemini",
        oldest=(0, 61, 0),
        forks=True,
        limits=frozenset({"turns"}),
        secrets=(
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_LOCATION",
            "GOOGLE_CLOUD_PROJECT",
            "GOOGLE_GEMINI_BASE_URL",
            "GOOGLE_GENAI_USE_VERTEXAI",
            "GOOGLE_VERTEX_BASE_URL",
        ),
        login=(".gemini/oauth_creds.json", ".gemini/google_accounts.json"),
        signals=(("TERM", 2.0),),
    )

    def call(self, launch: Launch) -> AgentCall:
        """Begin a session, go on in one, or branch off from the record of one; the prompt comes on stdin."""
        spec = launch.spec
        argv = [spec.program(self.traits.program), "--output-format", "stream-json"]
        argv += ["--approval-mode", "yolo", "--skip-trust"]
        argv += ["--model", spec.argument] if spec.argument else []
        if launch.session and launch.fork:
            argv += ["--session-file", str(_adopted(launch))]
        elif launch.session:
            argv += ["--resume", launch.session]
        settings = launch.home / ".gemini" / "settings.json"
        return AgentCall(tuple(argv), {**ENVIRONMENT, **launch.secrets}, {settings: json.dumps(_settings(launch))})

    def translator(self) -> Translator | None:
        """A reader of `stream-json`."""
        return GeminiTranslator()

    def leftovers(self, launch: Launch, stderr: str) -> Iterator[Said]:
        """What its record says was used, as a killed run tells none; and why it could not begin."""
        if used := _recorded(launch):
            yield Recorded(used)
        if words := _COMPLAINT.findall(stderr):
            yield Complained(classify(words[-1]), words[-1])

    def adopt(self, launch: Launch, old: Path) -> bool:
        """Bring the session's record into a folder that is marked as this working copy's."""
        tree, copy = os.path.realpath(launch.tree), _adopted(launch)
        for record in _records(old, launch.session):
            before = head(record.parent.parent / _MARK, _HEAD).strip()
            if _session(record) == launch.session and relocate(record, copy, before, tree):
                (copy.parent.parent / _MARK).write_text(tree, encoding="utf-8")
                return True
        return False


def _settings(launch: Launch) -> dict[str, Any]:
    """Its settings: how it logs in, few retries, no look at other hosts, the limit it knows."""
    secrets, turns = launch.secrets, launch.spec.limit("max-turns")
    key = "gemini-api-key" if "GEMINI_API_KEY" in secrets else "oauth-personal"
    vertex = secrets.get("GOOGLE_GENAI_USE_VERTEXAI", "").lower() in {"1", "true"}
    return {
        "security": {"auth": {"selectedType": "vertex-ai" if vertex else key}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": ATTEMPTS},
        "privacy": {"usageStatisticsEnabled": False},
        "model": {} if turns is None else {"maxSessionTurns": max(1, int(turns))},
    }


def _adopted(launch: Launch) -> Path:
    """Where the record of a session from elsewhere is kept; the name must begin and end like this to be found."""
    return launch.home / ".gemini" / "tmp" / "orch" / "chats" / f"session-adopted-{launch.session[:8]}.jsonl"


def _records(home: Path, session: str = "") -> list[Path]:
    """The records of a session, or of all, the latest first."""
    found = (home / ".gemini" / "tmp").glob(f"*/chats/session-*{session[:8]}.jsonl")
    return sorted(found, key=_changed, reverse=True)


def _changed(path: Path) -> float:
    return path.lstat().st_mtime if path.exists() else 0.0


def _session(record: Path) -> str:
    """The id that a record's first line names."""
    return text(loaded(head(record, _HEAD).partition("\n")[0]).get("sessionId"))


def _recorded(launch: Launch) -> Usage | None:
    """What the session that this launch wrote used, by its records; a message stands there again with its tools."""
    latest = next(iter(_records(launch.home)), None)
    if latest is None or _changed(latest) < _changed(launch.prompt):
        return None
    messages = {}
    for record in _records(launch.home, latest.stem[-8:]):
        for line in tail(record, RECORD_LIMIT).splitlines():
            if '"tokens"' in line and (message := loaded(line)).get("type") == "gemini":
                messages[text(message.get("id"))] = mapping(message.get("tokens"))
    used = [usage_of(one.get("input"), one.get("cached"), one.get("total")) for one in messages.values()]
    return sum(used[1:], used[0]) if used else None
