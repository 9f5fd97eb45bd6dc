"""The faults that a comparable tool shipped with its best-of-N, each as the fact that must hold here (1 to 11)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType

import pytest

from orch import Client
from orch.activities import promotion
from orch.activities.git import Git
from orch.workflows.model.event import (
    AttemptStarted,
    BaselineTaken,
    CandidateMeasured,
    Event,
    IterationDecided,
    IterationStarted,
    RunEnded,
    RunPromoted,
)
from orch.workflows.model.promotion import Promote, PromoteTarget
from orch.workflows.model.view import CandidateStatus, RunStatus, RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]
Climb = Callable[[int], str]
Fingerprint = Callable[[Path], dict[str, str]]

STEP = "echo $(( $(cat level) + 1 )) > level"
COUNT = 'echo started >> "$(dirname "$ORCH_USAGE_FILE")/starts"'
"""Leaves a line beside the usage report, which the agent may write whatever the sandbox forbids."""


async def test_agents_work_in_workspaces_of_their_own(
    client: Client, project: Path, fingerprint: Fingerprint, tmp_path: Path
) -> None:
    """Fault 1: while agents write, nothing changes in the user's tree, and each one stands in its own folder."""
    before, gate = fingerprint(project), tmp_path / "gate"
    agent = f'cmd:pwd > where; pwd > "$(dirname "$ORCH_USAGE_FILE")/where"; until [ -e {gate} ]; do sleep 0.05; done'
    run = await client.start_goal(
        goal="say where", repo=project, verify=("test -e where",), agent=(agent,), candidates=2, promote="none"
    )
    places = [client.home.run(run) / f"attempts/i1-c{i}-b{i}/private/where" for i in (1, 2)]
    await _until(lambda: all(place.exists() and place.read_text() for place in places))
    during = fingerprint(project)
    gate.touch()
    view = await client.result(run)

    assert during == before
    roots = {Path(place.read_text().strip()) for place in places}
    assert roots == {place.parents[1].resolve() / "tree" for place in places}
    assert {c.paths for c in view.iterations[0].candidates} == {("where",)}


async def test_every_iteration_runs_agents_of_its_own(client: Client, run_goal: RunGoal) -> None:
    """Fault 2: no attempt is ever taken for another one; ordinals grow and are not used again."""
    view = await run_goal(f"cmd:{COUNT}; {STEP}", f"cmd:{COUNT}; {STEP}")

    assert view.status is RunStatus.SUCCEEDED
    keys = [e.attempt for e in await _events(client, view.id) if isinstance(e, AttemptStarted)]
    assert sorted((k.iteration, k.candidate) for k in keys) == [(i, c) for i in (1, 2, 3) for c in (1, 2)]
    assert sorted(k.binding for k in keys) == [1, 2, 3, 4, 5, 6]
    assert _starts(client, view.id) == dict.fromkeys((k.name for k in keys), 1)


async def test_crashed_winner_is_followed_by_agents_that_run(client: Client, run_goal: RunGoal, project: Path) -> None:
    """Fault 3: a winner whose process failed moves the head, and the next iteration pays for new agents."""
    view = await run_goal(f"cmd:{COUNT}; {STEP}; exit 9", "cmd:true")

    assert view.status is RunStatus.SUCCEEDED
    assert [i.winner for i in view.iterations] == [1, 1, 1]
    assert {c.agent_exit for i in view.iterations for c in i.candidates if c.index == 1} == {"exit 9"}
    assert _starts(client, view.id) == {"i1-c1-b1": 1, "i2-c1-b3": 1, "i3-c1-b5": 1}
    assert (project / "level").read_text() == "3\n"


async def test_ignored_files_and_setup_reach_every_copy(run_goal: RunGoal, project: Path, tmp_path: Path) -> None:
    """Fault 4: what the checks need is in the agents' workspaces and in the measured copies, and is not recorded."""
    (project / "wanted.log").write_text("3\n")
    contract = tmp_path / "contract.yaml"
    contract.write_text(
        "goal: copy the wanted level\nsetup: cp wanted.log built.log\ncarry: [wanted.log]\n"
        "rungs:\n  - {name: built, run: cmp wanted.log built.log}\n  - {name: level, run: cmp level built.log}\n"
    )

    view = await run_goal("cmd:cp built.log level", "cmd:true", goal="", verify=(), contract=contract)

    assert view.status is RunStatus.SUCCEEDED
    assert view.baseline_rungs_passed == 1
    assert [(c.rungs_passed, c.paths) for c in view.iterations[0].candidates] == [(2, ("level",)), (1, ())]
    assert not (project / "built.log").exists()


async def test_agents_start_from_what_the_user_sees_and_then_from_the_winner(
    client: Client, run_goal: RunGoal, project: Path, kit: ModuleType
) -> None:
    """Fault 5: dirty and untracked files are there, and the second iteration stands on the first one's tree."""
    first = "grep -q edited notes.txt && grep -q untracked draft.txt && echo first > seen"
    second = "grep -q first seen && echo second > seen"
    agent = f"cmd:case $ORCH_ITERATION in 1) {first};; 2) {second};; esac"

    view = await run_goal(agent, verify=("test -e seen", "grep -q second seen"), promote="none")

    assert view.status is RunStatus.SUCCEEDED
    events = await _events(client, view.id)
    starts = [e.tree for e in events if isinstance(e, IterationStarted)]
    heads = [e.tree for e in events if isinstance(e, IterationDecided)]
    kit.git(project, "add", "-A")
    assert starts == [kit.git(project, "write-tree"), heads[0]]


async def test_promotion_gives_exactly_the_winners_tree(
    client: Client, run_goal: RunGoal, project: Path, fingerprint: Fingerprint, kit: ModuleType
) -> None:
    """Fault 6: nothing of an earlier winner stays, the user's edits do, and the promoted tree is the tested one."""
    before = fingerprint(project)
    first = "echo x > leftover; mkdir -p a/b; echo y > a/b/c; git mv tests/check.sh moved.sh"
    second = (
        "rm leftover; rm -r a; echo z > a; echo z > 'caf\u00e9 \"q\".txt'; "
        "chmod +x moved.sh; ln -s moved.sh link; echo 3 > level"
    )
    agent = f"cmd:case $ORCH_ITERATION in 1) {first};; 2) {second};; esac"

    view = await run_goal(agent, verify=("test -e moved.sh", "test -x moved.sh && grep -q 3 level"))

    assert view.status is RunStatus.SUCCEEDED
    changed = {n for n, v in fingerprint(project).items() if before.get(n) != v} | before.keys() - fingerprint(project)
    assert changed == {"a", 'café "q".txt', "level", "link", "moved.sh", "tests/check.sh"}
    assert (await client.restore(view.id)).refused is None
    assert fingerprint(project) == before
    again = await client.promote(view.id)
    kit.git(project, "add", "-A")
    assert again.tree == kit.git(project, "write-tree") == view.iterations[1].candidates[0].tree
    assert (project / "notes.txt").read_text() == "edited by the user\n"


async def test_promotion_run_again_finds_its_work_done(
    client: Client, run_goal: RunGoal, climb: Climb, project: Path, fingerprint: Fingerprint
) -> None:
    """Fault 7: the step may be repeated after a crash; it moves nothing twice and is recorded once."""
    view = await run_goal(climb(3))
    events = await _events(client, view.id)
    (baseline,) = [e for e in events if isinstance(e, BaselineTaken)]
    assert view.head is not None
    after, head = fingerprint(project), Git(client.home.store(baseline.store) / "store.git")
    commit = head.text("rev-parse", f"refs/orch/{view.id}/head")
    request = Promote(
        run=view.id, repo=str(project), store=baseline.store, old=baseline.commit, new=commit, target=PromoteTarget()
    )

    again = promotion.promote(client.home, request)

    assert (again.refused, again.paths) == (None, 0)
    assert fingerprint(project) == after
    assert [e.promotion.tree for e in events if isinstance(e, RunPromoted)] == [again.tree]


async def test_result_of_a_finished_candidate_outlives_the_end_of_the_run(
    client: Client, project: Path, climb: Climb
) -> None:
    """Fault 8: facts and tree are durable while others still run, and a cancellation does not lose them."""
    agents = (climb(2), "cmd:sleep 300")
    run = await client.start_goal(goal="raise", repo=project, verify=("grep -q 3 level",), agent=agents)
    async for event in client.events(run):
        if isinstance(event, CandidateMeasured):
            break

    await client.cancel(run)
    view = await client.result(run)

    assert view.status is RunStatus.CANCELLED
    fast, slow = view.iterations[0].candidates
    assert (fast.status, fast.rungs_passed, fast.paths) == (CandidateStatus.RED, 0, ("level",))
    assert slow.tree is None
    store = await _store(client, run)
    assert store.text("show", f"{fast.commit}:level") == "2"


async def test_everybodys_usage_is_counted_once(client: Client, run_goal: RunGoal) -> None:
    """Fault 9: winner, loser, crashed and timed-out agents are all charged, in the view as in the ledger."""
    spend = "cmd:echo '{\"tokens_in\": %d}' > $ORCH_USAGE_FILE; %s"
    agents = (spend % (100, "echo 3 > level"), spend % (20, "true"), spend % (3, "exit 1"), spend % (7, "sleep 60"))

    view = await run_goal(*agents, attempt_timeout=10.0)

    assert view.status is RunStatus.SUCCEEDED
    assert [c.usage.tokens for c in view.iterations[0].candidates] == [100, 20, 3, 7]
    (end,) = [e for e in await _events(client, view.id) if isinstance(e, RunEnded)]
    assert view.usage.tokens == end.usage.tokens == 130


async def test_agents_never_share_a_session(client: Client, run_goal: RunGoal) -> None:
    """Fault 10: each attempt has an empty home of its own and keeps its own session id; nobody else's reaches it."""
    name = '{\\"session\\": \\"s-$ORCH_ITERATION-$ORCH_CANDIDATE\\"}'
    clean = 'test -z "$(ls -A "$HOME")" && ! env | grep -q "s-[12]-" && ! grep -q "s-[12]-" "$ORCH_PROMPT_FILE"'
    agent = f'cmd:{clean} || exit 7; echo x > "$HOME/session"; echo "{name}" > "$ORCH_USAGE_FILE"; {STEP}'

    view = await run_goal(agent, agent, max_iterations=2)

    measured = [e.candidate for e in await _events(client, view.id) if isinstance(e, CandidateMeasured)]
    assert sorted(c.session for c in measured) == ["s-1-1", "s-1-2", "s-2-1", "s-2-2"]
    assert all(c.exit is not None and c.exit.ok for c in measured)


async def test_different_agents_compete_and_are_named(client: Client, run_goal: RunGoal, climb: Climb) -> None:
    """Fault 11: who runs as which candidate is recorded data."""
    view = await run_goal(climb(1), climb(2), candidates=3, max_iterations=1)

    wanted = [climb(1), climb(2), climb(1)]
    assert [c.agent for c in view.iterations[0].candidates] == wanted
    started = {e.attempt.candidate: e.agent for e in await _events(client, view.id) if isinstance(e, AttemptStarted)}
    assert [started[i] for i in (1, 2, 3)] == wanted


async def _events(client: Client, run: str) -> list[Event]:
    return [event async for event in client.events(run)]


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.05)


async def _store(client: Client, run: str) -> Git:
    (baseline,) = [e for e in await _events(client, run) if isinstance(e, BaselineTaken)]
    return Git(client.home.store(baseline.store) / "store.git")


def _starts(client: Client, run: str) -> dict[str, int]:
    files = client.home.run(run).glob("attempts/*/private/starts")
    return {path.parents[1].name: len(path.read_text().splitlines()) for path in files}
