"""Anthropic Messages, as Claude Code speaks it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .conversation import Conversation, Messages, Role, conversation, declared, words
from .dialect import Answer, Document, frame, new_id
from .reply import Stop, Trouble

_ERRORS = {
    Trouble.RATE_LIMITED: (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
    Trouble.UNAUTHORISED: (401, "authentication_error", "invalid x-api-key"),
    Trouble.QUOTA: (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
    Trouble.CONTEXT_FULL: (400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
    Trouble.OVERLOADED: (529, "overloaded_error", "Overloaded"),
    Trouble.SERVER_ERROR: (500, "api_error", "Internal server error"),
}


def read(body: Mapping[str, Any]) -> Conversation:
    """A request to `/v1/messages`."""
    tools = (declared(tool["name"], tool.get("input_schema")) for tool in body.get("tools") or ())
    return conversation(str(body.get("model")), _messages(body.get("messages") or ()), tools)


def _messages(given: Any) -> Messages:
    for message in given:
        content = message["content"]
        blocks = [{"text": content}] if isinstance(content, str) else content
        results = [block for block in blocks if block.get("type") == "tool_result"]
        yield from ((Role.TOOL, words(block)) for block in results)
        role = Role.USER if message["role"] == "user" else Role.MODEL
        if len(results) < len(blocks):
            yield role, words([block for block in blocks if block not in results])


def document(answer: Answer) -> Document:
    """A message."""
    content: list[Document] = [{"type": "text", "text": answer.text}] if answer.text else []
    content += [
        {"type": "tool_use", "id": new_id("toolu"), "name": call.tool.name, "input": call.arguments}
        for call in answer.calls
    ]
    stop = "refusal" if answer.stop is Stop.REFUSAL else "tool_use" if answer.calls else "end_turn"
    return {
        "id": new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": answer.usage.fresh,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": answer.usage.cached,
            "output_tokens": answer.usage.out,
        },
    }


def stream(document: Document) -> Iterator[str]:
    """The message as events: start, blocks, end."""
    opened = {**document, "content": [], "stop_reason": None, "usage": {**document["usage"], "output_tokens": 1}}
    yield _event("message_start", message=opened)
    for index, block in enumerate(document["content"]):
        yield from _block(index, block)
    delta = {"stop_reason": document["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage=document["usage"])
    yield _event("message_stop")


def _block(index: int, block: Document) -> Iterator[str]:
    if block["type"] == "text":
        opened, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        opened = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield _event("content_block_start", index=index, content_block=opened)
    yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _event(kind: str, **data: Any) -> str:
    return frame({"type": kind, **data}, kind)


def error(trouble: Trouble) -> tuple[int, Document]:
    """An error."""
    status, kind, message = _ERRORS[trouble]
    return status, {"type": "error", "error": {"type": kind, "message": message}, "request_id": new_id("req")}
