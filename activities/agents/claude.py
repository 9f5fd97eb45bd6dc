"""Claude Code by `claude -p`: how it is started, unattended, and where it keeps its sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from .adapter import AgentCall, Launch, OnPath, Traits, Translator
from .api_errors import classify
from .claude_events import ClaudeTranslator
from .fields import complaint, loaded, text
from .relocation import head, relocate
from .said import Complained, Said

ALLOWED = ("Bash", "Edit", "NotebookEdit", "Read", "Skill", "WebFetch", "WebSearch", "Write")
"""Tools it need not ask for. Nobody would answer, and `orch` fences the whole process; its own way of asking for
nothing (`--dangerously-skip-permissions`) is refused to root."""

DENIED = ("AskUserQuestion", "CronCreate", "EnterWorktree", "ExitWorktree", "ScheduleWakeup")
"""Tools that ask a person, leave the working copy, or put work off until after the end."""

ENVIRONMENT = {
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "2",
    "DISABLE_AUTOUPDATER": "1",
}
"""A command in the background would keep it from ending. Few retries, because `orch` itself waits, and knows its
deadline."""

_LONGEST_NAME = 200

_HEAD = 1 << 20
"""Bytes at the beginning of a record in which its working directory is named."""


class ClaudeAgent(OnPath):
    """Anthropic's Claude Code."""

    name = "claude"
    traits = Traits(
        program="claude",
        oldest=(2, 1, 197),
        forks=True,
        limits=frozenset({"turns", "usd"}),
        prices=True,
        secrets=(
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_CUSTOM_HEADERS",
            "ANTHROPIC_VERTEX_PROJECT_ID",
            "AWS_ACCESS_KEY_ID",
            "AWS_BEARER_TOKEN_BEDROCK",
            "AWS_REGION",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLOUD_ML_REGION",
            "GOOGLE_APPLICATION_CREDENTIALS",
        ),
        login=(".claude/.credentials.json",),
        settings={"effort": "how much the model reasons: low, medium, high, …"},
    )

    def call(self, launch: Launch) -> AgentCall:
        """Begin a session, go on in one, or branch off from one; the prompt comes on stdin.

        Partial messages are asked for, because only they tell at once what each request used, and that the model is
        still thinking.
        """
        spec = launch.spec
        argv = [spec.program(self.traits.program), "-p", "--output-format", "stream-json", "--verbose"]
        argv += ["--include-partial-messages", "--permission-mode", "acceptEdits"]
        argv += ["--allowedTools", ",".join(ALLOWED), "--disallowedTools", ",".join(DENIED)]
        argv += ["--model", spec.argument] if spec.argument else []
        argv += ["--effort", spec.settings["effort"]] if "effort" in spec.settings else []
        if (turns := spec.limit("max-turns")) is not None:
            argv += ["--max-turns", str(max(1, int(turns)))]
        if (dollars := spec.limit("max-usd")) is not None:
            argv += ["--max-budget-usd", f"{dollars:.9f}".rstrip("0").rstrip(".")]
        if launch.session:
            argv += ["--resume", launch.session, *(("--fork-session",) if launch.fork else ())]
        return AgentCall(tuple(argv), {**ENVIRONMENT, "CLAUDE_CONFIG_DIR": str(_home(launch.home)), **launch.secrets})

    def translator(self) -> Translator | None:
        """A reader of `stream-json`."""
        return ClaudeTranslator()

    def leftovers(self, launch: Launch, stderr: str) -> Iterator[Said]:  # noqa: ARG002 - it leaves no file to read
        """Why it could not begin: an unknown session, a bad option."""
        if words := complaint(stderr):
            yield Complained(classify(words), words)

    def adopt(self, launch: Launch, old: Path) -> bool:
        """Bring the session's record to where one of this working copy is looked for."""
        tree = os.path.realpath(launch.tree)
        new = _home(launch.home) / "projects" / _folder_of(tree) / f"{launch.session}.jsonl"
        found = (_home(old) / "projects").glob(f"*/{launch.session}.jsonl")
        return any(relocate(record, new, _cwd(record), tree) for record in found)


def _home(home: Path) -> Path:
    return home / ".claude"


def _cwd(record: Path) -> str:
    """The working directory that a record names first."""
    lines = head(record, _HEAD).splitlines()
    return next((cwd for line in lines if (cwd := text(loaded(line).get("cwd")))), "")


def _folder_of(path: str) -> str:
    """The folder's name for a working directory, as Claude Code makes it: dashes, and a hash when it gets long."""
    units = memoryview(path.encode("utf-16-le", "surrogatepass")).cast("H")
    name = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}-{_hash(units)}"


def _hash(units: memoryview[int]) -> str:
    """A 32-bit signed hash of the text, its absolute value in base 36."""
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    value = abs(value - (1 << 32) if value >> 31 else value)
    digits = ""
    while value:
        value, digit = divmod(value, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits or "0"
