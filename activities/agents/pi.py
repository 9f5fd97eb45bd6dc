"""pi by `pi -p --mode json`: how it is started, and where it keeps its sessions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .adapter import AgentCall, Launch, OnPath, Traits, Translator
from .api_errors import classify
from .fields import complaint, loaded, text
from .pi_events import PiTranslator
from .providers import NO_KEY, NO_MODEL, SECRETS, keys, server
from .relocation import head, relocate
from .said import Complained, Said

SETTINGS = {
    "enableInstallTelemetry": False,
    "retry": {"maxRetries": 2, "baseDelayMs": 2000, "provider": {"maxRetries": 0}},
}
"""Few retries, because `orch` itself waits and knows the deadline."""

_HEAD = 1 << 20
"""Bytes at the beginning of a session's file in which its folder is named."""


class PiAgent(OnPath):
    """The pi coding agent; it has no permissions and no sandbox of its own."""

    name = "pi"
    traits = Traits(
        program="pi",
        oldest=(0, 73, 1),
        forks=True,
        prices=True,
        secrets=SECRETS,
        login=(".pi/agent/auth.json",),
        settings={"effort": "how much the model thinks: off, minimal, low, medium, high or xhigh"},
        signals=(("TERM", 2.0),),
    )

    def call(self, launch: Launch) -> AgentCall:
        """Begin a session, go on in one, or branch off from one; settings and models stand in its own files."""
        spec, home = launch.spec, _home(launch.home)
        argv = [spec.program(self.traits.program), "-p", "--mode", "json", "--offline", *_model(launch)]
        argv += ["--thinking", spec.settings["effort"]] if "effort" in spec.settings else []
        argv += ["--fork" if launch.fork else "--session", launch.session] if launch.session else []
        env = {
            "PI_CODING_AGENT_DIR": str(home),
            "PI_CODING_AGENT_SESSION_DIR": str(_sessions(launch.home)),
            "PI_TELEMETRY": "0",
        }
        files = {home / "settings.json": json.dumps(SETTINGS)}
        if url := server(launch):
            files[home / "models.json"] = json.dumps(_provider(launch, url))
        return AgentCall(tuple(argv), {**env, **keys(launch)}, files)

    def translator(self) -> Translator | None:
        """A reader of turns, messages and tools."""
        return PiTranslator()

    def leftovers(self, launch: Launch, stderr: str) -> Iterator[Said]:  # noqa: ARG002 - its stream tells the rest
        """Why it could not begin, such as without a key."""
        if words := complaint(stderr):
            yield Complained(classify(words), words)

    def adopt(self, launch: Launch, old: Path) -> bool:
        """Bring the session's file; it goes on in the folder that its first line names, which has to be the new one."""
        found = _sessions(old).glob(f"*_{launch.session}.jsonl")
        return any(_adopted(session, _sessions(launch.home) / session.name, launch.tree) for session in found)


def _home(home: Path) -> Path:
    return home / ".pi" / "agent"


def _sessions(home: Path) -> Path:
    """One folder for the sessions of all trees, so that they are found in another, too."""
    return _home(home) / "sessions"


def _adopted(session: Path, copy: Path, tree: Path) -> bool:
    cwd = text(loaded(head(session, _HEAD).partition("\n")[0]).get("cwd"))
    return bool(cwd) and relocate(session, copy, cwd, os.path.realpath(tree))


def _model(launch: Launch) -> tuple[str, ...]:
    name = launch.spec.argument
    if server(launch):
        return ("--provider", "orch", "--model", name or NO_MODEL)
    return ("--model", name) if name else ()


def _provider(launch: Launch, url: str) -> Mapping[str, Any]:
    """The server as a provider of one model; its price and its size are not known."""
    model = {"id": launch.spec.argument or NO_MODEL, "reasoning": "effort" in launch.spec.settings}
    key = "OPENAI_API_KEY" if launch.secrets.get("OPENAI_API_KEY") else NO_KEY
    compat = {"supportsDeveloperRole": False}
    provider = {"baseUrl": url, "api": "openai-completions", "apiKey": key, "compat": compat, "models": [model]}
    return {"providers": {"orch": provider}}
