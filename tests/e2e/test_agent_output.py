"""S05, S13, S14, S23, S24: whatever stands in a stream, what the agent did and used is read, and nothing escapes."""

from __future__ import annotations

import asyncio
import os
import pty
import sys
from collections.abc import Awaitable, Callable

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata

from orch import Client
from orch.cli.event_lines import event_line
from orch.worker.connection import connect
from orch.workflows.model.view import CandidateStatus, RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]
Talks = Callable[..., str]

TOP = ("grep -q 3 level",)
FLOOD = """printf '{"type": "message_update", "text": "'; head -c 5000000 /dev/zero | tr '\\0' x; echo '"}'"""
"""One event of 5 MB."""

BROKEN = r"""printf 'no event\n{"half": \n\377\360\237\n'; head -c 100000 /dev/urandom; echo"""
CUT = r"""say "$(printf 'caf\303\251 \377\360\237')" 5"""
"""A text that ends inside a character."""

PAINT = r"\u001b[31mred\u001b]0;owned\u0007\u001b[2J\u009b1m\u202ekcab\r\n"
"""Colour, title, clear the screen, the one-byte control sequence, text that runs backwards."""

COMMANDS = ("show", "watch --once", "ledger", "logs --iteration 1 --candidate 1", "logs --iteration 1 --candidate 2")

MARKS = (b"\x1b", b"\x07", b"\xc2\x9b", b"\xe2\x80\xae")
"""What a terminal, or whoever reads, would obey."""


async def test_events_are_read_round_lines_of_any_size_and_bytes_of_any_kind(
    client: Client, run_goal: RunGoal, talks: Talks
) -> None:
    """S05, S13: a line of 5 MB, lines that are no events, and bytes that are no UTF-8; the log keeps them all."""
    spec = talks(f"begin; say one 10; {FLOOD}; {BROKEN}; {CUT}; echo 3 > level; {FLOOD}; stop")

    view = await run_goal(spec, verify=TOP, promote="none")

    (candidate,) = view.iterations[0].candidates
    assert (candidate.outcome, candidate.status, candidate.usage.tokens) == ("done", CandidateStatus.PASSED, 15)
    assert (candidate.turns, candidate.message) == (2, "done")
    assert candidate.unknown_events >= 3
    log = (client.home.run(view.id) / "attempts/i1-c1-b1/agent/1-stdout").read_bytes()
    assert len(log) > 10_100_000
    assert b"caf\xc3\xa9 \xff\xf0\x9f" in log


async def test_neither_words_on_stderr_nor_the_exit_status_speak_against_a_whole_stream(
    run_goal: RunGoal, talks: Talks
) -> None:
    """S14, S23: and neither speaks for one without its last word, whatever is right on stderr."""
    harmless = talks("begin; echo 'ERROR: 401 cache miss' >&2; echo 3 > level; stop")
    failing = talks("begin; echo 3 > level; stop; exit 1")
    mute = talks("begin; echo 3 > level; say hm 1; echo 'all went well' >&2; exit 1")

    view = await run_goal(harmless, failing, mute, verify=TOP, promote="none")

    candidates = view.iterations[0].candidates
    assert [c.status for c in candidates] == [CandidateStatus.PASSED] * 3
    assert [(c.outcome, c.agent_exit) for c in candidates] == [
        ("done", "ok"), ("done", "exit 1"), ("crashed", "exit 1")
    ]  # fmt: skip


async def test_no_escape_sequence_of_an_agents_reaches_a_screen(
    client: Client, run_goal: RunGoal, talks: Talks
) -> None:
    """S24: by its words, its errors or its stderr, nor by a reviewer's; page and next prompt are clean, too."""
    noisy = rf"printf '\033[31mred\033]0;owned\007\n' >&2; echo '{{\"type\": \"{PAINT}\"}}'"
    talking = talks(f"begin; {noisy}; say '{PAINT}' 5; echo 1 > level; stop '{PAINT}'")
    failing = talks(f"begin; {noisy}; say hm; fail 'refused to: {PAINT}'")
    vetoing = talks(f"begin; fail '401 unauthorized {PAINT}'")

    view = await run_goal(talking, failing, max_iterations=2, sign_off=vetoing, verify=("grep -q 1 level",))

    assert view.iterations[0].review.startswith("vetoed: reviewer: not authorised")
    shown = [await _on_a_terminal(client, *command.split(), view.id) for command in COMMANDS]
    shown += [event_line(event).encode() async for event in client.events(view.id)]
    shown += [(await _page(client, view.id)).encode()]
    shown += [(client.home.run(view.id) / "attempts/i2-c1-b4/prompt.md").read_bytes()]
    assert all(b"red" in text for text in (shown[0], *shown[2:5]))
    assert {mark for mark in MARKS for text in shown if mark in text} == set()


async def _on_a_terminal(client: Client, *args: str) -> bytes:
    """What `orch ARGS` prints where it could be executed."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "orch.cli.main", *args,
        stdin=asyncio.subprocess.DEVNULL, stdout=theirs, stderr=theirs,
        env={**os.environ, "ORCH_STATE": str(client.home.root), "NO_COLOR": "1"},
    )  # fmt: skip
    os.close(theirs)
    said = await asyncio.to_thread(_rest, ours)
    await process.wait()
    return said


def _rest(descriptor: int) -> bytes:
    """All that comes until nobody holds the terminal any more."""
    said = b""
    try:
        while part := os.read(descriptor, 1 << 16):
            said += part
    except OSError:  # the way in which a terminal tells its end
        pass
    os.close(descriptor)
    return said


async def _page(client: Client, run: str) -> str:
    """What the Web UI shows of a run."""
    temporal = await connect(client.home)
    handle = temporal.get_workflow_handle(run)
    metadata: WorkflowMetadata = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return metadata.current_details
