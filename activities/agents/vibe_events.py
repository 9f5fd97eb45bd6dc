"""Mistral Vibe's events, in our words: messages, and effects that are told when they are over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .fields import mapping, objects, text
from .said import Began, Denied, Edited, Said, Text, Tool, ToolEnded, Unknown

_SILENT = frozenset({"callback", "checkpoint", "notice", "reasoning"})
_WRITES = frozenset({"file_edit", "file_write"})
_DETAILS = ("command", "filePath", "path", "pattern", "url", "query", "prompt", "name")


class VibeTranslator:
    """Reads the events of one run; what it used is told by none."""

    def read(self, event: Mapping[str, Any]) -> Iterator[Said]:
        """What one event says."""
        match kind := text(event.get("type")):
            case "message" if event.get("role") == "assistant":
                if mapping(event.get("outcome")).get("type") != "discarded":
                    yield Text("\n\n".join(text(part.get("text")) for part in objects(event.get("content"))))
            case "message":
                yield Began(session=text(event.get("sessionId")))
            case "effect":
                yield from _effect(mapping(event.get("detail")), mapping(event.get("state")))
            case _ if kind not in _SILENT:
                yield Unknown(kind)


def _effect(detail: Mapping[str, Any], state: Mapping[str, Any]) -> Iterator[Said]:
    """A tool with what came of it, told at once when it is over."""
    name, given, output = text(detail.get("toolName")), mapping(detail.get("input")), mapping(state.get("output"))
    yield Tool(name, next((text(given[key]) for key in _DETAILS if text(given.get(key))), ""))
    ok = state.get("status") == "completed" and mapping(state.get("display")).get("success") is not False
    if state.get("decision") == "skip":
        yield Denied(name)
    elif ok and detail.get("kind") in _WRITES:
        yield Edited(text(output.get("filePath")) or text(given.get("filePath")))
    words = text(mapping(state.get("error")).get("message")) or text(state.get("reason"))
    yield ToolEnded(ok, words or text(state.get("outputText")) or text(output.get("output")))
