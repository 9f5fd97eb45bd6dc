"""Codex by `codex exec --json`: how it is started, unattended, and its records of threads."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .adapter import AgentCall, Launch, OnPath, Traits, Translator
from .api_errors import classify
from .codex_events import CodexTranslator, counted
from .fields import complaint, loaded, mapping, tail, text
from .relocation import head, relocate
from .said import Began, Complained, Recorded, Said

CONFIG = """\
approval_policy = "never"
check_for_update_on_startup = false
sandbox_mode = {sandbox}
{more}
[agents] # nobody counts the tokens of its own sub-agents
enabled = false

[analytics]
enabled = false

[feedback]
enabled = false

[features] # without them it looks up no host but the model's, and gives up on one that is gone
apps = false
goals = false
plugins = false
remote_plugin = false
unbounded_connection_retries = false

[shell_environment_policy]
exclude = ["CODEX_API_KEY", "OPENAI_API_KEY"]
"""

PROVIDER = """\
model_provider = "orch"

[model_providers.orch]
name = "orch"
base_url = {url}
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 2
"""
"""Few retries, because `orch` itself waits and knows the deadline."""

RECORD_TAIL = 4 << 20
"""Bytes at the end of a thread's record that are searched for its tokens."""

_ENTRIES = ("token_usage_record", "turn_context")
_HEAD = 1 << 20
"""Bytes at the beginning of a record in which its folder is named."""


class CodexAgent(OnPath):
    """OpenAI's Codex. Its own sandbox is off unless the spec asks for it: `orch` fences the whole process."""

    name = "codex"
    traits = Traits(
        program="codex",
        oldest=(0, 171, 0),
        forks=True,
        secrets=("CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        login=(".codex/auth.json",),
        settings={
            "effort": "how much the model reasons, such as low or high",
            "sandbox": "codex's own sandbox: read-only, workspace-write or danger-full-access",
        },
    )

    def call(self, launch: Launch) -> AgentCall:
        """Begin a thread, go on in one, or branch off from one; settings stand in its own file."""
        spec, home = launch.spec, _home(launch.home)
        thread = ("fork" if launch.fork else "resume", launch.session) if launch.session else ()
        model = ("--model", spec.argument) if spec.argument else ()
        argv = (spec.program(self.traits.program), "exec", *thread, "--json", "--skip-git-repo-check", *model, "-")
        env = {"CODEX_HOME": str(home), **_key(launch)}
        return AgentCall(argv, env, {home / "config.toml": _config(launch)})

    def translator(self) -> Translator | None:
        """A reader of threads, turns and items."""
        return CodexTranslator()

    def leftovers(self, launch: Launch, stderr: str) -> Iterator[Said]:
        """The model and the tokens in its record of the thread, as a stopped run tells none; why it could not begin."""
        record = _record(launch)
        yield Began(model=text(record.get("turn_context", {}).get("model")))
        yield Recorded(counted(mapping(record.get("token_usage_record", {}).get("thread_token_usage"))))
        if words := complaint(stderr):
            yield Complained(classify(words), words)

    def adopt(self, launch: Launch, old: Path) -> bool:
        """Bring the records of all threads, as that of a branch needs its root's."""
        if not _records(old, launch.session):
            return False
        tree = os.path.realpath(launch.tree)
        return all(_adopted(record, launch.home / record.relative_to(old), tree) for record in _records(old))


def _home(home: Path) -> Path:
    return home / ".codex"


def _key(launch: Launch) -> dict[str, str]:
    """The one key it needs. Of itself it reads its own variable alone; a login goes before a key meant for others."""
    key = launch.secrets.get("OPENAI_API_KEY", "")
    if "OPENAI_BASE_URL" in launch.secrets:
        return {"OPENAI_API_KEY": key} if key else {}
    own = launch.secrets.get("CODEX_API_KEY", "")
    own = own or ("" if (_home(launch.home) / "auth.json").exists() else key)
    return {"CODEX_API_KEY": own} if own else {}


def _config(launch: Launch) -> str:
    settings, url = launch.spec.settings, launch.secrets.get("OPENAI_BASE_URL")
    more = f"model_reasoning_effort = {json.dumps(settings['effort'])}\n" if "effort" in settings else ""
    more += PROVIDER.format(url=json.dumps(url)) if url else ""
    more += 'env_key = "OPENAI_API_KEY"\n' if url and launch.secrets.get("OPENAI_API_KEY") else ""
    return CONFIG.format(sandbox=json.dumps(settings.get("sandbox", "danger-full-access")), more=more)


def _adopted(record: Path, copy: Path, tree: str) -> bool:
    meta = mapping(loaded(head(record, _HEAD).partition("\n")[0]).get("payload"))
    return relocate(record, copy, text(meta.get("cwd")), tree)


def _records(home: Path, session: str = "") -> list[Path]:
    """Its record of that thread, or those of all threads by age; the names begin with the time."""
    found = (_home(home) / "sessions").glob(f"*/*/*/rollout-*{session}.jsonl")
    return sorted((path for path in found if not path.is_symlink()), key=lambda path: path.name)


def _record(launch: Launch) -> dict[str, Mapping[str, Any]]:
    """The last entry of each kind in the thread's record; a new thread's record is the newest."""
    records = _records(launch.home, "" if launch.fork else launch.session)
    lines = tail(records[-1], RECORD_TAIL).splitlines() if records else []
    entries = (loaded(line) for line in lines if any(kind in line[:200] for kind in _ENTRIES))
    return {text(entry.get("type")): mapping(entry.get("payload")) for entry in entries}
