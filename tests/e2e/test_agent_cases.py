"""The S cases, faults of agents as subprocesses that users have met: which test shows each, or why it cannot apply.

A test of a command (`cmd:`) shows what all agents share: stdin, environment, slots, the supervisor. What an agent with
an event stream does otherwise is shown by programs that talk as such agents do (`talking.py`), and by the real ones.

S01  stdin is a file, whatever the worker's own is.
     activities/test_jobs.py::test_an_agent_that_reads_stdin_ends_whatever_the_workers_stdin_is
     e2e/test_agent_cases.py::test_prompt_comes_whole_to_agents_of_every_kind_and_is_no_command
S02  Silence and time are two limits.
     e2e/test_agent_limits.py::test_silence_stops_who_streams_and_time_stops_who_talks
     e2e/test_agent_limits.py::test_reviewer_is_stopped_by_the_same_limits_and_its_silence_is_a_veto
S04  The prompt is data. (There is no remote wrapper: an agent runs on the host of its worker.)
     e2e/test_cases.py::test_prompt_arrives_byte_for_byte_and_is_never_run
     e2e/test_agent_cases.py::test_prompt_comes_whole_to_agents_of_every_kind_and_is_no_command
S05  Lines of any length.
     e2e/test_cases.py::test_odd_output_breaks_nothing_and_is_kept_whole
     e2e/test_agent_output.py::test_events_are_read_round_lines_of_any_size_and_bytes_of_any_kind
     activities/agents/test_stream.py::test_line_of_100_mb_is_one_unreadable_line_and_keeps_memory_bounded
S06  A limit ends all descendants.
     activities/test_jobs.py::test_a_grandchild_with_the_pipe_open_does_not_delay_the_limit
     e2e/test_agent_limits.py::test_silence_stops_who_streams_and_time_stops_who_talks
     e2e/test_cancelling.py::test_cancelled_run_says_so_and_leaves_nothing_running
S09  Who has no stream may be silent.
     e2e/test_agent_limits.py::test_agent_without_a_stream_may_be_silent_to_its_end
S11  A usage limit is waited for by all at once.
     e2e/test_agent_rests.py::test_candidates_share_one_rest_that_is_shown_and_go_on_after_it
     e2e/test_agent_rests.py::test_rest_ends_at_once_when_the_run_is_cancelled
     e2e/test_agent_rests.py::test_limit_that_lasts_beyond_the_deadline_ends_every_candidate_at_once
     e2e/test_agent_rests.py::test_reviewer_rests_too_and_answers_after_it
     e2e/test_agent_kills.py::test_killed_worker_costs_nobody_anything
S13  Bytes that are no UTF-8.
     e2e/test_cases.py::test_odd_output_breaks_nothing_and_is_kept_whole
     e2e/test_agent_output.py::test_events_are_read_round_lines_of_any_size_and_bytes_of_any_kind
     activities/agents/test_stream.py::test_any_split_gives_the_same_events
S14  Words on stderr decide nothing.
     e2e/test_cases.py::test_only_tree_and_exit_status_speak_of_a_candidate
     e2e/test_agent_output.py::test_neither_words_on_stderr_nor_the_exit_status_speak_against_a_whole_stream
S15  Spend is counted once, and in time.
     e2e/test_agent_spending.py::test_each_attempt_of_one_session_pays_for_what_it_used_itself
     e2e/test_agent_spending.py::test_candidates_pass_the_runs_budget_by_no_more_than_one_of_them_costs
     e2e/test_agent_spending.py::test_command_is_not_started_when_the_budget_is_passed_already
     e2e/test_agent_kills.py::test_killed_worker_costs_nobody_anything
S16  Supervisor, sandbox and worker may die. The sandbox is no container: it has no limit and no image of its own, it
     is the agent's parent process, and the agent dies with it. So there is nothing to be given up but a program that
     does not start, and that has the limits of any step; the probe before a run has its own.
     e2e/test_agent_sandbox.py::test_agent_ends_with_its_supervisor_or_sandbox_and_what_it_did_is_kept
     e2e/test_agent_sandbox.py::test_sandbox_that_fails_or_blocks_at_its_start_costs_its_own_candidate_and_no_other
     e2e/test_agent_sandbox.py::test_program_that_is_gone_at_its_launch_ends_the_run_before_the_others_are_launched
     e2e/test_agent_kills.py::test_killed_worker_costs_nobody_anything
S17  Unknown is not zero.
     e2e/test_agent_spending.py::test_unknown_cost_is_shown_as_unknown_and_the_run_warns_that_its_budget_cannot_hold
S18  No variable of another agent's session, or of git's, gets through; all agents have one environment.
     e2e/test_cases.py::test_worker_inside_an_agents_session_hides_it_and_keeps_to_its_slots
     activities/test_processes.py::test_the_environment_is_an_allow_list
S19  Sessions and homes are each candidate's own.
     e2e/test_agent_sessions.py::test_sessions_and_homes_are_each_candidates_own_in_whatever_language_it_speaks
     e2e/test_agent_sessions.py::test_session_whose_record_is_gone_begins_anew_and_says_so
     workflows/rules/test_sessions.py::test_no_two_share_a_session_without_a_fork
S20  A session goes on in its own candidate's folder.
     e2e/test_agent_sessions.py::test_sessions_and_homes_are_each_candidates_own_in_whatever_language_it_speaks
     e2e/test_agent_kills.py::test_killed_worker_costs_nobody_anything
S21  Output without end.
     e2e/test_agent_flood.py::test_four_flooding_agents_and_checks_leave_the_worker_small_and_their_last_words_count
     activities/test_jobs.py::test_a_flood_is_capped_on_disk_and_in_memory
S22  Slots bound what runs at once, whatever the agents.
     e2e/test_cases.py::test_worker_inside_an_agents_session_hides_it_and_keeps_to_its_slots
     e2e/test_cancelling.py::test_runs_cancelled_while_their_candidates_queue_leave_no_slot_taken
S23  A good tree counts though its agent exited 1.
     e2e/test_cases.py::test_only_tree_and_exit_status_speak_of_a_candidate
     e2e/test_agent_output.py::test_neither_words_on_stderr_nor_the_exit_status_speak_against_a_whole_stream
S24  Nothing that is printed drives a screen.
     e2e/test_cases.py::test_odd_output_breaks_nothing_and_is_kept_whole
     e2e/test_agent_output.py::test_no_escape_sequence_of_an_agents_reaches_a_screen
     cli/test_logs.py::test_nothing_an_agent_prints_reaches_the_terminal_but_text
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from orch import Client
from orch.activities.prompts import HEADER
from orch.workflows.model.view import CandidateStatus, RunView

RunGoal = Callable[..., Awaitable[RunView]]
Talks = Callable[..., str]

TESTS = Path(__file__).parents[1]
NUMBERS = (1, 2, 4, 5, 6, 9, 11, *range(13, 25))
"""Those that were collected; the others never were."""


def test_every_case_stands_in_the_table_once_and_every_test_it_names_exists() -> None:
    numbers = [int(number) for number in re.findall(r"^S(\d\d)  \S", __doc__ or "", re.MULTILINE)]
    named = re.findall(r"^     (\S+\.py)::(\w+)$", __doc__ or "", re.MULTILINE)

    assert numbers == list(NUMBERS)
    assert len(named) == (__doc__ or "").count("::")
    assert [name for path, name in named if f"def {name}(" not in (TESTS / path).read_text("utf-8")] == []


@pytest.mark.engine
async def test_prompt_comes_whole_to_agents_of_every_kind_and_is_no_command(
    client: Client, run_goal: RunGoal, talks: Talks, project: Path
) -> None:
    """S01, S04: its first line is never the goal's."""
    goal = "/clear '\"$(touch pwn)`touch pwn`\n@level -p --help \u65e5\U0001f600 \x01\x1b[31m\r\n!!"
    script = 'begin; cmp $HOME/stdin "$ORCH_PROMPT_FILE" && test ! -e pwn && echo 3 > level; stop'

    view = await run_goal(*(talks(script, agent) for agent in ("pi", "claude", "codex")), goal=goal, promote="none")

    assert [c.status for c in view.iterations[0].candidates] == [CandidateStatus.PASSED] * 3
    for number in (1, 2, 3):
        told = (client.home.run(view.id) / f"attempts/i1-c{number}-b{number}/home/stdin").read_bytes()
        assert told.startswith(f"{HEADER}\n".encode())
        assert goal.encode() in told
    assert not (project / "pwn").exists()
