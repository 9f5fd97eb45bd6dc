"""mini-swe-agent: what the recorded trajectories of version 2.4.6 come to, and how it is started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orch.activities.agents.adapter import Launch
from orch.activities.agents.mini import COMMAND_S, MOST_TURNS, MiniAgent
from orch.activities.agents.said import Failed, Said, Text, Total, Turn
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.outcome import OutcomeKind
from orch.workflows.model.usage import Usage

from .left_behind import launch_in, read_left
from .recorded import OK, STREAMS, failed, names, signalled

AGENT = MiniAgent()
K = OutcomeKind
UNKNOWN = Usage()
STOPPED = Exit(kind=ExitKind.SIGNALLED, number=15, detail="stopped")
TRAJECTORY = "trajectory.json"


def _used(fresh: int, cached: int, out: int, usd: float | None = None) -> Usage:
    return Usage(tokens_in=fresh, tokens_cached=cached, tokens_out=out, usd=usd)


TABLE = [
    # run, exit, outcome, usage, turns; it has no sessions
    ("badtool", OK, K.EMPTY_ANSWER, _used(3000, 0, 60), 3),  # three calls of an unknown tool are its end
    ("ctxfull", failed(1), K.CONTEXT_FULL, UNKNOWN, 1),
    ("drop1", OK, K.DONE, _used(1300, 1200, 52), 2),  # it does not stream, so nothing is cut
    ("e401", failed(1), K.NOT_AUTHORISED, UNKNOWN, 1),
    ("e429", failed(1), K.RATE_LIMITED, UNKNOWN, 1),
    ("empty", OK, K.EMPTY_ANSWER, _used(1000, 0, 20), 1),
    ("maxtok", OK, K.CONTEXT_FULL, _used(3000, 0, 60), 3),
    ("maxturns", OK, K.TURN_LIMIT, _used(3300, 0, 63), 3),
    ("maxusd", OK, K.BUDGET_LIMIT, _used(2100, 0, 41, 0.00566), 2),
    ("ok", OK, K.DONE, _used(1300, 1200, 52), 2),
    ("priced", OK, K.DONE, _used(1300, 1200, 52, 0.00527), 2),
    ("refuse", OK, K.REFUSED, _used(3000, 0, 60), 3),
    ("term", STOPPED, K.KILLED, _used(1000, 200, 40), 1),
]


@pytest.mark.parametrize(("run", "ended", "kind", "usage", "turns"), TABLE, ids=[row[0] for row in TABLE])
def test_recorded_run_comes_to(
    run: str, ended: Exit, kind: OutcomeKind, usage: Usage, turns: int | None, tmp_path: Path
) -> None:
    limits = {"max-turns": "3"} if run == "maxturns" else {"max-usd": "0.005"}

    outcome, reading = read_left(AGENT, f"mini-{run}", launch_in(tmp_path, AGENT, settings=limits), ended=ended)

    assert (outcome.kind, reading.usage, reading.turns) == (kind, usage, turns)


def test_every_recorded_run_stands_in_the_table() -> None:
    assert {name.partition(".")[0] for name in names("mini-")} == {f"mini-{row[0]}" for row in TABLE}


def test_answer_is_what_it_submitted_else_what_it_said_last(tmp_path: Path) -> None:
    launch = launch_in(tmp_path, AGENT)
    run = json.loads((STREAMS / f"mini-ok.{TRAJECTORY}").read_text())

    _, submitted = read_left(AGENT, "mini-ok", launch)
    run["info"]["submission"] = "\n"
    run["messages"][-3]["extra"]["response"]["choices"][0]["message"]["content"] = "I say so."
    said = _said(run, launch_in(tmp_path / "b", AGENT))

    assert submitted.answer.strip() == "All done: I created hello.py."
    assert Text("I say so.", final=True) in said


def _said(run: dict[str, Any], launch: Launch) -> list[Said]:
    """What a trajectory says."""
    launch.private.mkdir(parents=True)
    (launch.private / TRAJECTORY).write_text(json.dumps(run))
    return list(AGENT.leftovers(launch, ""))


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff\xfe", b'{"info": 5, "messages": {}}', b"null"])
def test_trajectory_that_cannot_be_read_is_unknown_and_no_success_of_a_failed_run(text: bytes, tmp_path: Path) -> None:
    launch = launch_in(tmp_path, AGENT)
    launch.private.mkdir()
    (launch.private / TRAJECTORY).write_bytes(text)

    assert list(AGENT.leftovers(launch, "")) == []
    assert read_left(AGENT, "mini-term", launch, ended=signalled(15))[0].kind is K.CRASHED


@pytest.mark.parametrize(
    "messages",
    [
        [{"extra": {"response": "ModelResponse(…)"}}],
        [{"extra": {"response": {"usage": {"prompt_tokens": -1, "completion_tokens": "many"}, "choices": [7]}}}],
        [None, 5, {"extra": None}],
    ],
)
def test_messages_of_another_form_count_nothing(messages: list[object], tmp_path: Path) -> None:
    run = {"info": {"exit_status": "Submitted", "model_stats": {"api_calls": 10**9}}, "messages": messages}

    said = _said(run, launch_in(tmp_path, AGENT))

    assert said.count(Turn()) == MOST_TURNS
    assert Total(UNKNOWN) in said


def test_run_that_never_began_says_why_on_stderr(tmp_path: Path) -> None:
    words = "ValueError: No default model set"

    assert list(AGENT.leftovers(launch_in(tmp_path, AGENT), f"Traceback\n{words}\n")) == [Failed(K.CRASHED, words)]


def test_task_only_points_to_the_prompt_and_the_settings_stand_in_a_file(tmp_path: Path) -> None:
    secrets = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    limits = {"max-turns": "7.5", "max-usd": "0.25"}
    launch = launch_in(tmp_path, AGENT, "coder", settings=limits, secrets=secrets)

    call = AGENT.call(launch)

    (path, text), *others = call.files.items()
    config = json.loads(text)
    assert (path, others) == (launch.private / "mini.yaml", [])
    assert call.argv == ("mini", "-c", "mini.yaml", "-c", str(path), "-o", str(launch.private / TRAJECTORY))
    assert str(launch.prompt) in config["run"]["task"]
    assert config["agent"] == {"mode": "yolo", "confirm_exit": False, "step_limit": 7, "cost_limit": 0.25}
    assert config["environment"] == {"timeout": COMMAND_S}
    assert config["model"] == {"cost_tracking": "ignore_errors", "model_name": "openai/coder"}
    assert (call.env["OPENAI_API_BASE"], call.env["OPENAI_API_KEY"]) == (secrets["OPENAI_BASE_URL"], "k")
    assert call.env["MSWEA_GLOBAL_CONFIG_DIR"].startswith(str(launch.home))


def test_without_limits_it_has_none_and_without_a_server_its_own_models(tmp_path: Path) -> None:
    launch = launch_in(tmp_path, AGENT, "anthropic/opus", secrets={"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"})

    call = AGENT.call(launch)

    (config,) = map(json.loads, call.files.values())
    assert (config["agent"]["step_limit"], config["agent"]["cost_limit"]) == (0, 0)
    assert config["model"] == {"cost_tracking": "ignore_errors", "model_name": "anthropic/opus"}
    assert {name: key for name, key in call.env.items() if name.endswith("_KEY")} == {"ANTHROPIC_API_KEY": "a"}


def test_it_prints_no_events_and_has_no_session_to_take_up(tmp_path: Path) -> None:
    assert AGENT.translator() is None
    assert (AGENT.traits.streams, AGENT.traits.resumes) == (False, False)
    assert not AGENT.adopt(launch_in(tmp_path, AGENT, session="abcd-1"), tmp_path)
