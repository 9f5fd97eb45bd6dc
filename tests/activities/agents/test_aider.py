"""aider: what the recorded event logs and chats of version 0.86.2 come to, and how it is started."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from orch.activities.agents.aider import AiderAgent
from orch.activities.agents.said import Failed, Turn, Used
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.outcome import OutcomeKind
from orch.workflows.model.usage import Usage

from .left_behind import launch_in, read_left
from .recorded import OK, STREAMS, names, signalled

AGENT = AiderAgent()
K = OutcomeKind
UNKNOWN = Usage()
STOPPED = Exit(kind=ExitKind.SIGNALLED, number=15, detail="stopped")
EDIT = Usage(tokens_in=1234, tokens_out=40)

TABLE = [
    # run, exit, outcome, usage, turns; it has no sessions, and never says how many tokens were cached
    ("ctxfull", OK, K.CONTEXT_FULL, UNKNOWN, 1),
    ("drop1", OK, K.DONE, EDIT, 1),  # it does not stream, so nothing is cut
    ("e401", OK, K.NOT_AUTHORISED, UNKNOWN, 1),
    ("e429", OK, K.RATE_LIMITED, UNKNOWN, 1),
    ("e429x2", OK, K.DONE, EDIT, 1),
    ("e500", OK, K.OVERLOADED, UNKNOWN, 1),
    ("empty", OK, K.EMPTY_ANSWER, Usage(tokens_in=1000, tokens_out=20), 1),
    ("maxtok", OK, K.CONTEXT_FULL, UNKNOWN, 1),
    ("ok", OK, K.DONE, EDIT, 1),
    ("priced", OK, K.DONE, Usage(tokens_in=1234, tokens_out=40, usd=0.003235), 1),
    ("refuse", OK, K.EMPTY_ANSWER, Usage(tokens_in=1000, tokens_out=20), 1),  # it looks the same as an empty answer
    ("term", STOPPED, K.KILLED, UNKNOWN, 1),
    ("text", OK, K.DONE, Usage(tokens_in=10, tokens_out=5), 1),
]


@pytest.mark.parametrize(("run", "ended", "kind", "usage", "turns"), TABLE, ids=[row[0] for row in TABLE])
def test_recorded_run_comes_to(
    run: str, ended: Exit, kind: OutcomeKind, usage: Usage, turns: int, tmp_path: Path
) -> None:
    outcome, reading = read_left(AGENT, f"aider-{run}", launch_in(tmp_path, AGENT), ended=ended)

    assert (outcome.kind, reading.usage, reading.turns) == (kind, usage, turns)


def test_every_recorded_run_stands_in_the_table() -> None:
    assert {name.partition(".")[0] for name in names("aider-")} == {f"aider-{row[0]}" for row in TABLE}


def test_answer_is_the_models_last_text_and_an_error_has_its_own_words(tmp_path: Path) -> None:
    _, done = read_left(AGENT, "aider-ok", launch_in(tmp_path / "a", AGENT))
    outcome, _ = read_left(AGENT, "aider-e429", launch_in(tmp_path / "b", AGENT))

    assert done.answer == "I create it.\n\nhello.py\n```\nprint(1)\n```"
    assert outcome.detail == "litellm.RateLimitError: RateLimitError: OpenAIException - scripted error 429"


def test_model_that_quotes_an_error_has_not_failed(tmp_path: Path) -> None:
    launch = launch_in(tmp_path, AGENT)
    launch.private.mkdir()
    shutil.copyfile(STREAMS / "aider-ok.events.jsonl", launch.private / "events.jsonl")
    (launch.private / "chat.md").write_text("\n#### task  \n\nThe log said\n> litellm.RateLimitError: 429\n\nMended.\n")

    assert not [one for one in AGENT.leftovers(launch, "") if isinstance(one, Failed)]


def test_killed_run_still_tells_what_it_used_and_is_no_success(tmp_path: Path) -> None:
    launch = launch_in(tmp_path, AGENT)
    launch.private.mkdir()
    lines = (STREAMS / "aider-ok.events.jsonl").read_text().splitlines()
    (launch.private / "events.jsonl").write_text("\n".join([*lines[:-1], lines[-1][:20]]))

    said = list(AGENT.leftovers(launch, ""))

    assert [type(one).__name__ for one in said] == ["Turn", "Used"]
    assert read_left(AGENT, "aider-term", launch, ended=signalled(9))[0].kind is K.CRASHED


@pytest.mark.parametrize("events", [b"", b"{", b"[]\n7\n", b"\xff\xfe\n", b'{"event": 5, "properties": []}\n'])
def test_events_that_cannot_be_read_tell_nothing(events: bytes, tmp_path: Path) -> None:
    launch = launch_in(tmp_path, AGENT)
    launch.private.mkdir()
    (launch.private / "events.jsonl").write_bytes(events)

    assert list(AGENT.leftovers(launch, "")) == []


def test_numbers_of_another_form_are_unknown_never_zero(tmp_path: Path) -> None:
    launch = launch_in(tmp_path, AGENT)
    launch.private.mkdir()
    odd = '{"event": "message_send", "properties": {"prompt_tokens": -1, "completion_tokens": "x", "cost": 0}}\n'
    (launch.private / "events.jsonl").write_text('{"event": "message_send_starting"}\n' + odd)

    assert list(AGENT.leftovers(launch, "")) == [Turn(), Used(UNKNOWN)]


def test_it_is_started_with_one_message_that_it_commits_nothing_of(tmp_path: Path) -> None:
    secrets = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    launch = launch_in(tmp_path, AGENT, "coder", settings={"effort": "high"}, secrets=secrets)

    call = AGENT.call(launch)

    options, private = call.argv[1:], launch.private
    assert call.argv[0] == "aider"
    assert {"--yes-always", "--no-auto-commits", "--no-dirty-commits", "--no-gitignore"} <= set(options)
    pairs = dict(zip(options[13::2], options[14::2], strict=True))
    assert pairs == {
        "--message-file": str(launch.prompt),
        "--analytics-log": str(private / "events.jsonl"),
        "--chat-history-file": str(private / "chat.md"),
        "--input-history-file": str(private / "input"),
        "--model": "openai/coder",
        "--reasoning-effort": "high",
    }
    assert (call.env["OPENAI_API_BASE"], call.env["OPENAI_API_KEY"]) == (secrets["OPENAI_BASE_URL"], "k")
    assert call.files == {}


def test_without_a_server_it_has_its_own_models_and_their_keys(tmp_path: Path) -> None:
    call = AGENT.call(launch_in(tmp_path, AGENT, "anthropic/opus", secrets={"ANTHROPIC_API_KEY": "a"}))

    assert call.argv[-2:] == ("--model", "anthropic/opus")
    assert {name: key for name, key in call.env.items() if name.startswith(("OPENAI", "ANTHROPIC"))} == {
        "ANTHROPIC_API_KEY": "a"
    }


def test_it_prints_no_events_and_has_no_session_to_take_up(tmp_path: Path) -> None:
    assert AGENT.translator() is None
    assert (AGENT.traits.streams, AGENT.traits.resumes) == (False, False)
    assert not AGENT.adopt(launch_in(tmp_path, AGENT, session="abcd-1"), tmp_path)
