"""Plays the scripts: what a request gets, counted and noted per run. Knows nothing of HTTP."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field

from .conversation import Conversation
from .dialect import Answer
from .reply import NOTHING, USAGE, Fault
from .scenarios import SCENARIOS, Scenario
from .tools import call


@dataclass(frozen=True)
class Request:
    """One request for an answer.

    Attributes:
        route: `messages`, `responses` or `completions`.
        key: the key that came with it.
        asked: what it held: the model, the prompts, the tools and what they gave back.
        outcome: `answered`, `title` (a title or a summary: without tools, so no part of the script), or the trouble.
    """

    route: str
    key: str
    asked: Conversation
    outcome: str


@dataclass
class _Run:
    requests: list[Request] = field(default_factory=list)
    faults: int = 0


class Player:
    """The scripts, and what every run asked."""

    def __init__(self) -> None:
        self._scenarios = dict(SCENARIOS)
        self._runs: dict[str, _Run] = defaultdict(_Run)
        self._changed = threading.Condition()

    def add(self, name: str, scenario: Scenario) -> None:
        """Know one more scenario."""
        self._scenarios[name] = scenario

    def scenario(self, name: str) -> Scenario:
        """Look one up; raises LookupError with the known names."""
        if name not in self._scenarios:
            raise LookupError(f"no scenario {name!r} among {', '.join(self._scenarios)}")
        return self._scenarios[name]

    def requests(self, run: str) -> list[Request]:
        """What a run asked so far, in order."""
        with self._changed:
            return list(self._runs[run].requests)

    def wait_for(self, run: str, *, requests: int = 1, timeout: float = 60.0) -> None:
        """Wait until a run has asked so often; raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._runs[run].requests) >= requests, timeout):
                raise TimeoutError(f"run {run!r} asked {len(self._runs[run].requests)} times, not {requests}")

    def play(self, scenario: str, run: str, route: str, key: str, asked: Conversation) -> tuple[Answer, Fault | None]:
        """The answer to a request, and the fault that it meets before.

        Raises LookupError for an unknown scenario, and where the agent has no tool for what the script does.
        """
        played = self.scenario(scenario)
        answer = _answer(played, asked)
        with self._changed:
            fault = _fault(played, self._runs[run], asked)
            outcome = str(fault.trouble) if fault else "answered" if asked.tools else "title"
            self._runs[run].requests.append(Request(route, key, asked, outcome))
            self._changed.notify_all()
        return answer, fault


def _fault(scenario: Scenario, run: _Run, asked: Conversation) -> Fault | None:
    fault = scenario.fault
    if fault is None or not asked.tools or asked.rounds < fault.rounds:
        return None
    run.faults += 1
    return fault if fault.times is None or run.faults <= fault.times else None


def _answer(scenario: Scenario, asked: Conversation) -> Answer:
    """The script's reply in the tools of this request; without tools it asks for a title or the like."""
    if not asked.tools:
        return Answer(asked.model, "A title", usage=NOTHING)
    reply = scenario.play(asked)
    calls = tuple(call(action, asked.tools) for action in reply.actions)
    return Answer(asked.model, reply.text, calls, reply.stop, USAGE)
