"""An action of a script as a call of a tool that the agent declared in this very request."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .conversation import Tool
from .reply import Action, Write

WRITERS = ("Write", "write", "write_file")
"""Tools that write a file: Claude Code; pi and opencode; others."""

SHELLS = ("Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command")
"""Tools that run a command: Claude Code; pi and opencode; Codex, now and before; others."""

PATH = ("file_path", "filePath", "path")
COMMAND = ("command", "cmd")


@dataclass(frozen=True)
class Call:
    """A call of a tool; a freeform one takes text, any other a JSON object."""

    tool: Tool
    arguments: Mapping[str, Any] | str

    @property
    def encoded(self) -> str:
        """The arguments as text."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


def call(action: Action, tools: tuple[Tool, ...]) -> Call:
    """Translate an action; raises LookupError when no declared tool can do it."""
    if not isinstance(action, Write):
        return _run(action.command, tools)
    for tool in _among(tools, WRITERS):
        return Call(tool, _filled(tool, {PATH: action.path, ("content",): action.content}))
    for tool in _among(tools, ("apply_patch",)):
        if tool.freeform:
            return Call(tool, _patch(action))
    return _run(f"printf %s {shlex.quote(action.content)} > {shlex.quote(action.path)}", tools)


def _run(command: str, tools: tuple[Tool, ...]) -> Call:
    for tool in _among(tools, SHELLS):
        return Call(tool, _filled(tool, {COMMAND: command}))
    for tool in _among(tools, ("exec",)):
        if tool.freeform:  # Codex's "code mode": one tool that takes JavaScript
            return Call(tool, f"text(await tools.exec_command({{cmd: {json.dumps(command)}}}));")
    raise LookupError(f"no tool for {command!r} among {[tool.name for tool in tools]}")


def _among(tools: tuple[Tool, ...], names: tuple[str, ...]) -> list[Tool]:
    return [tool for name in names for tool in tools if tool.name == name]


def _filled(tool: Tool, values: Mapping[tuple[str, ...], str]) -> dict[str, Any]:
    """The values under the names that the tool has for them, and something for what it requires besides."""
    arguments: dict[str, Any] = {}
    for names, value in values.items():
        name = next(name for name in names if name in tool.properties)
        many = tool.properties[name].get("type") == "array"
        arguments[name] = ["sh", "-c", value] if many else value
    return {**dict.fromkeys(tool.required, "scripted"), **arguments}


def _patch(write: Write) -> str:
    lines = "".join(f"+{line}\n" for line in write.content.splitlines())
    return f"*** Begin Patch\n*** Add File: {write.path}\n{lines}*** End Patch"
