"""opencode's events, in our words: steps, tools and errors; that it tries again it tells nobody."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...workflows.model.outcome import OutcomeKind
from ...workflows.model.usage import Usage
from .api_errors import classify, retry_time
from .fields import count, mapping, money, seconds, text
from .said import Began, Denied, Edited, Ended, Failed, Said, Text, Tool, ToolEnded, Turn, Unknown, Used

_KINDS = {
    "ContentFilterError": OutcomeKind.REFUSED,
    "ContextOverflowError": OutcomeKind.CONTEXT_FULL,
    "MessageOutputLengthError": OutcomeKind.CONTEXT_FULL,
    "ProviderAuthError": OutcomeKind.NOT_AUTHORISED,
}
_DENIED = re.compile(r"rejected permission|rule which prevents")


class OpencodeTranslator:
    """Reads the events of one run. Counts a model request for each step, and for each error without one.

    When the context is full it sums up and tries again, in the worst case for ever. Until it has summed up, its steps
    are no progress, so the failure stands.
    """

    def __init__(self) -> None:
        self._session = ""
        self._open = self._spoke = False
        self._full: Failed | None = None

    def read(self, event: Mapping[str, Any]) -> Iterator[Said]:
        """What one event says."""
        if (session := text(event.get("sessionID"))) != self._session:
            self._session = session
            yield Began(session=session)
        part = mapping(event.get("part"))
        match kind := text(event.get("type")):
            case "step_start":
                yield from self._step()
            case "text":
                yield from self._text(part)
            case "tool_use":
                yield from _tool(text(part.get("tool")), mapping(part.get("state")))
            case "step_finish":
                yield Used(_usage(part))
                yield from self._finished(text(part.get("reason")))
            case "error":
                yield from self._error(event)
            case "reasoning":
                pass
            case _:
                yield Unknown(kind)

    def _step(self) -> Iterator[Said]:
        self._open, self._spoke = True, False
        yield Turn()
        if self._full:
            yield self._full

    def _text(self, part: Mapping[str, Any]) -> Iterator[Said]:
        if part.get("synthetic"):
            self._full = None  # it has summed up, and goes on
        elif not self._full:
            self._spoke = True
            yield Text(text(part.get("text")))

    def _finished(self, reason: str) -> Iterator[Said]:
        self._open = reason == "content-filter"  # the error that follows is of the same request
        if reason != "tool-calls" and not self._full:
            if not self._spoke:
                yield Text("", final=True)
            yield Ended(stop=reason)

    def _error(self, event: Mapping[str, Any]) -> Iterator[Said]:
        if not self._open:
            yield Turn()
        self._open = False
        failed = _failed(mapping(event.get("error")), seconds(event.get("timestamp")) or 0.0)
        self._full = failed if failed.kind is OutcomeKind.CONTEXT_FULL else None
        yield failed


def _failed(error: Mapping[str, Any], now: float) -> Failed:
    data, name = mapping(error.get("data")), text(error.get("name"))
    words, headers = text(data.get("message")) or name, mapping(data.get("responseHeaders"))
    kind = _KINDS.get(name) or classify(f"{words} {text(data.get('responseBody'))}", count(data.get("statusCode")))
    if kind is OutcomeKind.CRASHED and data.get("isRetryable") is True:
        kind = OutcomeKind.STREAM_BROKEN  # such as a server that cannot be reached
    after = f"{words} retry-after: {text(headers.get('retry-after'))}"
    return Failed(kind, words, retry_time(after, now))


def _tool(name: str, state: Mapping[str, Any]) -> Iterator[Said]:
    """A tool that has come back; there is no event when it is called."""
    given, meta, error = mapping(state.get("input")), mapping(state.get("metadata")), text(state.get("error"))
    path = text(given.get("filePath"))
    yield Tool(name, text(given.get("command")) or path)
    ok = state.get("status") == "completed" and not meta.get("exit")
    if _DENIED.search(error):
        yield Denied(name)
    if ok and path and name in {"edit", "write"}:
        yield Edited(path)
    yield ToolEnded(ok=ok, output=error or text(state.get("output")))


def _usage(part: Mapping[str, Any]) -> Usage:
    """Its input tokens leave out those read from and written to a cache; reasoning is apart from the output."""
    tokens = mapping(part.get("tokens"))
    cache = mapping(tokens.get("cache"))
    given = [count(value) for value in (tokens.get("input"), cache.get("write"))]
    made = [count(value) for value in (tokens.get("output"), tokens.get("reasoning"))]
    return Usage(
        tokens_in=_sum(given),
        tokens_cached=count(cache.get("read")),
        tokens_out=_sum(made),
        usd=money(part.get("cost")),
    )


def _sum(counts: list[int | None]) -> int | None:
    known = [one for one in counts if one is not None]
    return sum(known) if known else None
