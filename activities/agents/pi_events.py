"""pi's events, in our words: turns, messages and tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...workflows.model.outcome import OutcomeKind
from ...workflows.model.usage import Usage
from .api_errors import classify, retry_time
from .fields import count, mapping, money, objects, seconds, text
from .said import Began, Edited, Ended, Failed, Retrying, Said, Text, Tool, ToolEnded, Turn, Unknown, Used

_SILENT = frozenset(
    """
    agent_start auto_retry_end compaction_end compaction_start message_start message_update queue_update
    tool_execution_update turn_end
    """.split()  # noqa: SIM905 - a list of nine quoted words is harder to read
)
_STATUS = re.compile(r"([45]\d\d) ")
_EDITORS = frozenset({"edit", "write"})


class PiTranslator:
    """Reads the events of one run. Its exit status is 0 whatever happened, so the last message tells."""

    def __init__(self) -> None:
        self._last: Mapping[str, Any] = {}
        self._edits: dict[str, str] = {}  # paths by the id of the tool's call

    def read(self, event: Mapping[str, Any]) -> Iterator[Said]:
        """What one event says."""
        match kind := text(event.get("type")):
            case "session":
                yield Began(session=text(event.get("id")))
            case "turn_start":
                yield Turn()
            case "message_end":
                yield from self._message(mapping(event.get("message")))
            case "tool_execution_start":
                yield from self._tool(event)
            case "tool_execution_end":
                yield from self._tool_ended(event)
            case "auto_retry_start":
                yield _retrying(event)
            case "agent_end":
                yield _ended(self._last)
            case _ if kind not in _SILENT:
                yield Unknown(kind)

    def _message(self, message: Mapping[str, Any]) -> Iterator[Said]:
        if message.get("role") != "assistant":
            return
        self._last = message
        yield Began(model=text(message.get("model")))
        yield Used(_usage(mapping(message.get("usage"))))
        words = "\n".join(text(part.get("text")) for part in objects(message.get("content")) if "text" in part)
        yield Text(words, final=message.get("stopReason") == "stop")

    def _tool(self, event: Mapping[str, Any]) -> Iterator[Said]:
        name, args = text(event.get("toolName")), mapping(event.get("args"))
        path, command = text(args.get("path")), text(args.get("command"))
        if name in _EDITORS:
            self._edits[text(event.get("toolCallId"))] = path
        yield Tool(name, command or path)

    def _tool_ended(self, event: Mapping[str, Any]) -> Iterator[Said]:
        ok, path = event.get("isError") is False, self._edits.pop(text(event.get("toolCallId")), "")
        if ok and path:
            yield Edited(path)
        parts = objects(mapping(event.get("result")).get("content"))
        yield ToolEnded(ok=ok, output="\n".join(text(part.get("text")) for part in parts))


def _ended(message: Mapping[str, Any]) -> Said:
    """The end by the last message; another turn may follow, when it tries again by itself."""
    stop = text(message.get("stopReason"))
    if stop not in {"error", "aborted"}:
        return Ended(stop=stop)
    words = text(message.get("errorMessage")) or stop
    return Failed(_kind(words), words, retry_time(words, seconds(message.get("timestamp")) or 0.0))


def _retrying(event: Mapping[str, Any]) -> Said:
    words = text(event.get("errorMessage"))
    return Retrying(_kind(words), words, seconds(event.get("delayMs")))


def _kind(words: str) -> OutcomeKind:
    """What an error means; most begin with the status."""
    status = _STATUS.match(words)
    return classify(words, int(status[1]) if status else None)


def _usage(tokens: Mapping[str, Any]) -> Usage:
    """Its input tokens leave out those read from and written to a cache; a broken answer has zeros for unknown."""
    fresh, written, cached, out = (count(tokens.get(name)) for name in ("input", "cacheWrite", "cacheRead", "output"))
    if not any((fresh, written, cached, out)):
        return Usage()
    usd = money(mapping(tokens.get("cost")).get("total"))
    return Usage(tokens_in=(fresh or 0) + (written or 0), tokens_cached=cached, tokens_out=out, usd=usd)
