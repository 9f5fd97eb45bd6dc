"""Follow a real process: it is stopped at the first limit it passes, and read the same whoever follows it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Protocol

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.testing import ActivityEnvironment

from orch.activities.agents.following import LIMIT, stopped_for
from orch.activities.agents.preparing import AgentRun
from orch.activities.agents.running import Ran, run_supervised
from orch.activities.artifacts import write_whole
from orch.workflows.model.attempt import SpendCaps
from orch.workflows.model.exit import ExitKind
from orch.workflows.model.outcome import Outcome, OutcomeKind
from orch.workflows.model.usage import Usage

DONE = """echo '{"text": "done"}'; echo '{"end": "stop"}'"""
TURN = """echo '{"turn": 1, "tokens": 10}'"""
ENDLESS = """while :; do echo '{"turn": 1, "tokens": 10}'; sleep 0.1; done"""


class Stage(Protocol):
    launch: Callable[..., AgentRun]


def outcome(ran: Ran) -> tuple[str, str]:
    return ran.outcome.kind.value, ran.outcome.detail


async def until(condition: Callable[[], object], limit_s: float = 10.0) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.02)


def in_activity(run: AgentRun) -> tuple[ActivityEnvironment, asyncio.Task[Ran]]:
    """The launch inside an activity that can be cancelled."""
    environment = ActivityEnvironment()
    running: Coroutine[Any, Any, Ran] = environment.run(run_supervised, run)
    return environment, asyncio.ensure_future(running)


async def test_agent_that_ends_before_the_first_look_is_read_whole(stage: Stage) -> None:
    ran = await run_supervised(stage.launch(f"""echo '{{"session": "s-1", "tokens": 7, "turn": 1}}'; {DONE}"""))

    assert outcome(ran) == ("done", "")
    assert (ran.report.session, ran.report.usage.tokens, ran.answer) == ("s-1", 7, "done")
    assert ran.report.account is not None
    assert (ran.report.account.turns, ran.report.account.stop) == (1, "stop")


async def test_last_line_needs_no_newline(stage: Stage) -> None:
    ran = await run_supervised(stage.launch("""printf '{"text": "done", "end": "stop"}'"""))

    assert (outcome(ran), ran.answer) == (("done", ""), "done")


async def test_agent_without_a_turn_limit_is_stopped_at_its_specs(stage: Stage) -> None:
    ran = await run_supervised(stage.launch(f"{TURN}; {TURN}; {TURN}; {TURN}; sleep 20", "talker,max-turns=3"))

    assert outcome(ran) == ("turn_limit", "4 turns of 3")
    assert (ran.report.limit, ran.report.exit.detail) == (OutcomeKind.TURN_LIMIT, "4 turns of 3")
    assert ran.report.usage.tokens == 40


async def test_agent_is_stopped_at_the_tokens_of_its_spec(stage: Stage) -> None:
    ran = await run_supervised(stage.launch(f"{TURN}; {TURN}; {TURN}; sleep 20", "talker,max-tokens=25"))

    assert outcome(ran) == ("budget_limit", "30 tokens of the attempt's 25")
    assert ran.report.usage.wall_s < 10


async def test_runs_cap_counts_all_its_launches(stage: Stage) -> None:
    cap = SpendCaps(tokens=100)
    first = await run_supervised(stage.launch(f"""echo '{{"tokens": 80}}'; {DONE}""", candidate=1, spend=cap))
    second = await run_supervised(stage.launch("""echo '{"tokens": 30}'; sleep 20""", candidate=2, spend=cap))

    assert outcome(first) == ("done", "")
    assert outcome(second) == ("budget_limit", "110 tokens of the run's 100")
    assert second.report.usage.tokens == 30


async def test_running_agents_are_stopped_by_what_they_spend_together(stage: Stage) -> None:
    def spending(tokens: int) -> AgentRun:
        script = f"""echo '{{"tokens": {tokens}}}'; sleep 20"""
        return stage.launch(script, candidate=tokens, spend=SpendCaps(tokens=100))

    both = await asyncio.gather(*(run_supervised(spending(tokens)) for tokens in (80, 30)))

    assert [outcome(ran) for ran in both] == [("budget_limit", "110 tokens of the run's 100")] * 2
    assert [ran.report.usage.tokens for ran in both] == [80, 30]


async def test_silent_agent_is_stopped_and_a_talking_one_is_not(stage: Stage) -> None:
    talk = f"""for n in 1 2 3 4 5 6; do echo '{{"turn": 1}}'; sleep 0.5; done; {DONE}"""
    silent = stage.launch("""echo '{"turn": 1}'; sleep 20""", "talker,idle=2", candidate=1)
    talking = stage.launch(talk, "talker,idle=2", candidate=2)
    stopped, ended = await asyncio.gather(run_supervised(silent), run_supervised(talking))

    assert outcome(stopped) == ("timed_out", "silent for 2 s")
    assert outcome(ended) == ("done", "")


async def test_agent_is_stopped_at_the_deadline_with_what_it_used(stage: Stage) -> None:
    ran = await run_supervised(stage.launch(ENDLESS, deadline=time.time() + 2))

    assert outcome(ran) == ("timed_out", "deadline")
    assert ran.report.usage.tokens


async def test_agent_may_take_its_own_time_from_its_launch_on(stage: Stage) -> None:
    ran = await run_supervised(replace(stage.launch(ENDLESS), limit_s=1.5))

    assert outcome(ran) == ("timed_out", "1.5 s")


async def test_who_follows_later_reads_the_same(stage: Stage) -> None:
    script = """echo began >> ../count; echo '{"session": "s-1", "turn": 1, "tokens": 10}'
        while [ ! -e ../go ]; do sleep 0.05; done; """
    run = stage.launch(script + """echo '{"turn": 1, "tokens": 5}'; """ + DONE)
    environment, detached = in_activity(run)
    await until((run.place.folder / "count").exists)
    environment.worker_shutdown()
    environment.cancel(ActivityCancellationDetails(worker_shutdown=True))
    with pytest.raises(asyncio.CancelledError):
        await detached
    (run.place.folder / "go").touch()

    attached, again = await run_supervised(run), await run_supervised(run)

    assert outcome(attached) == ("done", "")
    assert attached == again
    assert (attached.report.usage.tokens, attached.report.session) == (15, "s-1")
    assert (run.place.folder / "count").read_text() == "began\n"


async def test_agent_that_is_cancelled_for_good_is_ended_and_what_it_used_is_known(stage: Stage) -> None:
    run = stage.launch(f"trap 'touch ../told' TERM; {ENDLESS}")
    environment, running = in_activity(run)
    await until(lambda: (run.job / "1-stdout").exists() and (run.job / "1-stdout").stat().st_size)
    environment.cancel(ActivityCancellationDetails(cancel_requested=True))

    ran = await running

    assert outcome(ran) == ("killed", "stopped")
    assert ran.report.usage.tokens
    assert (run.place.folder / "told").exists()


async def test_limit_is_known_to_who_follows_later(stage: Stage) -> None:
    run = stage.launch(ENDLESS, "talker,max-turns=2")
    first, second = await run_supervised(run), await run_supervised(run)

    assert first.outcome.kind is OutcomeKind.TURN_LIMIT
    assert second == first
    assert stopped_for(run.job) == first.outcome


async def test_agent_that_ended_by_itself_was_not_stopped_at_a_limit(stage: Stage) -> None:
    run = stage.launch(DONE)
    write_whole(run.job / LIMIT, Outcome(kind=OutcomeKind.TURN_LIMIT).model_dump_json())

    ran = await run_supervised(run)

    assert (ran.outcome.kind, ran.report.limit, ran.report.exit.kind) == (OutcomeKind.DONE, None, ExitKind.OK)


async def test_noise_and_a_line_of_20_mb_do_not_hide_the_events_around_them(stage: Stage) -> None:
    noise = r"""printf 'warning\n{"half": \n\377\376\n{"text": "a\377b"}\n[1]\n{"news": 1}\n'"""
    flood = """printf '{"text": "'; head -c 20000000 /dev/zero | tr '\\0' x; echo '"}'"""
    script = f"""echo '{{"tokens": 3}}'; {noise}; {flood}; echo '{{"tokens": 4}}'; {DONE}"""
    ran = await run_supervised(stage.launch(script))

    assert outcome(ran) == ("done", "")
    assert ran.report.usage.tokens == 7
    assert ran.report.account is not None
    assert ran.report.account.unknown_events == 1 + 5


async def test_stream_that_is_cut_in_the_middle_of_a_line_is_broken(stage: Stage) -> None:
    ran = await run_supervised(stage.launch("""echo '{"tokens": 3}'; printf '{"text": "do'"""))

    assert outcome(ran) == ("stream_broken", "ok, without its closing event")
    assert ran.report.usage == Usage(tokens_in=3, wall_s=ran.report.usage.wall_s)


async def test_agent_that_fails_in_the_same_way_again_and_again_is_stopped(stage: Stage) -> None:
    loop = """while :; do echo '{"turn": 1}'; echo '{"fail": "context_full"}'; sleep 0.1; done"""

    ran = await run_supervised(stage.launch(loop))

    assert ran.outcome.kind is OutcomeKind.CONTEXT_FULL
    assert "times in a row: as told" in ran.outcome.detail
    assert ran.report.usage.wall_s < 10


async def test_budget_holds_for_an_agent_that_tells_its_usage_in_a_file_only(stage: Stage) -> None:
    told = """echo 900 > "$HOME/used"; echo '{"text": "busy"}'; sleep 20"""

    ran = await run_supervised(stage.launch(told, "talker,max-tokens=500"))

    assert outcome(ran) == ("budget_limit", "900 tokens of the attempt's 500")
    assert ran.report.usage.tokens == 900
