"""The scripts by name. A script is a pure function of the conversation, so agents resume and repeat as they like."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from .conversation import Conversation
from .reply import Fault, Reply, Run, Stop, Trouble, Write

HELLO = Write("hello.txt", "hello from the model\n")
"""The edit of every scenario that makes one."""

SEEN = "seen.txt"
"""The file that `edit_again` writes."""

LONG_S = 60
"""Seconds that `thinking` and `slow_tool` take: longer than a test that kills has to wait.

Codex gives the model a command back that runs 10 seconds already, so there the script goes on while it runs.
"""


@dataclass(frozen=True)
class Scenario:
    """How the model behaves.

    Attributes:
        play: the reply to a conversation.
        fault: what goes wrong, and when.
    """

    play: Callable[[Conversation], Reply]
    fault: Fault | None = None


def script(*replies: Reply, fault: Fault | None = None) -> Scenario:
    """One reply per round of tools; the last one again and again."""
    return Scenario(lambda asked: replies[min(asked.rounds, len(replies) - 1)], fault)


def editing(fault: Fault | None = None) -> Scenario:
    """Write `hello.txt`, then say so, unless the fault comes between."""
    return script(Reply("I will write the file.", (HELLO,)), Reply("Done: hello.txt is written."), fault=fault)


def thinking(seconds: float) -> Scenario:
    """An edit whose first answer takes a while, once in a run: who asks again need not wait again."""
    return editing(Fault(Trouble.HANG, times=1, seconds=seconds))


def slow_tool(seconds: float) -> Scenario:
    """A command that takes a while, then an edit."""
    slow = Run(f"python3 -c 'import time; time.sleep({seconds:g})'")
    return script(Reply("This takes a while.", (slow,)), Reply("Now the file.", (HELLO,)), Reply("Done."))


def _edit_again(asked: Conversation) -> Reply:
    if asked.rounds:
        return Reply("Done.")
    return Reply("I will count.", (Run(f"echo {len(asked.prompts) - 1} > {SEEN}"),))


def _loop(asked: Conversation) -> Reply:
    return Reply(f"Once more: {asked.rounds}.", (Run(f"echo {asked.rounds} >> loop.txt"),))


def _review(*, veto: bool) -> Scenario:
    def play(asked: Conversation) -> Reply:
        nonce = re.search(r'"nonce": "(\w+)"', asked.prompts[-1]) if asked.prompts else None
        answer = {"nonce": nonce[1] if nonce else "", "veto": veto, "reason": "as scripted"}
        return Reply(f"I looked at the change.\n\n{json.dumps(answer)}")

    return Scenario(play)


SCENARIOS = {
    "edit": editing(),
    "two_edits": script(
        Reply("Two files.", (Write("one.txt", "one\n"), Write("two.txt", "two\n"))), Reply("Both are written.")
    ),
    "edit_again": Scenario(_edit_again),
    "rate_limited": editing(Fault(Trouble.RATE_LIMITED)),
    "rate_limited_twice": editing(Fault(Trouble.RATE_LIMITED, times=2, retry_after=1)),
    "rate_limited_midway": editing(Fault(Trouble.RATE_LIMITED, rounds=1)),
    "unauthorised": editing(Fault(Trouble.UNAUTHORISED)),
    "quota": editing(Fault(Trouble.QUOTA)),
    "context_full": editing(Fault(Trouble.CONTEXT_FULL)),
    "overloaded": editing(Fault(Trouble.OVERLOADED)),
    "server_error": editing(Fault(Trouble.SERVER_ERROR)),
    "stream_cut": editing(Fault(Trouble.CUT)),
    "stream_cut_once": editing(Fault(Trouble.CUT, times=1)),
    "refusal": script(Reply(stop=Stop.REFUSAL)),
    "empty": script(Reply()),
    "loop": Scenario(_loop),
    "thinking": thinking(LONG_S),
    "slow_tool": slow_tool(LONG_S),
    "approve": _review(veto=False),
    "veto": _review(veto=True),
}
"""Every scenario that a URL can name; a test adds its own with `ModelServer.add`."""
