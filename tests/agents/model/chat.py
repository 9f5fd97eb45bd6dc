"""OpenAI Chat Completions, as pi, opencode and most others speak it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .conversation import Conversation, Role, conversation, declared, words
from .dialect import Answer, Document, frame, new_id
from .openai_errors import error
from .reply import Stop

__all__ = ["document", "error", "read", "stream"]

_ROLES = {"user": Role.USER, "assistant": Role.MODEL, "tool": Role.TOOL}


def read(body: Mapping[str, Any]) -> Conversation:
    """A request to `/v1/chat/completions`."""
    functions = [tool["function"] for tool in body.get("tools") or () if "function" in tool]
    tools = (declared(function["name"], function.get("parameters")) for function in functions)
    messages = (
        (_ROLES[message["role"]], words(message.get("content")))
        for message in body.get("messages") or ()
        if message["role"] in _ROLES
    )
    return conversation(str(body.get("model")), messages, tools)


def document(answer: Answer) -> Document:
    """A completion."""
    calls = [
        {"id": new_id("call"), "type": "function", "function": {"name": call.tool.name, "arguments": call.encoded}}
        for call in answer.calls
    ]
    message = {"role": "assistant", "content": answer.text or None, **({"tool_calls": calls} if calls else {})}
    finish = "content_filter" if answer.stop is Stop.REFUSAL else "tool_calls" if calls else "stop"
    used = answer.usage
    return {
        "id": new_id("chatcmpl"),
        "object": "chat.completion",
        "created": 0,
        "model": answer.model,
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {
            "prompt_tokens": used.fresh + used.cached,
            "completion_tokens": used.out,
            "total_tokens": used.fresh + used.cached + used.out,
            "prompt_tokens_details": {"cached_tokens": used.cached},
        },
    }


def stream(document: Document) -> Iterator[str]:
    """The completion in chunks: its words, its calls, its end, its usage."""
    (choice,) = document["choices"]
    message = choice["message"]
    head = {**document, "object": "chat.completion.chunk", "usage": None}

    def chunk(delta: Document, finish: str | None = None) -> str:
        return frame({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    if message["content"]:
        yield chunk({"content": message["content"]})
    for index, call in enumerate(message.get("tool_calls", ())):
        yield chunk({"tool_calls": [{"index": index, **call}]})
    yield chunk({}, choice["finish_reason"])
    yield frame({**head, "choices": [], "usage": document["usage"]})
    yield frame("[DONE]")
