"""Claude Code's `stream-json` events, in our words.

What its versions count differs. Until 2.1.276 a result counts this run, until 2.1.308 the whole session, runs before
this one included; from 2.1.309 on there is a count since the last result as well. (One run has several results when
something wakes it up again.) The counts per model are taken, not the sum beside them: only they have the sub-agents,
and only they fit the money.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...workflows.model.outcome import OutcomeKind
from ...workflows.model.usage import Usage
from .api_errors import classify, retry_time
from .fields import count, mapping, money, objects, text
from .said import (
    Began,
    Denied,
    Edited,
    Ended,
    Failed,
    Retrying,
    Said,
    SessionTotal,
    Text,
    Tool,
    ToolEnded,
    Total,
    Turn,
    Unknown,
    Used,
)

COUNTS_SESSION = (2, 1, 277)
"""The first version whose results count the whole session."""

SYNTHETIC = "<synthetic>"
"""The model of messages that Claude Code itself makes up, such as API errors."""

_BY_END = {
    "error_max_turns": OutcomeKind.TURN_LIMIT,
    "error_max_budget_usd": OutcomeKind.BUDGET_LIMIT,
    "prompt_too_long": OutcomeKind.CONTEXT_FULL,
    "refusal": OutcomeKind.REFUSED,
}
"""Failures told by a result's subtype, its terminal reason or the model's stop reason; others by their words."""

_NEWS = frozenset(
    """
    agents_killed background_tasks_changed commands_changed compact_boundary files_persisted hook_progress hook_response
    hook_started informational instruction_size_warning local_command_output memory_recall memory_saved mirror_error
    model_consent_fallback model_fallback model_refusal_fallback model_refusal_no_fallback notification
    per_turn_effort_changed permission_retry plugin_install post_turn_summary session_metadata session_state_changed
    session_title_changed status stop_hook_summary task_notification task_progress task_started task_summary
    task_updated thinking_tokens turn_duration turn_starting vcs_state_changed worker_shutting_down
    """.split()  # noqa: SIM905 - a list of forty quoted words is harder to read
)
"""System events that say nothing we have a word for."""

_SILENT = frozenset({"auth_status", "prompt_suggestion", "tool_progress", "tool_use_summary"})

_TOKENS = ("tokens_in", "tokens_out", "tokens_cached")
_NOTHING = Usage(tokens_in=0, tokens_out=0, tokens_cached=0)

_FAR = 1 << 40
"""Seconds beyond any time that is meant."""

_DETAILS = ("command", "file_path", "notebook_path", "path", "pattern", "url", "query", "skill", "description")


class ClaudeTranslator:
    """Reads the events of one run.

    Args:
        clock: Unix time, for reset times that are told as spans.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._version: tuple[int, ...] = ()
        self._messages: dict[str, Usage] = {}  # by id, as far as counted
        self._current = ""  # the message that streams
        self._edits: dict[str, str] = {}  # paths by the id of the tool's use
        self._denied: set[str] = set()
        self._since = Usage()  # the sum of results that count since the last one
        self._resets: float | None = None

    def read(self, event: Mapping[str, Any]) -> Iterator[Said]:
        """What one event says."""
        match kind := text(event.get("type")):
            case "system":
                yield from self._system(text(event.get("subtype")), event)
            case "stream_event":
                yield from self._streamed(mapping(event.get("event")), event)
            case "assistant":
                yield from self._assistant(mapping(event.get("message")), event)
            case "user":
                yield from self._user(mapping(event.get("message")))
            case "rate_limit_event":
                self._resets = _reset(mapping(event.get("rate_limit_info")))
            case "result":
                yield from self._result(event)
            case _ if kind not in _SILENT:
                yield Unknown(kind)

    def _system(self, kind: str, event: Mapping[str, Any]) -> Iterator[Said]:
        match kind:
            case "init":
                version = text(event.get("claude_code_version"))[:20]
                self._version = tuple(int(part) for part in version.split(".") if part.isdecimal())
                yield Began(text(event.get("session_id")), text(event.get("model")), version)
            case "api_retry":
                yield _retrying(event)
            case "permission_denied":
                yield from self._denial(event)
            case _ if kind not in _NEWS:
                yield Unknown(f"system {kind}")

    def _streamed(self, event: Mapping[str, Any], around: Mapping[str, Any]) -> Iterator[Said]:
        """A message begins, or its last count is there; the rest comes whole in `assistant`."""
        match event.get("type"):
            case "message_start":
                message = mapping(event.get("message"))
                self._current = text(message.get("id"))
                yield from self._used(self._current, message.get("usage"), around)
            case "message_delta":
                yield from self._used(self._current, event.get("usage"), around)

    def _assistant(self, message: Mapping[str, Any], event: Mapping[str, Any]) -> Iterator[Said]:
        if message.get("model") == SYNTHETIC:
            return
        yield from self._used(text(message.get("id")), message.get("usage"), event)
        for block in objects(message.get("content")):
            match block.get("type"):
                case "text" if _is_main(event):
                    yield Text(text(block.get("text")))
                case "tool_use" | "server_tool_use":
                    yield self._tool(block)

    def _tool(self, block: Mapping[str, Any]) -> Tool:
        name, given = text(block.get("name")), mapping(block.get("input"))
        if name in {"Edit", "MultiEdit", "NotebookEdit", "Write"}:
            self._edits[text(block.get("id"))] = text(given.get("file_path")) or text(given.get("notebook_path"))
        return Tool(name, next((text(given[key]) for key in _DETAILS if text(given.get(key))), ""))

    def _user(self, message: Mapping[str, Any]) -> Iterator[Said]:
        for block in objects(message.get("content")):
            if block.get("type") == "tool_result":
                ok = block.get("is_error") is not True
                path = self._edits.pop(text(block.get("tool_use_id")), "")
                if ok and path:
                    yield Edited(path)
                yield ToolEnded(ok, _plain(block.get("content")))

    def _used(self, message: str, usage: object, event: Mapping[str, Any]) -> Iterator[Said]:
        """What a message used more than when it was counted last; the first time it is another request."""
        if not message:
            return
        if message not in self._messages and _is_main(event):
            yield Turn()
        before, now = self._messages.get(message, _NOTHING), _counted(mapping(usage))
        more = {name: max(0, getattr(now, name) - getattr(before, name)) for name in _TOKENS}
        if any(more.values()):
            yield Used(Usage.model_validate(more))
        self._messages[message] = before + Usage.model_validate(more)

    def _denial(self, event: Mapping[str, Any]) -> Iterator[Said]:
        use = text(event.get("tool_use_id"))
        if use not in self._denied:
            self._denied.add(use)
            yield Denied(text(event.get("tool_name")))

    def _result(self, event: Mapping[str, Any]) -> Iterator[Said]:
        yield self._total(event)
        for denial in objects(event.get("permission_denials")):
            yield from self._denial(denial)
        kind, words = _failure(event)
        if kind is None:
            yield Text(words, final=True)
        else:
            at = retry_time(words, self._clock()) or (self._resets if kind is OutcomeKind.RATE_LIMITED else None)
            yield Failed(kind, words, at)
        yield Ended(text(event.get("stop_reason")) or text(event.get("terminal_reason")))

    def _total(self, event: Mapping[str, Any]) -> Said:
        since = event.get("model_usage_since_last_result")
        if isinstance(since, dict):
            self._since = self._since + _summed(since)
            return Total(self._since)
        whole = _summed(mapping(event.get("modelUsage")))
        return SessionTotal(whole) if self._version >= COUNTS_SESSION else Total(whole)


def _is_main(event: Mapping[str, Any]) -> bool:
    """Whether the main agent is meant, not one of its helpers."""
    return not event.get("parent_tool_use_id")


def _reset(info: Mapping[str, Any]) -> float | None:
    """When the limit of a subscription is reset, in Unix time, if it is used up."""
    at = count(info.get("resetsAt"))
    return float(at) if info.get("status") == "rejected" and at is not None and at < _FAR else None


def _retrying(event: Mapping[str, Any]) -> Retrying:
    status, words = count(event.get("error_status")), text(event.get("error"))
    kind = OutcomeKind.STREAM_BROKEN if status is None and words == "unknown" else classify(words, status)
    told = f"{words} {status or ''}".strip()
    tries = f"{event.get('attempt')} of {event.get('max_retries')}"
    delay = event.get("retry_delay_ms")
    return Retrying(kind, f"{told}, retry {tries}", delay / 1000 if isinstance(delay, int | float) else None)


def _failure(event: Mapping[str, Any]) -> tuple[OutcomeKind | None, str]:
    """As what a result failed, None when it did not; and its words. An API error calls itself a success."""
    subtype, errors = text(event.get("subtype")), event.get("errors")
    listed = "; ".join(filter(None, map(text, errors))) if isinstance(errors, list) else ""
    words = text(event.get("result")) or listed
    ends = (subtype, event.get("terminal_reason"), event.get("stop_reason"))
    if kind := next((_BY_END[end] for end in ends if isinstance(end, str) and end in _BY_END), None):
        return kind, words or subtype
    if event.get("is_error") is not True and subtype == "success":
        return None, words
    return classify(words, count(event.get("api_error_status"))), words or subtype


def _counted(usage: Mapping[str, Any]) -> Usage:
    """What one message used; writing the cache counts as input."""
    return Usage(
        tokens_in=(count(usage.get("input_tokens")) or 0) + (count(usage.get("cache_creation_input_tokens")) or 0),
        tokens_out=count(usage.get("output_tokens")) or 0,
        tokens_cached=count(usage.get("cache_read_input_tokens")) or 0,
    )


def _summed(models: Mapping[str, Any]) -> Usage:
    """What all models used together."""
    total = Usage(tokens_in=0, tokens_out=0, tokens_cached=0, usd=None if models else 0.0)
    for used in map(mapping, models.values()):
        total = total + Usage(
            tokens_in=(count(used.get("inputTokens")) or 0) + (count(used.get("cacheCreationInputTokens")) or 0),
            tokens_out=count(used.get("outputTokens")),
            tokens_cached=count(used.get("cacheReadInputTokens")),
            usd=money(used.get("costUSD")),
        )
    return total


def _plain(content: object) -> str:
    """A tool's output as text."""
    return content if isinstance(content, str) else "\n".join(text(block.get("text")) for block in objects(content))
