"""`orch logs` on the folders that agents left: transcripts, raw bytes, prompts, launches and reviews."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities.artifacts import append_events, write_whole
from orch.activities.home import Home
from orch.worker.state import open_state
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.budget import Caps
from orch.workflows.model.candidate import Candidate
from orch.workflows.model.event import (
    AttemptStarted,
    CandidateMeasured,
    Event,
    GateMeasured,
    HeadReviewed,
    RunEnded,
    RunStarted,
)
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.outcome import Outcome, OutcomeKind
from orch.workflows.model.promotion import PromoteTarget
from orch.workflows.model.reason import Reason, RunReason
from orch.workflows.model.review import Review
from orch.workflows.model.verdict import RungResult, Verdict

RUN = "goal-mend-1a2b3c"
FIRST = AttemptKey(run=RUN, iteration=1, candidate=1, binding=1)
SECOND = AttemptKey(run=RUN, iteration=1, candidate=2, binding=2)
GATE = AttemptKey(run=RUN, iteration=1, candidate=0, binding=0)
TREE = "3" * 40

BEGAN = {"type": "thread.started", "thread_id": "t-1"}
ENDED = {"type": "turn.completed", "usage": {"input_tokens": 90, "output_tokens": 10}}


def item(**fields: Any) -> dict[str, Any]:
    """An event of codex about something that is over."""
    return {"type": "item.completed", "item": fields}


def spoken(text: str) -> dict[str, Any]:
    """An event of codex: the model spoke."""
    return item(type="agent_message", text=text)


def stream(*events: dict[str, Any]) -> bytes:
    """Events as codex prints them."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def ledger(second: str = "codex") -> list[Event]:
    """A run of two candidates, a command and an agent that streams, with a reviewer that vetoed."""
    green = Verdict(
        tree=TREE, contract_digest="4" * 64, host="h", rungs_total=1,
        rungs=(RungResult(name="unit", exit=Exit(kind=ExitKind.OK)),),
    )  # fmt: skip
    facts: list[tuple[type[Any], dict[str, Any]]] = [
        (RunStarted, {
            "run": RUN, "repo": "/repo", "goal": "mend it", "agents": ("cmd:x", second), "caps": Caps(),
            "promote": PromoteTarget(), "sign_off": "codex",
        }),
        (AttemptStarted, {"attempt": FIRST, "agent": "cmd:x"}),
        (AttemptStarted, {"attempt": SECOND, "agent": second}),
        (CandidateMeasured, {"candidate": Candidate(attempt=FIRST, agent="cmd:x")}),
        (CandidateMeasured, {"candidate": Candidate(attempt=SECOND, agent=second)}),
        (GateMeasured, {"ordinal": 1, "verdict": green}),
        (HeadReviewed, {"ordinal": 1, "tree": TREE, "review": Review(approved=False)}),
        (RunEnded, {"status": "failed", "reason": Reason(code=RunReason.ITERATION_CAP)}),
    ]  # fmt: skip
    return [kind(seq=seq, at="2026-01-02T03:04:05.000+00:00", **given) for seq, (kind, given) in enumerate(facts, 1)]


@pytest.fixture
def ended(state: Path) -> Home:
    """A state directory with the run, which has ended."""
    home = Home(state)
    open_state(home)
    append_events(home, RUN, ledger())
    return home


Leave = Callable[..., Path]


@pytest.fixture
def leave(ended: Home) -> Leave:
    """Leave the output of a job below an attempt's folder, as one that has ended unless `over` is false."""

    def job(name: str, stdout: bytes, stderr: bytes = b"", *, key: AttemptKey = SECOND, over: bool = True) -> Path:
        folder = ended.attempt(key) / name
        folder.mkdir(parents=True)
        (folder / "1-stdout").write_bytes(stdout)
        (folder / "1-stderr").write_bytes(stderr)
        if over:
            (folder / "exit.json").write_text("{}")
        return folder

    return job


def on_a_terminal(*args: str, columns: int = 40) -> tuple[bytes, str]:
    """What `orch ARGS` prints on a terminal of its own, and its stderr."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "orch.cli.main", *args],
        stdout=theirs, stderr=subprocess.PIPE, env={**os.environ, "COLUMNS": str(columns)},
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    while chunk := _read(ours):
        seen += chunk
    os.close(ours)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr.decode()
    return seen.replace(b"\r\n", b"\n"), stderr.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other side is gone
        return b""


def test_an_event_stream_is_printed_as_a_transcript(orch: Any, leave: Leave) -> None:
    tool = {"type": "command_execution", "command": "pytest -q"}
    events = (
        BEGAN,
        spoken("I look at it."),
        {"type": "item.started", "item": tool},
        item(**tool, status="failed", exit_code=1, aggregated_output="...\n1 failed\n"),
        ENDED,
    )
    leave("agent", stream(*events), b"warned\n")

    done = orch("logs", RUN, "--candidate", "2")

    assert done.stdout.splitlines() == [
        "began: session t-1",
        "I look at it.",
        "$ pytest -q",
        "  failed: 1 failed",
        "ended · 100 tok in this session",
        "warned",
    ]
    assert done.stderr.splitlines()[1:] == ["--- agent stdout", "--- agent stderr"]


def test_raw_is_what_was_printed(orch: Any, leave: Leave) -> None:
    data = stream(BEGAN, ENDED) + b"\x1b]0;title\x07half a line"
    leave("agent", data, b"\xff\n")

    assert orch("logs", RUN, "--candidate", "2", "--raw").stdout_bytes == data + b"\xff\n"


def test_an_agent_without_events_is_printed_as_it_is(orch: Any, leave: Leave) -> None:
    data = b"\x1b[31mred\x1b[0m \xff\n" + stream(BEGAN) + b"no newline"
    leave("agent", data, key=FIRST)

    assert orch("logs", RUN, "--candidate", "1").stdout_bytes == data


def test_launches_are_printed_in_their_order_with_titles_between(orch: Any, leave: Leave) -> None:
    for number in (10, 2, 1):
        leave("agent" if number == 1 else f"agent-{number}", stream(spoken(f"try {number}"), ENDED))

    done = orch("logs", RUN, "--candidate", "2")

    assert [line for line in done.stdout.splitlines() if line.startswith("try")] == ["try 1", "try 2", "try 10"]
    assert [line for line in done.stderr.splitlines() if line.startswith("---")] == [
        "--- agent stdout",
        "--- agent-2 stdout",
        "--- agent-10 stdout",
    ]


def test_a_stream_that_broke_off_says_so_unless_it_still_runs(orch: Any, leave: Leave) -> None:
    leave("agent", stream(BEGAN) + json.dumps(spoken("last words")).encode())
    leave("agent-2", stream(BEGAN), over=False)

    assert orch("logs", RUN, "--candidate", "2").stdout.splitlines() == [
        "began: session t-1",
        "last words",
        "the stream ends here, without a last word of the agent",
        "began: session t-1",
    ]


def test_the_limit_that_orch_stopped_an_agent_for_closes_its_transcript(orch: Any, leave: Leave) -> None:
    limit = Outcome(kind=OutcomeKind.TURN_LIMIT, detail="4 turns of 3")
    write_whole(leave("agent", stream(BEGAN)) / "limit.json", limit.model_dump_json())

    assert orch("logs", RUN, "--candidate", "2").stdout.splitlines()[-1] == "stopped: turn limit: 4 turns of 3"


def test_lines_that_are_no_events_are_told_and_unknown_events_with_debug_only(orch: Any, leave: Leave) -> None:
    unknown = [{"type": "thread.polished"}, {"type": "thread.polished"}, {"type": "evil \x1b[31m"}]
    leave("agent", b"Error: not logged in\n" + stream(BEGAN, *unknown, ENDED))

    done, debugged = orch("logs", RUN, "--candidate", "2"), orch("logs", RUN, "--candidate", "2", "-v")

    assert "(1 line of it could not be read as events: --raw shows all)" in done.stderr
    assert "unknown" not in done.stderr
    assert "(3 events of unknown kinds: 'thread.polished' 2, 'evil" in debugged.stderr
    assert "\x1b" not in debugged.stderr
    assert debugged.stdout == done.stdout


def test_an_agent_whose_package_is_gone_is_printed_as_it_is(orch: Any, ended: Home, leave: Leave) -> None:
    (ended.run(RUN) / "ledger.jsonl").unlink()
    append_events(ended, RUN, ledger(second="departed:model"))
    leave("agent", b"what it said\n")

    done = orch("logs", RUN, "--candidate", "2")

    assert done.stdout == "what it said\n"
    assert "warning: unknown agent 'departed'" in done.stderr


def test_prompt_is_the_artifact_and_nothing_else(orch: Any, ended: Home, leave: Leave) -> None:
    leave("agent", stream(BEGAN))
    prompt = "# Task\n\n\x1b[31mgöal\n".encode() + b"\xff"
    (ended.attempt(SECOND) / "prompt.md").write_bytes(prompt)

    assert orch("logs", RUN, "--candidate", "2", "--prompt").stdout_bytes == prompt


def test_prompts_of_all_launches_are_printed_in_their_order(orch: Any, ended: Home, leave: Leave) -> None:
    leave("agent", b"")
    for name, text in (("prompt-2.md", "go on\n"), ("prompt.md", "do it\n"), ("prompt-10.md", "and on\n")):
        (ended.attempt(SECOND) / name).write_text(text)

    done = orch("logs", RUN, "--candidate", "2", "--prompt")

    assert done.stdout == "do it\ngo on\nand on\n"
    assert "--- prompt-2.md" in done.stderr


def test_the_reviewers_transcript_and_prompt(orch: Any, ended: Home, leave: Leave) -> None:
    leave("review/agent", stream(spoken("I object."), ENDED), key=GATE)
    (ended.attempt(GATE) / "review" / "prompt.md").write_text("Judge this.\n")

    assert orch("logs", RUN, "--review").stdout.splitlines()[0] == "I object."
    assert orch("logs", RUN, "--review", "--iteration", "1", "--prompt").stdout == "Judge this.\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--review", "--candidate", "1"), "--review and --candidate contradict each other"),
        (("--prompt", "-f"), "--prompt and --follow contradict each other"),
        (("--review", "--iteration", "7"), "has no review of iteration 7"),
        (("--prompt", "--candidate", "1"), "candidate 1 has no prompt"),
    ],
)
def test_what_is_not_there_is_refused_with_a_hint(args: tuple[str, ...], message: str, orch: Any, ended: Home) -> None:
    done = orch("logs", RUN, *args)

    assert done.exit_code == 2
    assert message in done.stderr
    assert "hint: " in done.stderr


@pytest.mark.parametrize(
    ("kept", "message"), [(RunStarted, "has no reviewer"), ((RunStarted, AttemptStarted), "has not been reviewed")]
)
def test_a_review_that_never_was_is_refused(kept: Any, message: str, orch: Any, ended: Home) -> None:
    (ended.run(RUN) / "ledger.jsonl").unlink()
    events = [event for event in ledger() if isinstance(event, kept)]
    if kept is RunStarted:
        events = [event.model_copy(update={"sign_off": ""}) for event in events]
    append_events(ended, RUN, [*events, ledger()[-1].model_copy(update={"seq": len(events) + 1})])

    done = orch("logs", RUN, "--review")

    assert done.exit_code == 2
    assert message in done.stderr


def test_nothing_an_agent_prints_reaches_the_terminal_but_text(leave: Leave) -> None:
    evil = "\x1b]0;owned\x07\x1b[31mred\x1b[0m and wide " + "w" * 60
    leave("agent", stream(spoken(evil), item(type="agent_message", text="\x9b31mtwo"), ENDED), f"{evil}\r\n".encode())

    seen, stderr = on_a_terminal("logs", RUN, "--candidate", "2")

    assert seen.decode().splitlines() == [
        "red and wide " + "w" * 27,
        "w" * 33,
        "two",
        "ended · 100 tok in this session",
        "red and wide " + "w" * 60,
    ]
    assert "\x1b" not in stderr


def test_raw_reaches_the_terminal_as_it_is(leave: Leave) -> None:
    leave("agent", b"\x1b[31mred\x1b[0m\n", key=FIRST)

    assert on_a_terminal("logs", RUN, "--candidate", "1", "--raw")[0] == b"\x1b[31mred\x1b[0m\n"


def test_a_command_that_draws_a_progress_bar_is_readable_on_the_terminal(leave: Leave) -> None:
    bar = b"".join(b"\r%d %%" % number for number in range(101))
    leave("agent", b"\xe2\x82" + b"\xac start\n" + bar + b"\ndone", key=FIRST)

    assert on_a_terminal("logs", RUN, "--candidate", "1")[0].decode() == "€ start\n100 %\ndone"


def test_a_line_of_100_mb_takes_no_memory(leave: Leave) -> None:
    folder = leave("agent", b"")
    with (folder / "1-stdout").open("r+b") as file:
        file.write(stream(BEGAN))
        file.truncate(100 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + stream(spoken("still here"), ENDED))
    program = (
        "import sys, resource\nfrom click.testing import CliRunner\nfrom orch.cli.main import cli\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"done = CliRunner().invoke(cli, ['logs', {RUN!r}, '--candidate', '2'])\n"
        "sys.stdout.write(done.stdout)\nsys.stderr.write(done.stderr)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    *lines, grown = done.stdout.splitlines()

    assert lines == ["began: session t-1", "still here", "ended · 100 tok in this session"]
    assert "1 line of it could not be read" in done.stderr
    assert int(grown) < 120  # MiB: most of it are the modules that are loaded when they are needed
