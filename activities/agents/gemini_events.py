"""Gemini CLI's `stream-json` events, in our words: messages in pieces, and what was used only at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...workflows.model.outcome import OutcomeKind
from ...workflows.model.usage import Usage
from .api_errors import classify, retry_time
from .fields import count, mapping, text
from .said import (
    Began,
    Edited,
    Ended,
    Failed,
    Said,
    Text,
    Tool,
    ToolEnded,
    Total,
    Turn,
    Unknown,
)

_BY_TYPE = {
    "FatalAuthenticationError": OutcomeKind.NOT_AUTHORISED,
    "FatalTurnLimitedError": OutcomeKind.TURN_LIMIT,
}
_DETAILS = ("command", "file_path", "dir_path", "path", "pattern", "url", "query", "prompt", "name")


def usage_of(given: object, cached: object, total: object) -> Usage:
    """Tokens as they are paid for: `given` counts the cached ones too, and `total` also what the model thought."""
    prompt, known = count(given) or 0, count(cached) or 0
    return Usage(
        tokens_in=max(0, prompt - known),
        tokens_cached=known,
        tokens_out=max(0, (count(total) or 0) - prompt),
    )


class GeminiTranslator:
    """Reads the events of one run. The model is asked again whenever it answers after the user or a tool.

    Args:
        clock: Unix time, for reset times that are told as spans.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._asked = False
        self._pieces: list[str] = []
        self._edits: dict[str, str] = {}
        self._failed = False

    def read(self, event: Mapping[str, Any]) -> Iterator[Said]:
        """What one event says; a message comes in pieces, so it is told when something else follows."""
        kind = text(event.get("type"))
        if kind == "message" and event.get("role") == "assistant":
            yield from self._turn()
            self._pieces.append(text(event.get("content")))
            return
        answer = "".join(self._pieces)
        self._pieces.clear()
        if answer:
            yield Text(answer, final=kind == "result")
        yield from self._other(kind, event)

    def _other(self, kind: str, event: Mapping[str, Any]) -> Iterator[Said]:
        match kind:
            case "init":
                yield Began(text(event.get("session_id")), text(event.get("model")))
            case "message":
                self._asked = True
            case "tool_use":
                yield from self._turn()
                yield self._tool(event)
            case "tool_result":
                self._asked = True
                yield from self._tool_ended(event)
            case "error":
                yield from self._error(event)
            case "result":
                yield from self._result(event)
            case _:
                yield Unknown(kind)

    def _turn(self) -> Iterator[Said]:
        if self._asked:
            self._asked = False
            yield Turn()

    def _tool(self, event: Mapping[str, Any]) -> Tool:
        name, given = text(event.get("tool_name")), mapping(event.get("parameters"))
        if name in {"write_file", "replace"}:
            self._edits[text(event.get("tool_id"))] = text(given.get("file_path"))
        return Tool(name, next((text(given[key]) for key in _DETAILS if text(given.get(key))), ""))

    def _tool_ended(self, event: Mapping[str, Any]) -> Iterator[Said]:
        ok = event.get("status") == "success"
        path = self._edits.pop(text(event.get("tool_id")), "")
        if ok and path:
            yield Edited(path)
        yield ToolEnded(ok, text(event.get("output")) or text(mapping(event.get("error")).get("message")))

    def _error(self, event: Mapping[str, Any]) -> Iterator[Said]:
        """A failure of the answer; a mere warning, such as that it stops a loop, is none."""
        if event.get("severity") == "error":
            self._failed = True
            yield self._failure(text(event.get("message")))

    def _result(self, event: Mapping[str, Any]) -> Iterator[Said]:
        stats, error = mapping(event.get("stats")), mapping(event.get("error"))
        yield Total(usage_of(stats.get("input_tokens"), stats.get("cached"), stats.get("total_tokens")))
        if error or (event.get("status") != "success" and not self._failed):
            yield self._failure(text(error.get("message")), text(error.get("type")))
        yield Ended(text(event.get("status")))

    def _failure(self, words: str, named: str = "") -> Failed:
        return Failed(_BY_TYPE.get(named) or classify(words), words, retry_time(words, self._clock()))
