"""A request in one vocabulary, whatever the dialect: what the user said, how far the work is, which tools there are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """Who speaks in a message; what instructs the model is no part of the conversation."""

    USER = "user"
    MODEL = "model"
    TOOL = "tool"


Messages = Iterable[tuple[Role, str]]


@dataclass(frozen=True)
class Tool:
    """A tool that the agent offers.

    Attributes:
        name: its name.
        properties: the JSON schemas of its arguments, by name.
        required: the arguments it must get.
        freeform: whether it takes one text instead of JSON.
        namespace: the group it is declared in; a call must name it, too.
    """

    name: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    freeform: bool = False
    namespace: str = ""


@dataclass(frozen=True)
class Conversation:
    """What a request holds.

    Attributes:
        model: the model that is asked.
        prompts: what the user said, oldest first, without what agents put into users' messages.
        rounds: how often tools came back since the last prompt; tools that ran at once are one round.
        results: what the tools of the whole conversation gave back.
        tools: what the model may use; none in requests for a title and the like.
    """

    model: str
    prompts: tuple[str, ...]
    rounds: int
    results: tuple[str, ...]
    tools: tuple[Tool, ...]


def conversation(model: str, messages: Messages, tools: Iterable[Tool]) -> Conversation:
    """Fold the messages: nothing is remembered between requests, so a resumed agent needs no help."""
    prompts: list[str] = []
    results: list[str] = []
    rounds, before = 0, Role.MODEL
    for role, text in messages:
        if role is Role.TOOL:
            results.append(text)
            rounds += before is not Role.TOOL
        elif role is Role.USER and (typed := _typed(text)):
            prompts.append(typed)
            rounds = 0
        before = role
    return Conversation(model, tuple(prompts), rounds, tuple(results), tuple(tools))


_INJECTED = re.compile(r"<(system-reminder|environment_context|user_instructions|turn_aborted)>.*?</\1>", re.DOTALL)


def _typed(text: str) -> str:
    """What the user typed of a message; agents add facts of the host and the project's own instructions."""
    rest = _INJECTED.sub("", text).strip()
    return "" if rest.startswith("# AGENTS.md") else rest


def words(content: Any) -> str:
    """The text of a content that is a string, a block or a list of blocks; blocks of other kinds have none."""
    match content:
        case str():
            return content
        case {"text": str(text)} | {"content": str(text)} | {"output": str(text)}:
            return text
        case {"content": list(blocks)} | {"output": list(blocks)} | list(blocks):
            return "\n".join(words(block) for block in blocks)
        case _:
            return ""


def declared(name: str, schema: Mapping[str, Any] | None) -> Tool:
    """A tool that takes JSON, by its schema."""
    schema = schema or {}
    return Tool(name, schema.get("properties") or {}, tuple(schema.get("required") or ()))
