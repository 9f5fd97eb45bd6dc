"""Qwen Code by `qwen -o stream-json`: how it is started, and where it keeps its sessions."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from ...workflows.model.outcome import OutcomeKind
from ...workflows.model.usage import Usage
from .adapter import AgentCall, Launch, OnPath, Traits, Translator
from .api_errors import classify
from .fields import complaint, loaded, mapping, tail, text
from .providers import NO_KEY
from .qwen_events import QwenTranslator, usage_of
from .relocation import head, relocate
from .said import Complained, Recorded, Said

SETTINGS = {
    "general": {"enableAutoUpdate": False},
    "model": {"generationConfig": {"maxRetries": 0}},
    "privacy": {"usageStatisticsEnabled": False},
}
"""Few retries, because `orch` itself waits and knows the deadline; it still asks 7 times, in some 80 seconds."""

ENVIRONMENT = {"QWEN_CODE_NO_RELAUNCH": "true", "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1"}
"""Otherwise it starts itself once more as a child, which may outlive a signal (0.24 does so all the same)."""

DENIED = "ask_user_question,cron_create,enter_worktree,exit_worktree,loop_wakeup"
"""Tools that ask a person, leave the working copy, or put work off until after the end."""

RESPONSE, RECORD_LIMIT = '"qwen-code.api_response"', 64 << 20
"""Marks a line about a response in a session's record, of which so many bytes at its end are searched."""

_RECORDED = {
    "input_tokens": "input_token_count",
    "cache_read_input_tokens": "cached_content_token_count",
    "output_tokens": "output_token_count",
}
_HEAD = 8 << 20
_TURNS = "Reached max session turns"


class QwenAgent(OnPath):
    """Alibaba's Qwen Code, with any server that speaks OpenAI's chat completions."""

    name = "qwen"
    traits = Traits(
        program="qwen",
        oldest=(0, 15, 10),
        limits=frozenset({"turns"}),
        secrets=("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"),
        signals=(("TERM", 2.0),),
    )

    def call(self, launch: Launch) -> AgentCall:
        """Begin a session, or go on in one; the prompt comes on stdin."""
        spec = launch.spec
        argv = [spec.program(self.traits.program), "--auth-type", "openai", "--approval-mode", "yolo"]
        argv += ["--output-format", "stream-json", "--exclude-tools", DENIED]
        argv += ["--model", spec.argument] if spec.argument else []
        if (turns := spec.limit("max-turns")) is not None:
            argv += ["--max-session-turns", str(max(1, int(turns)))]
        argv += ["--resume", launch.session] if launch.session else []
        key = {"OPENAI_API_KEY": NO_KEY} if launch.secrets.get("OPENAI_BASE_URL") else {}
        files = {_home(launch.home) / "settings.json": json.dumps(SETTINGS)}
        return AgentCall(tuple(argv), {**ENVIRONMENT, **key, **launch.secrets}, files)

    def translator(self) -> Translator | None:
        """A reader of `stream-json`."""
        return QwenTranslator()

    def leftovers(self, launch: Launch, stderr: str) -> Iterator[Said]:
        """What its record says was used, as a stopped run tells no total; and what it tells on stderr alone."""
        if used := _recorded(launch):
            yield Recorded(used)
        if _TURNS in stderr:
            yield Complained(OutcomeKind.TURN_LIMIT, _TURNS.lower())
        elif words := complaint(stderr):
            yield Complained(classify(words), words)

    def adopt(self, launch: Launch, old: Path) -> bool:
        """Bring the session's record into the folder for this working copy."""
        tree = os.path.realpath(launch.tree)
        new = _projects(launch.home) / _folder_of(tree) / "chats" / f"{launch.session}.jsonl"
        for record in _projects(old).glob(f"*/chats/{launch.session}.jsonl"):
            first, _, _ = head(record, _HEAD).partition("\n")
            if relocate(record, new, text(loaded(first).get("cwd")), tree):
                return True
        return False


def _home(home: Path) -> Path:
    return home / ".qwen"


def _projects(home: Path) -> Path:
    return _home(home) / "projects"


def _folder_of(tree: str) -> str:
    """The folder's name for a working directory, with a dash for each UTF-16 unit that is no letter and no digit."""
    return re.sub(r"[^a-zA-Z0-9]", lambda found: "-" * (len(found[0].encode("utf-16-le", "surrogatepass")) // 2), tree)


def _recorded(launch: Launch) -> Usage | None:
    """What the session that this launch wrote used, by the responses in its record."""
    records = [path for path in _projects(launch.home).glob("*/chats/*.jsonl") if path.is_file()]
    latest = max(records, key=_changed, default=None)
    if latest is None or _changed(latest) < _changed(launch.prompt):
        return None
    total: Usage | None = None
    for line in tail(latest, RECORD_LIMIT).splitlines():
        if RESPONSE in line:
            told = mapping(mapping(loaded(line).get("systemPayload")).get("uiEvent"))
            used = usage_of({name: told.get(theirs) for name, theirs in _RECORDED.items()})
            total = total + used if total and used else total or used
    return total


def _changed(path: Path) -> float:
    return path.stat().st_mtime if path.exists() else 0.0
