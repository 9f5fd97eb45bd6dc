"""mini-swe-agent: takes its task in the argv alone and prints for people; a trajectory file says what became of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...workflows.model.outcome import OutcomeKind
from ...workflows.model.usage import Usage
from . import litellm
from .adapter import AgentCall, Launch, OnPath, Traits, Translator
from .fields import complaint, count, loaded, mapping, money, objects, tail, text
from .providers import SECRETS
from .said import Began, Ended, Failed, Said, Text, Total, Turn
from .spec import Spec

TASK = "Your task stands in the file {prompt} (outside the repository). Read it whole first, then do what it says."
"""It takes no task but one in its settings or its argv, which is limited and which everybody on the host can read."""

CONFIG, TRAJECTORY = "mini.yaml", "trajectory.json"
TRAJECTORY_LIMIT = 32 << 20
"""Bytes; a longer trajectory is not read, and what it would tell is unknown."""

MOST_TURNS = 10_000
COMMAND_S = 1800
"""Seconds for one command, instead of 30: test suites take longer, and `orch` has a deadline of its own."""

_FINISHED = frozenset({"Submitted", "RepeatedFormatError"})
"""It submitted; or it only talked, three times in a row, which is its way to answer in words."""


class MiniAgent(OnPath):
    """The minimal agent of the SWE-agent project."""

    name = "mini"
    traits = Traits(
        program="mini",
        oldest=(2, 4, 6),
        version=("--help",),
        streams=False,
        resumes=False,
        limits=frozenset({"turns", "usd"}),
        prices=True,
        secrets=SECRETS,
        login=(".config/mini-swe-agent/.env",),
        signals=(("TERM", 1.0),),
    )

    def call(self, launch: Launch) -> AgentCall:
        """Begin anew; its settings stand in a file, beside its own defaults."""
        config = launch.private / CONFIG
        argv = (launch.spec.program(self.traits.program), "-c", "mini.yaml", "-c", str(config))
        env = {
            "MSWEA_CONFIGURED": "true",
            "MSWEA_GLOBAL_CONFIG_DIR": str(launch.home / ".config" / "mini-swe-agent"),
            "MSWEA_SILENT_STARTUP": "1",
            **litellm.environment(launch),
        }
        return AgentCall((*argv, "-o", str(_trajectory(launch))), env, {config: json.dumps(_config(launch), indent=1)})

    def translator(self) -> Translator | None:
        """It prints for people."""
        return None

    def leftovers(self, launch: Launch, stderr: str) -> Iterator[Said]:
        """What its trajectory tells; it is rewritten after every step, so that of a killed run is there, too."""
        trajectory = loaded(tail(_trajectory(launch), TRAJECTORY_LIMIT))
        info, messages = mapping(trajectory.get("info")), objects(trajectory.get("messages"))
        if not info:
            if words := complaint(stderr):
                yield Failed(litellm.error_kind(words), words)
            return
        stats = mapping(info.get("model_stats"))
        yield Began(version=text(info.get("mini_version")))
        yield from [Turn()] * min(count(stats.get("api_calls")) or 0, MOST_TURNS)
        yield Total(_usage(messages, money(stats.get("instance_cost"))))
        yield from _end(launch.spec, info, messages)

    def adopt(self, launch: Launch, old: Path) -> bool:  # noqa: ARG002 - it has no session
        """It has no session that could be taken up."""
        return False


def _trajectory(launch: Launch) -> Path:
    return launch.private / TRAJECTORY


def _config(launch: Launch) -> Mapping[str, Any]:
    spec, name = launch.spec, litellm.model(launch)
    model = {"cost_tracking": "ignore_errors", **({"model_name": name} if name else {})}
    agent = {
        "mode": "yolo",
        "confirm_exit": False,
        "step_limit": int(spec.limit("max-turns") or 0),
        "cost_limit": spec.limit("max-usd") or 0,
    }
    task = TASK.format(prompt=launch.prompt)
    return {"agent": agent, "environment": {"timeout": COMMAND_S}, "model": model, "run": {"task": task}}


def _end(spec: Spec, info: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> Iterator[Said]:
    """How it ended: the status is empty while it runs, and the name of an exception when it failed."""
    status, submitted = text(info.get("exit_status")), text(info.get("submission"))
    answers = [answer for answer in map(_answer, messages) if answer]
    said = [text(mapping(answer.get("message")).get("content")) for answer in answers]
    if status in _FINISHED:
        yield Text(submitted if submitted.strip() else (said or [""])[-1], final=True)
        stop = text(answers[-1].get("finish_reason")) if answers and status != "Submitted" else ""
        if stop == "content_filter":
            yield Failed(OutcomeKind.REFUSED, "the provider's content filter stopped the answer")
        yield Ended(stop)
    elif status == "LimitsExceeded":
        turns, made = spec.limit("max-turns"), count(mapping(info.get("model_stats")).get("api_calls")) or 0
        by_turns = turns is not None and made >= int(turns)
        yield Failed(OutcomeKind.TURN_LIMIT if by_turns else OutcomeKind.BUDGET_LIMIT, f"{status} at {made} requests")
    elif status:
        words = text(mapping(messages[-1].get("extra")).get("exception_str")) if messages else ""
        yield Failed(litellm.error_kind(words or status), words or status)


def _answer(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The choice in a model's response; an answer without a command stands in a message to the model about it."""
    response = mapping(mapping(message.get("extra")).get("response"))
    return next(iter(objects(response.get("choices"))), {})


def _usage(messages: Sequence[Mapping[str, Any]], usd: float | None) -> Usage:
    """The sum over all responses; prompt tokens include cached ones."""
    total = Usage(usd=usd)
    for message in messages:
        used = mapping(mapping(mapping(message.get("extra")).get("response")).get("usage"))
        whole, cached = count(used.get("prompt_tokens")), _cached(used)
        total = total + Usage(
            tokens_in=None if whole is None else max(0, whole - (cached or 0)),
            tokens_cached=cached,
            tokens_out=count(used.get("completion_tokens")),
        )
    return total


def _cached(used: Mapping[str, Any]) -> int | None:
    return count(mapping(used.get("prompt_tokens_details")).get("cached_tokens"))
