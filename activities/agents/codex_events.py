"""Codex's events, in our words: threads, turns and items."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...workflows.model.usage import Usage
from .api_errors import classify, retry_time
from .fields import count, mapping, objects, text
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
    Turn,
    Unknown,
)

_CUT = re.compile(r"Incomplete response returned, reason: (max_output_tokens)")
_TOOLS = frozenset({"collab_tool_call", "command_execution", "file_change", "mcp_tool_call"})
_SILENT = frozenset({"reasoning", "web_search"})


class CodexTranslator:
    """Reads the events of one run.

    No event tells of a model request. One is counted when a turn starts, and at the first sign of life after a tool
    came back. That is exact but for tools called side by side (each counts) and tools that do not exist (unseen).

    Args:
        clock: Unix time, for reset times that are told as spans.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._came_back = False
        self._words = ""  # since the last tool

    def read(self, event: Mapping[str, Any]) -> Iterator[Said]:
        """What one event says."""
        match kind := text(event.get("type")):
            case "thread.started":
                yield Began(session=text(event.get("thread_id")))
            case "turn.started":
                yield Turn()
            case "item.started" | "item.updated" | "item.completed":
                yield from self._item(kind, mapping(event.get("item")))
            case "turn.completed":
                yield SessionTotal(counted(mapping(event.get("usage"))))
                yield Text(self._words, final=True)
                yield Ended()
            case "turn.failed":
                yield self._failed(text(mapping(event.get("error")).get("message")))
            case "error":
                yield self._error(text(event.get("message")))
            case _:
                yield Unknown(kind)

    def _item(self, event: str, item: Mapping[str, Any]) -> Iterator[Said]:
        kind, completed = text(item.get("type")), event == "item.completed"
        if kind == "error" or (kind == "todo_list" and completed):
            return  # a warning; the plan once more, when the turn ends
        if self._came_back:
            self._came_back = False
            yield Turn()
        match kind:
            case "agent_message":
                yield from self._message(item, completed=completed)
            case "todo_list":
                self._came_back = True
            case _ if kind in _TOOLS:
                self._came_back, self._words = completed, ""
                yield from _tool_ended(kind, item) if completed else _tool(kind, item)
            case _ if kind not in _SILENT:
                yield Unknown(f"item {kind}")

    def _message(self, item: Mapping[str, Any], *, completed: bool) -> Iterator[Said]:
        if completed:
            self._words = text(item.get("text"))
            yield Text(self._words)

    def _error(self, message: str) -> Said:
        """An error on the way: another try of its own, else what the failed turn is going to say, too."""
        tries_again = message.startswith("Reconnecting...")
        return Retrying(classify(message), message) if tries_again else self._failed(message)

    def _failed(self, message: str) -> Said:
        """A turn that failed; for an answer that was cut that is why it stopped."""
        if cut := _CUT.search(message):
            return Ended(stop=cut[1])
        return Failed(classify(message), message, retry_time(message, self._clock()))


def counted(tokens: Mapping[str, Any]) -> Usage:
    """Its tokens as ours: its input includes what was cached."""
    whole, cached = count(tokens.get("input_tokens")), count(tokens.get("cached_input_tokens"))
    fresh = None if whole is None else max(0, whole - (cached or 0))
    return Usage(tokens_in=fresh, tokens_cached=cached, tokens_out=count(tokens.get("output_tokens")))


def _tool(kind: str, item: Mapping[str, Any]) -> Iterator[Said]:
    for detail in _paths(item) or [text(item.get("command"))]:
        yield Tool(text(item.get("tool")) or kind, detail)


def _tool_ended(kind: str, item: Mapping[str, Any]) -> Iterator[Said]:
    status = text(item.get("status"))
    if status == "declined":
        yield Denied(kind)
    if status == "completed":
        yield from map(Edited, _paths(item))
    ok = status == "completed" and not item.get("exit_code")
    yield ToolEnded(ok=ok, output=text(item.get("aggregated_output")))


def _paths(item: Mapping[str, Any]) -> list[str]:
    """The files that a change names."""
    return [text(change.get("path")) for change in objects(item.get("changes"))]
