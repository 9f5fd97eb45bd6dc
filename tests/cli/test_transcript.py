"""What agents say, as lines."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.activities.agents.said import (
    Began,
    Denied,
    Edited,
    Ended,
    Failed,
    Retrying,
    Said,
    SessionTotal,
    Text,
    Tool,
    ToolEnded,
    Total,
    Turn,
    Unknown,
    Used,
)
from orch.cli.transcript import MOST_KINDS, Transcript, plain
from orch.workflows.model.outcome import Outcome, OutcomeKind
from orch.workflows.model.usage import Usage

LIMIT = OutcomeKind.RATE_LIMITED


def lines(*said: Said, width: int = 0, tree: str = "") -> list[str]:
    """One event for each thing said."""
    transcript = Transcript(width=width, tree=tree)
    return [line for one in said for line in transcript.lines([one])]


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (Began(model="m-1", session="abc"), "began: model m-1, session abc"),
        (Tool("Bash", "pytest -q"), "$ pytest -q"),
        (Tool("command_execution", "/bin/bash -lc 'pytest -q && echo '\\''ok'\\'''"), "$ pytest -q && echo 'ok'"),
        (Tool("shell", "bash -lc 'unfinished"), "$ bash -lc 'unfinished"),
        (Tool("bash", "cat > a <<X\none\ntwo\nX\n"), "$ cat > a <<X … (+3 lines)"),
        (Tool("Read", "/state/tree/src/x.py"), "Read src/x.py"),
        (Tool("todo"), "todo"),
        (Tool("Write", "/state/tree/src/x.py"), "edit src/x.py"),
        (Edited("src/x.py"), "edit src/x.py"),
        (Edited("/elsewhere/x.py"), "edit /elsewhere/x.py"),
        (ToolEnded(ok=False, output="trace\nE  1 failed\n\n"), "  failed: E  1 failed"),
        (ToolEnded(ok=False), "  failed: no word why"),
        (Retrying(LIMIT, after_s=12.4), "waits 12s: rate limited"),
        (Retrying(LIMIT, "429", after_s=0.5), "waits 0.5s: rate limited: 429"),
        (Retrying(OutcomeKind.STREAM_BROKEN), "tries again: stream broken"),
        (Denied("Bash"), "denied: Bash"),
        (Failed(OutcomeKind.NOT_AUTHORISED, "bad\nkey"), "failed: not authorised: bad key"),
        (Used(Usage(tokens_in=1000, tokens_out=24)), "so far 1,024 tok"),
        (Total(Usage(usd=0.0144)), "so far $0.01"),
        (SessionTotal(Usage(usd=1.5, tokens_in=2)), "so far $1.50 2 tok in this session"),
        (Ended(), "ended"),
        (Ended("end_turn"), "ended: end_turn"),
    ],
)
def test_each_word_has_its_line(said: Said, line: str) -> None:
    assert lines(said, tree="/state/tree") == [line]


@pytest.mark.parametrize(
    "said",
    [Began(), Text(""), Text(" \n"), ToolEnded(ok=True, output="fine"), Turn(), Unknown("x"), Used(Usage())],
)
def test_what_tells_nothing_has_no_line(said: Said) -> None:
    assert lines(said) == []


def test_text_is_as_it_is() -> None:
    assert lines(Text("\nI see.\n\n\tindented, $HOME and 100 %\n")) == ["I see.", "", "\tindented, $HOME and 100 %"]


def test_the_answer_that_repeats_the_last_text_is_not_shown_twice() -> None:
    assert lines(Text("Done."), Text("Done.", final=True)) == ["Done."]
    assert lines(Text("Done."), Text("All done.", final=True)) == ["Done.", "All done."]


def test_an_edit_that_its_tool_announced_is_shown_once() -> None:
    both = (Tool("apply_patch", "a.py, b.py"), Edited("a.py"), Edited("b.py"), Edited("a.py"))

    assert lines(*both) == ["edit a.py, b.py", "edit a.py"]


def test_a_session_is_named_again_only_when_it_changes() -> None:
    first, second, more = Began(session="a"), Began(session="b"), Began(session="b", model="m")

    assert lines(first, first, second, more) == ["began: session a", "session b", "model m"]


def test_the_cost_is_not_told_again_before_anything_else_happened() -> None:
    used = Used(Usage(tokens_in=10))

    assert lines(used, used, Text("Hm."), used) == ["so far 10 tok", "Hm.", "so far 20 tok"]


def test_the_cost_runs_and_closes_the_transcript() -> None:
    used = Used(Usage(tokens_in=1000, tokens_out=24, usd=0.5))
    transcript = Transcript()
    events: list[list[Said]] = [
        [Turn(), Text("Hm.")],
        [used],
        [Turn(), Used(Usage())],
        [used, Text("Done."), Ended("end_turn")],
    ]

    assert [list(transcript.lines(event)) for event in events] == [
        ["Hm."],
        ["so far $0.50 1,024 tok"],
        [],
        ["Done.", "ended: end_turn · 2 turns · $1.00 2,048 tok"],
    ]


def test_a_failure_or_an_end_that_is_told_twice_is_shown_once() -> None:
    failed = Failed(LIMIT, "later")

    assert lines(failed, failed) == ["failed: rate limited: later"]
    assert lines(Ended("stop"), Ended("stop")) == ["ended: stop"]


@pytest.mark.parametrize(
    ("said", "stopped", "closing"),
    [
        ((Text("Hm."),), None, ["the stream ends here, without a last word of the agent"]),
        ((Ended(),), None, []),
        ((Failed(LIMIT),), None, []),
        ((), Outcome(kind=OutcomeKind.TURN_LIMIT, detail="4 turns of 3"), ["stopped: turn limit: 4 turns of 3"]),
    ],
)
def test_a_stream_without_a_last_word_says_so(
    said: tuple[Said, ...], stopped: Outcome | None, closing: list[str]
) -> None:
    transcript = Transcript()
    list(transcript.lines(said))

    assert list(transcript.close(stopped)) == closing


@pytest.mark.parametrize(
    "evil",
    [
        "\x1b]0;owned\x07",  # the terminal's title
        "\x1b]8;;http://evil.example\x1b\\",  # a link
        "\x1b[31m",  # a colour
        "\x1b[2J\x1b[H",  # clear the screen
        "\x1bP+q\x1b\\",  # ask the terminal
        "\x9b31m",  # a colour in one character
        "\x08\x00\x7f",
        "\u202e",  # the rest is read backwards
        "\u2066",
    ],
)
def test_no_control_character_comes_through(evil: str) -> None:
    word = f"a{evil}b"
    said = (
        Began(word, word, word), Text(word), Tool("bash", word), Tool(word, word), Edited(word), Denied(word),
        ToolEnded(ok=False, output=word), Retrying(LIMIT, word), Failed(LIMIT, word), Ended(word),
    )  # fmt: skip

    assert lines(Text(word)) == ["ab"]
    assert not any(unicodedata.category(char).startswith("C") for line in lines(*said) for char in line)


@given(st.text())
def test_plain_text_is_printable_whatever_it_was(text: str) -> None:
    seen = plain(text)

    assert not [char for char in seen if unicodedata.category(char) in {"Cc", "Cs"} and char not in "\n\t"]


def test_a_line_that_was_overwritten_is_shown_in_its_last_state() -> None:
    assert lines(Text("10 %\r50 %\r100 %\r\nnext")) == ["100 %", "next"]


@pytest.mark.parametrize("width", [20, 40, 80])
def test_no_line_is_wider_than_the_terminal_and_no_text_is_lost(width: int) -> None:
    text = "word " * 100 + "\n" + "x" * 5000 + "\n\tafter a tab " * 9
    said = (Text(text), Tool("bash", "y" * 500), Edited("z" * 500), Failed(LIMIT, "w" * 900), Ended("v" * 100))
    seen = lines(*said, width=width)

    assert max(map(len, seen)) == width
    assert sum(line.count("word") for line in seen) == 100
    assert sum(line.count("x") for line in seen) == 5000
    assert [line for line in seen if line.startswith("$")] == ["$ " + "y" * (width - 3) + "…"]


def test_what_is_no_text_is_short_also_where_nothing_is_cut() -> None:
    said = (Tool("bash", "y" * 10**6), Failed(LIMIT, "w" * 10**6), ToolEnded(ok=False, output="z" * 10**6))

    assert max(map(len, lines(*said))) <= 1000


def test_unknown_events_are_counted_by_kind_and_the_kinds_are_bounded() -> None:
    transcript = Transcript()
    list(transcript.lines([Unknown("new"), Unknown("new"), *(Unknown(str(number)) for number in range(1000))]))

    assert transcript.unknown["new"] == 2
    assert len(transcript.unknown) == MOST_KINDS
