"""Mistral Vibe: how it is started, and the export file that says on every exit how it ended and what it used."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...workflows.model.outcome import OutcomeKind
from ...workflows.model.usage import Usage
from .adapter import AgentCall, Launch, OnPath, Traits, Translator
from .api_errors import classify, retry_time
from .fields import complaint, count, loaded, mapping, money, tail, text
from .providers import NO_KEY, NO_MODEL, server
from .said import Began, Complained, Ended, Failed, Said, Total, Turn
from .vibe_events import VibeTranslator

CONFIG = """\
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false
api_retry_max_elapsed_time = 30.0 # orch itself waits, and knows the deadline
{model}
[experiments] # another host that it would ask
enable = false
"""

MODEL = """\
active_model = "orch"

[[models]]
alias = "orch"
name = {name}
provider = {provider}
"""

PROVIDER = """\

[[providers]]
name = "orch"
api_base = {url}
api_key_env_var = "OPENAI_API_KEY"
backend = "generic"
"""

EXPORT, EXPORT_LIMIT = "export.json", 8 << 20
COMPLETED, JOURNAL_LIMIT = '"completion_succeeded"', 64 << 20
"""Marks a line about an answer in a session's journal, of which so many bytes at its end are searched."""

MOST_TURNS = 10_000

_LIMITS = (("max-turns", "--max-turns"), ("max-tokens", "--max-tokens"), ("max-usd", "--max-price"))
_KINDS = {
    "deadline": OutcomeKind.TIMED_OUT,
    "price_limit": OutcomeKind.BUDGET_LIMIT,
    "refusal": OutcomeKind.REFUSED,
    "terminated": OutcomeKind.KILLED,
    "token_limit": OutcomeKind.BUDGET_LIMIT,
    "turn_limit": OutcomeKind.TURN_LIMIT,
}
"""Outcomes in the export that say all; others come with an error, whose words tell."""

_ADVICE = re.compile(r" for url '[^']*'\s+For more information check: \S+?(?=: |\s|$)")


class VibeAgent(OnPath):
    """Mistral's Vibe, with Mistral's models or any server that speaks OpenAI's chat completions."""

    name = "vibe"
    traits = Traits(
        program="vibe",
        oldest=(3, 0, 2),
        limits=frozenset({"turns", "tokens", "usd"}),
        prices=True,
        secrets=("MISTRAL_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        login=(".vibe/.env",),
        signals=(("TERM", 5.0),),
    )

    def call(self, launch: Launch) -> AgentCall:
        """Begin a session, or go on in one; it counts tokens for itself alone, so it gets every limit."""
        spec = launch.spec
        argv = [spec.program(self.traits.program), "--prompt-file", str(launch.prompt), "--output", "streaming"]
        argv += ["--auto-approve", "--trust", "--output-dir", str(launch.private)]
        for key, option in _LIMITS:
            if (most := spec.limit(key)) is not None:
                argv += [option, str(most if key == "max-usd" else max(1, int(most)))]
        argv += ["--resume", launch.session] if launch.session else []
        key = "OPENAI_API_KEY" if server(launch) else "MISTRAL_API_KEY"
        known = launch.secrets.get(key) or (NO_KEY if server(launch) else "")
        env = {"VIBE_HOME": str(_home(launch.home)), **({key: known} if known else {})}
        return AgentCall(tuple(argv), env, {_home(launch.home) / "config.toml": _config(launch)})

    def translator(self) -> Translator | None:
        """A reader of messages and effects."""
        return VibeTranslator()

    def leftovers(self, launch: Launch, stderr: str) -> Iterator[Said]:
        """Its export; without one it was killed, or never began."""
        export, used = loaded(tail(launch.private / EXPORT, EXPORT_LIMIT)), _journalled(launch)
        if export:
            yield from _exported(export, used)
            return
        if used != Usage():
            yield Total(used)
        if words := complaint(stderr):
            yield Complained(classify(words), words)

    def adopt(self, launch: Launch, old: Path) -> bool:  # noqa: ARG002 - whatever they are
        """Take none: a session goes on writing in the working copy it began in, and its files are sealed by digests."""
        return False


def _home(home: Path) -> Path:
    return home / ".vibe"


def _config(launch: Launch) -> str:
    """Its settings; a string in JSON is one in TOML. What a model costs it knows of its own default only."""
    name, url = launch.spec.argument, server(launch)
    if url:
        model = MODEL.format(name=json.dumps(name or NO_MODEL), provider='"orch"')
        return CONFIG.format(model=model + PROVIDER.format(url=json.dumps(url)))
    own = MODEL.format(name=json.dumps(name.removeprefix("mistral/")), provider='"mistral"') if name else ""
    return CONFIG.format(model=own)


def _journalled(launch: Launch) -> Usage:
    """What the requests used that this launch wrote into the journals of its sessions, each into a file of its own."""
    begun = launch.prompt.stat().st_mtime if launch.prompt.exists() else 0.0
    total = Usage()
    for journal in (_home(launch.home) / "logs" / "session" / "unified").glob("*/journal/*.jsonl"):
        if journal.is_file() and journal.stat().st_mtime >= begun:
            for line in tail(journal, JOURNAL_LIMIT).splitlines():
                record = loaded(line) if COMPLETED in line else {}
                if record.get("type") == "action_result":
                    result = mapping(mapping(mapping(record.get("payload")).get("result")).get("result"))
                    total = total + _usage(mapping(result.get("usage")))
    return total


def _exported(export: Mapping[str, Any], journalled: Usage) -> Iterator[Said]:
    """The export; it leaves out tries that were thrown away, and all it used when it was stopped hard."""
    config = mapping(export.get("config"))
    model = mapping(mapping(config.get("models")).get(text(config.get("active_model"))))
    yield Began(text(export.get("session_id")), text(model.get("name")), text(export.get("vibe_version")))
    yield from [Turn()] * min(count(export.get("steps")) or 0, MOST_TURNS)
    used = max(_usage(mapping(export.get("usage"))), journalled, key=lambda one: one.tokens or 0)
    yield Total(used.model_copy(update={"usd": money(export.get("cost_usd"))}))
    outcome = text(export.get("outcome"))
    if kind := _KINDS.get(outcome):
        yield Failed(kind, outcome.replace("_", " "))
    elif outcome not in {"finished", "length"}:
        words = _ADVICE.sub("", text(mapping(export.get("error")).get("message"))) or outcome
        yield Failed(classify(words), words, retry_time(words, time.time()))
    yield Ended(text(export.get("stop_reason")))


def _usage(used: Mapping[str, Any]) -> Usage:
    """Input tokens include cached ones; nothing but zeros stands for unknown."""
    whole, cached, out = (count(used.get(name)) for name in ("input_tokens", "cached_input_tokens", "output_tokens"))
    if not whole and not out:
        return Usage()
    fresh = None if whole is None else max(0, whole - (cached or 0))
    return Usage(tokens_in=fresh, tokens_cached=cached, tokens_out=out)
