"""aider: prints for people; what it used stands in its own log of events, and why it gave up in its chat history."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...workflows.model.outcome import OutcomeKind
from ...workflows.model.usage import Usage
from . import litellm
from .adapter import AgentCall, Launch, OnPath, Traits, Translator
from .fields import complaint, count, loaded, mapping, money, tail, text
from .providers import SECRETS
from .said import Ended, Failed, Said, Text, Turn, Used

OPTIONS = (
    "--yes-always",
    "--no-analytics",
    "--no-auto-commits",
    "--no-check-update",
    "--no-detect-urls",
    "--no-dirty-commits",
    "--no-fancy-input",
    "--no-gitignore",
    "--no-pretty",
    "--no-show-model-warnings",
    "--no-show-release-notes",
    "--no-stream",
    "--no-suggest-shell-commands",
)
"""Ask nobody, fetch nothing, and neither commit nor touch the ignore file. Only without streaming it knows the tokens;
when it streams, it guesses them."""

ENVIRONMENT = {"BROWSER": "true"}
"""It opens pages of help in a browser, for which the program `true` stands."""

EVENTS, CHAT = "events.jsonl", "chat.md"
_FILES = (("--analytics-log", EVENTS), ("--chat-history-file", CHAT), ("--input-history-file", "input"))
_LIMIT = 8 << 20
_FULL = "has hit a token limit"


class AiderAgent(OnPath):
    """The pair programmer of Paul Gauthier."""

    name = "aider"
    traits = Traits(
        program="aider",
        oldest=(0, 86, 2),
        streams=False,
        resumes=False,
        prices=True,
        secrets=SECRETS,
        login=(".aider.conf.yml", ".aider/oauth-keys.env"),
        settings={"effort": "how much the model reasons, such as low or high"},
        signals=(("TERM", 1.0),),
        litter=(".aider.tags.cache.v*",),
    )

    def call(self, launch: Launch) -> AgentCall:
        """Begin anew, with the prompt as one message, after which it ends."""
        spec = launch.spec
        argv = [spec.program(self.traits.program), *OPTIONS, "--message-file", str(launch.prompt)]
        for option, file in _FILES:
            argv += [option, str(launch.private / file)]
        argv += ["--model", name] if (name := litellm.model(launch)) else []
        argv += ["--reasoning-effort", spec.settings["effort"]] if "effort" in spec.settings else []
        return AgentCall(tuple(argv), {**ENVIRONMENT, **litellm.environment(launch)})

    def translator(self) -> Translator | None:
        """It prints for people."""
        return None

    def leftovers(self, launch: Launch, stderr: str) -> Iterator[Said]:
        """What its events and its chat tell."""
        events = [loaded(line) for line in tail(launch.private / EVENTS, _LIMIT).splitlines()]
        if not any(events) and (words := complaint(stderr)):
            yield Failed(litellm.error_kind(words), words)
        for event in events:
            yield from _happened(text(event.get("event")), mapping(event.get("properties")))
        if any(event.get("event") == "exit" for event in events):
            yield from _end(events, tail(launch.private / CHAT, _LIMIT))

    def adopt(self, launch: Launch, old: Path) -> bool:  # noqa: ARG002 - it has no session
        """It has no session that could be taken up."""
        return False


def _happened(kind: str, about: Mapping[str, Any]) -> Iterator[Said]:
    """A request, or what it used; how many tokens were cached is not told."""
    if kind == "message_send_starting":
        yield Turn()
    elif kind == "message_send":
        sent, received = count(about.get("prompt_tokens")), count(about.get("completion_tokens"))
        yield Used(Usage(tokens_in=sent, tokens_out=received, usd=money(about.get("cost"))))


def _end(events: Sequence[Mapping[str, Any]], chat: str) -> Iterator[Said]:
    """The answer; or, when nothing came of the last request, why. Lines of its own begin with `>` in the chat."""
    _, _, last = chat.rpartition("\n#### ")
    lines = last.splitlines()[1:]
    yield Text("\n".join(line for line in lines if not line.startswith(">")).strip(), final=True)
    sends = [event.get("event") for event in events if text(event.get("event")).startswith("message_send")]
    if sends and sends[-1] != "message_send":
        yield _failure([line.removeprefix("> ").strip() for line in lines if line.startswith("> ")])
    yield Ended()


def _failure(told: Sequence[str]) -> Said:
    if full := next((line for line in told if _FULL in line), ""):
        return Failed(OutcomeKind.CONTEXT_FULL, full)
    words = next((line for line in reversed(told) if re.match(r"litellm\.|\w*Error", line)), "")
    return Failed(litellm.error_kind(words), words or "it gave up its last request")
