"""Goal runs from start to every way of ending, on a real engine with real git and real processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from orch import Client
from orch.workflows.model.reason import CandidateReason, PromotionReason, RunReason
from orch.workflows.model.review import Extension
from orch.workflows.model.view import CandidateStatus, RunStatus, RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]
Climb = Callable[[int], str]
Fingerprint = Callable[[Path], dict[str, str]]


async def test_furthest_candidate_wins_and_only_its_change_lands(
    run_goal: RunGoal, climb: Climb, project: Path, fingerprint: Fingerprint
) -> None:
    before = fingerprint(project)

    view = await run_goal("cmd:true", climb(1), climb(3), climb(2))

    assert view.status is RunStatus.SUCCEEDED
    assert view.iterations[0].winner == 3
    assert view.iterations[0].decided_by == "rungs"
    changed = {name for name, value in fingerprint(project).items() if before.get(name) != value}
    assert {name.rpartition(":")[2] for name in changed} == {"level"}
    assert (project / "level").read_text() == "3\n"
    assert view.promoted is not None
    assert view.promoted.tree == next(c.tree for c in view.iterations[0].candidates if c.index == 3)


async def test_best_red_candidate_becomes_the_head_of_the_next_iteration(run_goal: RunGoal, project: Path) -> None:
    step = "cmd:echo $(( $(cat level) + 1 )) > level"

    view = await run_goal(step, "cmd:true")

    assert view.status is RunStatus.SUCCEEDED
    assert [iteration.winner for iteration in view.iterations] == [1, 1, 1]
    assert (project / "level").read_text() == "3\n"


async def test_next_prompt_tells_what_failed_and_what_others_tried(
    run_goal: RunGoal, climb: Climb, client: Client
) -> None:
    loser = """cmd:echo '{"message": "tried the short way"}' > $ORCH_USAGE_FILE; echo 1 > level"""

    view = await run_goal(climb(2), loser, max_iterations=2, promote="none")

    first, second = (
        (client.home.run(view.id) / "attempts" / name / "prompt.md").read_text() for name in ("i1-c1-b1", "i2-c1-b3")
    )
    assert "raise the level" in first
    assert "Not yet satisfied" not in first
    assert "verify-3" in second.partition("Not yet satisfied")[2]
    assert "tried the short way" in second


async def test_failed_run_leaves_the_tree_as_it_was(
    run_goal: RunGoal, climb: Climb, project: Path, fingerprint: Fingerprint
) -> None:
    before = fingerprint(project)

    view = await run_goal(climb(1), climb(2), max_iterations=1)

    assert view.status is RunStatus.FAILED
    assert view.reason is not None
    assert view.reason.code is RunReason.ITERATION_CAP
    assert fingerprint(project) == before


async def test_agents_that_change_nothing_end_the_run_as_stuck(run_goal: RunGoal) -> None:
    view = await run_goal("cmd:true", "cmd:true")

    assert view.reason is not None
    assert view.reason.code is RunReason.STUCK_NO_DIFF
    assert len(view.iterations) == 1


async def test_crashing_agents_end_the_run_after_two_iterations(run_goal: RunGoal) -> None:
    view = await run_goal("cmd:exit 9", "cmd:kill -9 $$")

    assert view.reason is not None
    assert view.reason.code is RunReason.STUCK_CRASHED
    assert len(view.iterations) == 2


async def test_green_ladder_ends_the_run_before_any_agent(run_goal: RunGoal, climb: Climb) -> None:
    view = await run_goal(climb(3), verify=("true",))

    assert view.reason is not None
    assert view.reason.code is RunReason.ALREADY_GREEN
    assert view.iterations == ()


async def test_rung_that_cannot_run_is_refused_before_any_agent(run_goal: RunGoal, climb: Climb) -> None:
    view = await run_goal(climb(3), verify=("./no-such-program",))

    assert view.reason is not None
    assert view.reason.code is RunReason.RUNG_CANNOT_RUN
    assert view.iterations == ()


async def test_failing_setup_is_refused_before_any_agent(run_goal: RunGoal, climb: Climb, tmp_path: Path) -> None:
    contract = tmp_path / "contract.yaml"
    contract.write_text("goal: raise the level\nrungs:\n  - {name: one, run: grep -q 3 level}\nsetup: exit 4\n")

    view = await run_goal(climb(3), verify=(), goal="", contract=contract)

    assert view.reason is not None
    assert view.reason.code is RunReason.SETUP_FAILED
    assert view.iterations == ()


async def test_edit_of_a_protected_test_is_dropped_and_named(run_goal: RunGoal, project: Path) -> None:
    cheat = "cmd:echo exit 0 > tests/check.sh"

    view = await run_goal(cheat, verify=("sh tests/check.sh",), protect=("tests/**",), max_iterations=1)

    (candidate,) = view.iterations[0].candidates
    assert candidate.status is CandidateStatus.RED
    assert candidate.restored == ("tests/check.sh",)
    assert candidate.changed is False
    assert (project / "tests/check.sh").read_text() == "exit 1\n"


async def test_agent_past_its_limit_is_stopped_and_its_tree_still_measured(run_goal: RunGoal) -> None:
    started = time.monotonic()

    view = await run_goal("cmd:echo 2 > level; sleep 60", attempt_timeout=5.0, max_iterations=1)

    (candidate,) = view.iterations[0].candidates
    assert candidate.agent_exit.startswith("timed out")
    assert candidate.rungs_passed == 2
    assert time.monotonic() - started < 30


async def test_deadline_bounds_running_agents_and_ends_the_run(run_goal: RunGoal) -> None:
    view = await run_goal("cmd:echo 1 >> level; sleep 60", deadline=10.0, attempt_timeout=50.0)

    assert view.reason is not None
    assert view.reason.code in {RunReason.DEADLINE, RunReason.STUCK_TIMEOUT}
    assert len(view.iterations) == 1


async def test_usage_of_winner_and_losers_is_counted_once(run_goal: RunGoal, climb: Climb) -> None:
    report = """cmd:echo '{"tokens_in": 100, "tokens_out": 20, "usd": 0.5}' > $ORCH_USAGE_FILE; echo 3 > level"""

    view = await run_goal(report, report, climb(1))

    assert view.usage.tokens == 240
    assert view.usage.usd == 1.0
    silent = next(c for c in view.iterations[0].candidates if c.index == 3)
    assert silent.usage.tokens is None


async def test_token_budget_ends_the_run(run_goal: RunGoal) -> None:
    spend = """cmd:echo '{"tokens_in": 600}' > $ORCH_USAGE_FILE; echo 1 > level; date +%N >> noise"""

    view = await run_goal(spend, budget_tokens=1000, max_iterations=9)

    assert view.reason is not None
    assert view.reason.code is RunReason.BUDGET_TOKENS
    assert view.usage.tokens == 600


async def test_cheaper_of_two_equal_candidates_wins(run_goal: RunGoal) -> None:
    spend = """cmd:echo '{"tokens_in": %d}' > $ORCH_USAGE_FILE; echo 3 > level; echo %d > which"""

    view = await run_goal(spend % (900, 1), spend % (300, 2))

    assert view.iterations[0].winner == 2
    assert view.iterations[0].decided_by == "cost"
    loser = next(c for c in view.iterations[0].candidates if c.index == 1)
    assert loser.reason is not None
    assert loser.reason.code is CandidateReason.COSTLIER


async def test_sign_off_needs_a_clear_answer(run_goal: RunGoal, climb: Climb, project: Path) -> None:
    nonce = 'grep -o \'nonce": "[0-9a-f]*\' "$ORCH_PROMPT_FILE" | head -1 | cut -d\'"\' -f3'
    approve = f"""cmd:printf '{{"nonce": "%s", "veto": false, "reason": "fine"}}\\n' $({nonce})"""

    view = await run_goal(climb(3), sign_off=approve)

    assert view.status is RunStatus.SUCCEEDED
    assert "approved" in view.iterations[0].review
    assert (project / "level").read_text() == "3\n"


@pytest.mark.parametrize(
    "reviewer", ["cmd:echo looks good to me", "cmd:exit 1", """cmd:echo '{"nonce": "guessed", "veto": false}'"""]
)
async def test_reviewer_without_a_parseable_answer_vetoes(
    run_goal: RunGoal, climb: Climb, project: Path, reviewer: str
) -> None:
    view = await run_goal(climb(3), sign_off=reviewer, max_iterations=1)

    assert view.status is RunStatus.FAILED
    assert view.reason is not None
    assert view.reason.code is RunReason.ITERATION_CAP
    assert (project / "level").read_text() == "0\n"


async def test_sealed_run_waits_until_it_is_approved(client: Client, project: Path, climb: Climb) -> None:
    run = await client.start_goal(goal="raise", repo=project, verify=("grep -q 3 level",), agent=(climb(3),), seal=True)
    await _until(client, run, RunStatus.WAITING)

    await client.approve(run, by="tester")
    view = await client.result(run)

    assert view.status is RunStatus.SUCCEEDED


async def test_rejected_seal_ends_the_run_before_any_agent(client: Client, project: Path, climb: Climb) -> None:
    run = await client.start_goal(goal="raise", repo=project, verify=("grep -q 3 level",), agent=(climb(3),), seal=True)
    await _until(client, run, RunStatus.WAITING)

    await client.reject(run, by="tester")
    view = await client.result(run)

    assert view.reason is not None
    assert view.reason.code is RunReason.SEAL_REJECTED
    assert view.iterations == ()


async def test_unanswered_seal_is_never_an_approval(run_goal: RunGoal, climb: Climb) -> None:
    view = await run_goal(climb(3), seal=True, deadline=2.0)

    assert view.reason is not None
    assert view.reason.code is RunReason.DEADLINE
    assert view.iterations == ()


async def test_cancel_cleans_up_and_leaves_the_tree_as_it_was(
    client: Client, project: Path, fingerprint: Fingerprint, climb: Climb
) -> None:
    before = fingerprint(project)
    agents = ("cmd:echo $$ > pid; sleep 300", climb(1))
    run = await client.start_goal(goal="raise", repo=project, verify=("grep -q 3 level",), agent=agents, candidates=2)
    pid = await _wait_for_file(client.home.run(run), "attempts/i1-c1-b1/upper/pid")

    await client.cancel(run)
    view = await client.result(run)

    assert view.status is RunStatus.CANCELLED
    assert fingerprint(project) == before
    assert not [path for name in ("tree", "upper") for path in client.home.run(run).glob(f"attempts/*/{name}")]
    assert pid


async def test_edit_made_meanwhile_is_never_overwritten_and_the_result_stays_to_be_had(
    client: Client, project: Path
) -> None:
    agents = ("cmd:sleep 2; echo 3 > level",)
    run = await client.start_goal(goal="raise", repo=project, verify=("grep -q 3 level",), agent=agents)
    await _wait_for_file(client.home.run(run), "attempts/i1-c1-b1/prompt.md")
    (project / "level").write_text("mine\n")

    view = await client.result(run)

    assert view.reason is not None
    assert view.reason.code is RunReason.PROMOTION_REFUSED
    assert view.reason.data["why"] == PromotionReason.EDITED
    assert (project / "level").read_text() == "mine\n"
    (project / "level").write_text("0\n")
    assert (await client.promote(run)).refused is None
    assert (project / "level").read_text() == "3\n"
    assert (await client.restore(run)).refused is None
    assert (project / "level").read_text() == "0\n"
    assert (project / "notes.txt").read_text() == "edited by the user\n"


async def test_branch_promotion_makes_one_branch_and_touches_no_file(
    run_goal: RunGoal, climb: Climb, project: Path, fingerprint: Fingerprint, kit: Any
) -> None:
    before = fingerprint(project)

    view = await run_goal(climb(3), promote="branch:fix/level")

    assert view.status is RunStatus.SUCCEEDED
    assert kit.git(project, "show", "fix/level:level").strip() == "3"
    after = fingerprint(project)
    assert {name for name in before if before[name] != after.get(name)} <= {"for-each-ref"}


async def test_second_run_into_the_same_tree_is_refused(client: Client, project: Path) -> None:
    options: dict[str, Any] = {"goal": "raise", "repo": project, "verify": ("grep -q 3 level",)}
    run = await client.start_goal(agent=("cmd:sleep 30",), **options)
    await _wait_for_file(client.home.run(run), "attempts/i1-c1-b1/prompt.md")

    with pytest.raises(Exception, match=run):
        await client.start_goal(agent=("cmd:echo 3 > level",), **options)
    await client.cancel(run)
    await client.result(run)


async def test_note_and_extension_reach_the_next_iteration(client: Client, project: Path) -> None:
    agent = 'cmd:grep -q "use three" "$ORCH_PROMPT_FILE" && echo 3 > level; echo $ORCH_ITERATION > which; sleep 1'
    run = await client.start_goal(
        goal="raise", repo=project, verify=("grep -q 3 level",), agent=(agent,), max_iterations=1
    )
    await _wait_for_file(client.home.run(run), "attempts/i1-c1-b1/prompt.md")

    await client.note(run, "use three")
    caps = await client.extend(run, Extension(max_iterations=3, candidates=2))
    view = await client.result(run)

    assert caps.max_iterations == 3
    assert view.status is RunStatus.SUCCEEDED
    assert [len(iteration.candidates) for iteration in view.iterations] == [1, 2]


async def test_candidates_past_the_host_cap_queue(client: Client, project: Path) -> None:
    agent = "cmd:sleep 0.4; echo $ORCH_CANDIDATE > level"

    view = await client.result(
        await client.start_goal(
            goal="raise", repo=project, verify=("grep -q 9 level",), agent=(agent,), candidates=9, promote="none"
        )
    )

    assert view.status is RunStatus.SUCCEEDED
    assert view.iterations[0].winner == 9


async def _until(client: Client, run: str, status: RunStatus) -> None:
    async with asyncio.timeout(60):
        while (await client.view(run)).status is not status:
            await asyncio.sleep(0.1)


async def _wait_for_file(folder: Path, name: str) -> str:
    async with asyncio.timeout(60):
        while not (folder / name).exists() or not (folder / name).read_text():
            await asyncio.sleep(0.05)
    return (folder / name).read_text()
