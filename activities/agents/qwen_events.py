"""Qwen Code's `stream-json` events: as Claude Code's, but an API error reads like an answer, and no price is told."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...workflows.model.outcome import OutcomeKind
from ...workflows.model.usage import Usage
from .api_errors import classify, retry_time
from .claude_events import ClaudeTranslator
from .fields import count, mapping, objects, text
from .said import Began, Ended, Failed, Retrying, Said, SessionTotal, Text, Tool, Turn, Used

API_ERROR = "[API Error: "
"""How the text begins that stands for an API error, behind whatever the model had said."""

_REST = re.compile(r"(.*)\](?:\s+Possible quota limitations.*)?\s*", re.DOTALL)
"""What follows; behind a rate limit stands advice."""

_STATUS = re.compile(r"([45]\d\d)\b")
_EMPTY = "ended with empty response"
_NEWS = frozenset({"continue_turn_failed", "session_end", "session_start"})
_EDITORS = frozenset({"edit", "write_file"})
_DETAILS = ("command", "file_path", "path", "pattern", "url", "query", "skill", "description")


class QwenTranslator(ClaudeTranslator):
    """Its messages come in pieces, of which the last has the usage; results count the whole session."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)
        self._asked = False

    def _system(self, kind: str, event: Mapping[str, Any]) -> Iterator[Said]:
        match kind:
            case "init":
                version = text(event.get("qwen_code_version"))
                yield Began(text(event.get("session_id")), text(event.get("model")), version)
            case "retry":  # why is not told
                yield Retrying(OutcomeKind.STREAM_BROKEN, "a request is tried again")
            case _ if kind not in _NEWS:
                yield from super()._system(kind, event)

    def _assistant(self, message: Mapping[str, Any], event: Mapping[str, Any]) -> Iterator[Said]:
        main = not event.get("parent_tool_use_id")
        if main and not self._asked:
            self._asked = True
            yield Turn()
        if usage := usage_of(message.get("usage")):
            yield Used(usage)
        for block in objects(message.get("content")):
            match block.get("type"):
                case "text" if main:
                    yield Text(_parted(text(block.get("text")))[0])
                case "tool_use":
                    yield self._tool(block)

    def _tool(self, block: Mapping[str, Any]) -> Tool:
        name, given = text(block.get("name")), mapping(block.get("input"))
        if name in _EDITORS:
            self._edits[text(block.get("id"))] = text(given.get("file_path"))
        return Tool(name, next((text(given[key]) for key in _DETAILS if text(given.get(key))), ""))

    def _user(self, message: Mapping[str, Any]) -> Iterator[Said]:
        self._asked = False
        yield from super()._user(message)

    def _result(self, event: Mapping[str, Any]) -> Iterator[Said]:
        if usage := usage_of(event.get("usage")):
            yield SessionTotal(usage)
        for denial in objects(event.get("permission_denials")):
            yield from self._denial(denial)
        told = text(mapping(event.get("error")).get("message"))
        said, error = _parted(told or text(event.get("result")))
        if error or told or event.get("is_error") is True:
            error = error or said or text(event.get("subtype"))
            yield Failed(_kind(error), error, retry_time(error, self._clock()))
        else:
            yield Text(said, final=True)
        yield Ended()


def _parted(words: str) -> tuple[str, str]:
    """What the model said, and the API error behind it."""
    said, mark, rest = words.rpartition(API_ERROR)
    error = _REST.fullmatch(rest) if mark else None
    return (said, error[1]) if error else (words, "")


def _kind(error: str) -> OutcomeKind:
    status = _STATUS.match(error)
    return OutcomeKind.EMPTY_ANSWER if _EMPTY in error else classify(error, int(status[1]) if status else None)


def usage_of(given: object) -> Usage | None:
    """Input tokens include cached ones; nothing but zeros stands for unknown."""
    used = mapping(given)
    whole, cached, out = (
        count(used.get(name)) for name in ("input_tokens", "cache_read_input_tokens", "output_tokens")
    )
    if not whole and not out:
        return None
    fresh = None if whole is None else max(0, whole - (cached or 0))
    return Usage(tokens_in=fresh, tokens_cached=cached, tokens_out=out)
