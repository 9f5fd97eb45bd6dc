"""Agents in words only: requests as each dialect has them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

PATH = {"type": "object", "properties": {"path": {}, "content": {}, "why": {}}, "required": ["path", "content", "why"]}


@dataclass(frozen=True)
class Speaker:
    """An agent of one dialect.

    Attributes:
        route: the end of the path it asks.
        tool: how it declares a tool that writes.
        shell: how it declares one that runs commands.
        writes: what its tool for writing is called.
        closing: what ends an event stream.
        cost: what the server says of a reply's usage.
    """

    route: str
    tool: dict[str, Any]
    shell: dict[str, Any]
    writes: str
    closing: str
    cost: str

    def body(self, *turns: tuple[str, str], stream: bool, tools: bool = True) -> bytes:
        """A request; turns are `user`, `model` or `tool`, each with a text."""
        messages = [getattr(self, f"_{role}")(text) for role, text in turns]
        said = {"input" if self.route == "responses" else "messages": messages}
        return json.dumps({"model": "m", "stream": stream, "tools": [self.tool, self.shell] * tools, **said}).encode()

    def _user(self, text: str) -> dict[str, Any]:
        return {"role": "user", "content": text}

    def _model(self, text: str) -> dict[str, Any]:
        return {"role": "assistant", "content": text}

    def _tool(self, text: str) -> dict[str, Any]:
        if self.route == "messages":
            block = {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": text}]}
            return {"role": "user", "content": [block]}
        if self.route == "responses":
            return {"type": "function_call_output", "call_id": "1", "output": text}
        return {"role": "tool", "tool_call_id": "1", "content": text}


MESSAGES = Speaker(
    "messages",
    {"name": "Write", "input_schema": PATH},
    {"name": "Bash", "input_schema": {"properties": {"command": {"type": "string"}}}},
    "Write",
    "message_stop",
    '"input_tokens": 1000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 200, "output_tokens": 50',
)
RESPONSES = Speaker(
    "responses",
    {"type": "custom", "name": "apply_patch"},
    {"type": "function", "name": "exec_command", "parameters": {"properties": {"cmd": {"type": "string"}}}},
    "apply_patch",
    "response.completed",
    '"input_tokens": 1200, "input_tokens_details": {"cached_tokens": 200}, "output_tokens": 50',
)
_EXEC = {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}
CODE_MODE = replace(RESPONSES, tool=_EXEC, shell={"type": "web_search"})
"""Codex with its newer models: one tool for all that takes JavaScript, in a namespace."""

CHAT = Speaker(
    "chat/completions",
    {"type": "function", "function": {"name": "write", "parameters": PATH}},
    {"type": "function", "function": {"name": "bash", "parameters": {"properties": {"command": {}}}}},
    "write",
    "[DONE]",
    '"prompt_tokens": 1200, "completion_tokens": 50, '
    '"total_tokens": 1250, "prompt_tokens_details": {"cached_tokens": 200}',
)
