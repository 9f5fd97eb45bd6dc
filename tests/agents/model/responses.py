"""OpenAI Responses, as Codex speaks it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from .conversation import Conversation, Messages, Role, Tool, conversation, declared, words
from .dialect import Answer, Document, frame, new_id
from .openai_errors import error
from .reply import Stop
from .tools import Call

__all__ = ["document", "error", "read", "stream"]

_ROLES = {"user": Role.USER, "assistant": Role.MODEL}


def read(body: Mapping[str, Any]) -> Conversation:
    """A request to `/v1/responses`."""
    given = body.get("input") or []
    items: list[Document] = [{"role": "user", "content": given}] if isinstance(given, str) else given
    declarations = (body, *(item for item in items if item.get("type") == "additional_tools"))
    tools = itertools.chain.from_iterable(one.get("tools") or () for one in declarations)
    return conversation(str(body.get("model")), _messages(items), _tools(tools))


def _messages(items: Any) -> Messages:
    for item in items:
        kind = item.get("type", "message")
        if kind.endswith("_call_output"):
            yield Role.TOOL, words(item.get("output"))
        elif kind == "message" and item["role"] in _ROLES:
            yield _ROLES[item["role"]], words(item.get("content"))


def _tools(given: Iterable[Mapping[str, Any]], namespace: str = "") -> Iterator[Tool]:
    for tool in given:
        if tool["type"] == "namespace":
            yield from _tools(tool["tools"], tool["name"])
        elif tool["type"] == "custom":
            yield Tool(tool["name"], freeform=True, namespace=namespace)
        else:
            plain = declared(tool.get("name", tool["type"]), tool.get("parameters"))
            yield replace(plain, namespace=namespace)


def document(answer: Answer) -> Document:
    """A response."""
    used = answer.usage
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": answer.model,
        "output": [*_message(answer), *map(_call, answer.calls)],
        "usage": {
            "input_tokens": used.fresh + used.cached,
            "input_tokens_details": {"cached_tokens": used.cached},
            "output_tokens": used.out,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": used.fresh + used.cached + used.out,
        },
    }


def _message(answer: Answer) -> list[Document]:
    content: Document
    if answer.stop is Stop.REFUSAL:
        content = {"type": "refusal", "refusal": "I cannot help with that."}
    elif answer.text:
        content = {"type": "output_text", "text": answer.text, "annotations": []}
    else:
        return []
    item = {"type": "message", "id": new_id("msg"), "role": "assistant", "status": "completed"}
    return [{**item, "content": [content]}]


def _call(call: Call) -> Document:
    item = {"call_id": new_id("call"), "name": call.tool.name, "status": "completed"}
    if call.tool.namespace:
        item["namespace"] = call.tool.namespace
    if call.tool.freeform:
        return {**item, "type": "custom_tool_call", "id": new_id("ctc"), "input": call.arguments}
    return {**item, "type": "function_call", "id": new_id("fc"), "arguments": call.encoded}


def stream(document: Document) -> Iterator[str]:
    """The response as events: created, its items with their words, completed."""
    numbers = itertools.count()

    def event(kind: str, **data: Any) -> str:
        return frame({"type": kind, "sequence_number": next(numbers), **data}, kind)

    yield event("response.created", response={**document, "status": "in_progress", "output": [], "usage": None})
    for index, item in enumerate(document["output"]):
        yield event("response.output_item.added", output_index=index, item={**item, "status": "in_progress"})
        for part, content in enumerate(item.get("content", ())):
            if text := content.get("text"):
                place = {"item_id": item["id"], "output_index": index, "content_index": part}
                yield event("response.output_text.delta", **place, delta=text)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=document)
