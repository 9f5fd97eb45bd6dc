"""Whole rounds, told by their events."""

from __future__ import annotations

from collections.abc import Callable

from orch.workflows.model.event import Event
from orch.workflows.model.outcome import OutcomeKind
from orch.workflows.model.reason import RunReason
from orch.workflows.model.round.composition import StepResult
from orch.workflows.model.round.lane import LaneEnd
from orch.workflows.model.round.ticket import Cause

from .events import PLAN, Story


def composed() -> list[Event]:
    """Three lanes; rejects, a busy device, a drift that pauses the queue; the second pick loses its gain on the first.

    The composed head passes its rerun and goes to a branch.
    """
    it = Story(promote="branch:faster")
    it.ready("lanes tokens and cache attack the same stage, lexing")
    it.guard()
    it.open()
    tokens = _search(it)
    cache, output = _drift(it)
    it.settle("tokens", 1)
    it.end("tokens")
    it.settle("cache", 2, wall_s=410.0)
    it.end("cache", LaneEnd.ATTEMPTS)
    it.settle("output", 1, tokens_in=None, tokens_out=None, usd=None)
    it.end("output")
    it.pick(("tokens", tokens), ("cache", cache), ("output", output))
    it.step("tokens", tokens, StepResult.FIRST)
    it.step("cache", cache, StepResult.SKIPPED, (0.9, 0.896))
    it.step("output", output, StepResult.ADDED, (0.9, 0.86))
    it.rerun(0.862)
    it.finish()
    return it.events


def _search(it: Story) -> str:
    """The lane `tokens` finds something, the lane `cache` is refused and crashes."""
    it.refuse("cache", "bench too", Cause.PROTECTED, "bench/run.py is protected")
    first = it.submit("tokens", "table lookup")
    it.take(first)
    it.settle("cache", 1, OutcomeKind.CRASHED, usd=0.05)
    it.launch("cache", 2)
    it.measured(first, "tokens", 0.93)
    second = it.submit("tokens", "one pass", files=1)
    broken = it.submit("output", "join once", after=1.0)
    it.take(second)
    it.take(broken, "cpu-b")
    it.fail(broken, "output", Cause.BUILD_FAILED, "SyntaxError: invalid syntax")
    it.measured(second, "tokens", 0.9)
    return second


def _drift(it: Story) -> tuple[str, str]:
    """Both other lanes find something, with a pause between."""
    cache = it.submit("cache", "memo of spans")
    slower = it.submit("output", "buffer it", after=2.0)
    it.take(cache)
    it.put_back(cache, "another process uses processor 0")
    it.take(slower, "cpu-b")
    it.measured(slower, "output", 1.04, "cpu-b")
    it.guard(drift=0.05)
    it.pause("the incumbent differs from itself by 5 %")
    output = it.submit("output", "write once")
    it.guard()
    it.resume()
    it.take(cache)
    it.measured(cache, "cache", 0.94)
    it.take(output, "cpu-b")
    it.measured(output, "output", 0.955, "cpu-b")
    it.refuse("output", "a link", Cause.LINK_ESCAPES, "src/output/cfg links to /etc/passwd")
    return cache, output


def fallen_back() -> list[Event]:
    """The composed head does not hold what it promised; the best single lane does."""
    it = Story(seed=7)
    it.ready(sandbox=True)
    it.guard()
    it.open("tokens", "output")
    tickets = {}
    for name, factor in (("tokens", 0.92), ("output", 0.97)):
        tickets[name] = it.submit(name, "lucky")
        it.take(tickets[name])
        it.measured(tickets[name], name, factor)
        it.settle(name, 1)
        it.end(name)
    it.pick(*tickets.items())
    it.step("tokens", tickets["tokens"], StepResult.FIRST)
    it.step("output", tickets["output"], StepResult.ADDED, (0.92, 0.89))
    it.rerun(0.999)
    it.rerun(0.93, fallback="tokens")
    it.finish()
    return it.events


def fruitless() -> list[Event]:
    """No lane finds anything: one changes nothing that counts, one never opens, one is stopped by its deadline."""
    it = Story(seed=3)
    it.ready()
    it.guard()
    it.open("tokens", "output")
    ticket = it.submit("tokens", "nothing much")
    it.take(ticket)
    it.measured(ticket, "tokens", 0.998)
    it.settle("tokens", 1)
    it.end("tokens")
    it.settle("output", 1, OutcomeKind.TIMED_OUT)
    it.end("output", LaneEnd.DEADLINE)
    it.end("cache", LaneEnd.NOT_OPENED, "set-up failed: exit 1")
    it.pick()
    it.finish(RunReason.NO_GAIN, lanes=3, tickets=1)
    return it.events


def unmeasurable() -> list[Event]:
    """The benchmark fails on the incumbent: nothing is begun."""
    it = Story()
    it.ready()
    it.stop("failed", RunReason.INCUMBENT_FAILS, step="smoke_failed", detail="exit 2")
    return it.events


def live() -> list[Event]:
    """The round of `composed`, up to where its queue is paused with a ticket in it."""
    events = composed()
    return events[: next(n for n, event in enumerate(events) if event.type == "queue_paused") + 2]


STORIES: dict[str, Callable[[], list[Event]]] = {
    "composed": composed,
    "fallen_back": fallen_back,
    "fruitless": fruitless,
    "unmeasurable": unmeasurable,
    "live": live,
    "begun": lambda: composed()[:1],
}
"""All of them, by name."""

ROUND = f"round-{PLAN.campaign}-{PLAN.id}"
