"""The faults that a comparable tool shipped with its best-of-N, as facts (12 to 18): room, ports, fences, verdicts."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from orch import Client
from orch.activities.git import Git
from orch.activities.sandbox.registry import probe
from orch.worker.settings import load_settings
from orch.workflows.errors import RefusedError
from orch.workflows.model.event import (
    BaselineTaken,
    Event,
    HeadReviewed,
)
from orch.workflows.model.reason import RunReason
from orch.workflows.model.view import CandidateStatus, RunStatus, RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]
Climb = Callable[[int], str]
Fingerprint = Callable[[Path], dict[str, str]]

STEP = "echo $(( $(cat level) + 1 )) > level"
COUNT = 'echo started >> "$(dirname "$ORCH_USAGE_FILE")/starts"'
"""Leaves a line beside the usage report, which the agent may write whatever the sandbox forbids."""


async def test_slots_bound_how_many_run_and_the_budget_how_many_start(client: Client, run_goal: RunGoal) -> None:
    """Fault 12: never more agents at once than the host has room for, nor more than what is left can pay."""
    slots = load_settings().slots
    mark = 'date +%s.%N >> "$(dirname "$ORCH_USAGE_FILE")/times"'
    report = "echo '{\"tokens_in\": 100}' > $ORCH_USAGE_FILE"
    agent = f"cmd:{mark}; {report}; echo 1 > level; sleep 0.3; date > when-$ORCH_ITERATION; {mark}"

    view = await run_goal(agent, candidates=slots + 2, budget_tokens=100 * (slots + 2) + 150)

    assert view.reason is not None
    assert view.reason.code is RunReason.BUDGET_TOKENS
    assert [len(i.candidates) for i in view.iterations] == [slots + 2, 1]
    assert view.usage.tokens == 100 * (slots + 3)
    times = [path.read_text().split() for path in client.home.run(view.id).glob("attempts/i1-*/private/times")]
    assert len(times) == slots + 2
    assert max(sum(a <= start < b for a, b in times) for start, _ in times) <= slots


async def test_checks_of_two_candidates_do_not_meet(run_goal: RunGoal, tmp_path: Path) -> None:
    """Fault 13, M10: measured at the same time, each has ports and a temporary folder of its own, sandbox or not."""
    listen = (
        "import os, socket; s = socket.socket(); s.bind(('127.0.0.1', int(os.environ['PORT']))); s.listen(); input()"
    )
    together = f"{tmp_path}/at-$ORCH_CANDIDATE; until [ -e {tmp_path}/at-1 -a -e {tmp_path}/at-2 ]; do sleep 0.05; done"
    rung = f'test -e mine && test -z "$(ls "$TMPDIR")" && touch "$TMPDIR/x" && {{ echo $PORT > {together}; }} && '

    view = await run_goal(
        "cmd:echo 1 > mine",
        "cmd:echo 2 > mine",
        verify=(rung + f'(sleep 0.5; echo) | python3 -c "{listen}"',),
        sandbox=False,
        rung_timeout=20.0,
    )

    assert [c.rungs_passed for c in view.iterations[0].candidates] == [1, 1]
    assert (tmp_path / "at-1").read_text() != (tmp_path / "at-2").read_text()


async def test_review_is_charged_to_the_run_and_to_no_candidate(client: Client, run_goal: RunGoal) -> None:
    """Fault 14: the judge's spend is in the total once, and the candidates' own figures stay their own."""
    spend = "cmd:echo '{\"tokens_in\": %d}' > $ORCH_USAGE_FILE; %s"

    view = await run_goal(
        spend % (10, "echo 3 > level"), spend % (5, "echo 1 > level"), sign_off=spend % (200, "true"), max_iterations=1
    )

    assert [c.usage.tokens for c in view.iterations[0].candidates] == [10, 5]
    reviews = [e.review for e in await _events(client, view.id) if isinstance(e, HeadReviewed)]
    assert [review.usage.tokens for review in reviews] == [200]
    assert view.usage.tokens == 215


async def test_every_candidates_tree_is_kept_and_every_workspace_is_gone(
    client: Client, run_goal: RunGoal, climb: Climb
) -> None:
    """Fault 15: refs keep losers from being collected, and neither temporary nor attempt folders stay behind."""
    view = await run_goal(climb(1), climb(2), "cmd:echo 0 > other; exit 3", max_iterations=1)

    store = await _store(client, view.id)
    store.run("gc", "--quiet", "--prune=now")
    for candidate in view.iterations[0].candidates:
        assert store.text("rev-parse", f"{candidate.commit}^{{tree}}") == candidate.tree
    assert not list(client.home.run(view.id).glob("attempts/**/tree"))
    assert _temporary(view.id) == []


async def test_sandboxed_agent_writes_nowhere_but_in_its_own_workspace(
    client: Client, run_goal: RunGoal, project: Path, fingerprint: Fingerprint, tmp_path: Path
) -> None:
    """Fault 16, G36: not to the user's tree, the state or anywhere else, nor is a sibling seen; git works."""
    if probe():
        pytest.skip("no sandbox on this host")
    before, state = fingerprint(project), client.home.root
    other = "../../i1-c2-b2"
    places = (project / ".git/hooks", state, tmp_path, f"{other}/tree", f"{other}/private")
    targets = " ".join(f'"{place}/evil"' for place in places)
    attack = f"for f in {targets}; do (echo x > $f) 2>/dev/null && echo $f >> breaches; done"
    git = "git status && echo 3 > level && git log -1 && git diff && git commit -qam work"
    attack = f"echo x > {project}/own; {attack}; test ! -e {other} || echo seen >> breaches"
    agents = (
        f"cmd:sleep 1; {attack}; {git} || echo git >> breaches",
        "cmd:sleep 2; test ! -e evil && echo 3 > level",
    )

    view = await run_goal(*agents, verify=("grep -q 3 level && ! test -e breaches",), sandbox=True, promote="none")

    assert view.sandbox is True
    assert [c.status for c in view.iterations[0].candidates] == [CandidateStatus.PASSED] * 2
    assert fingerprint(project) == before
    assert not (state / "evil").exists()
    assert not Path(tmp_path, "evil").exists()


async def test_equal_trees_are_measured_once_and_the_gate_afresh(
    client: Client, run_goal: RunGoal, project: Path, fingerprint: Fingerprint, tmp_path: Path
) -> None:
    """Fault 17: a verdict belongs to a tree; a rung that passes only once does not let the tree through the gate."""
    before, log = fingerprint(project), tmp_path / "log"
    rung = f'echo "$ORCH_CANDIDATE" >> {log}; test -e done && test "$ORCH_CANDIDATE" != 0'

    view = await run_goal("cmd:touch done", "cmd:touch done", verify=(rung,), sandbox=False, max_iterations=1)

    assert sorted(log.read_text().split()) in (["0", "0", "1"], ["0", "0", "2"])
    first, second = view.iterations[0].candidates
    assert first.tree == second.tree
    assert (await _store(client, view.id)).ok("cat-file", "-e", f"{first.tree}^{{tree}}")
    assert view.status is RunStatus.FAILED
    assert "passed" not in view.iterations[0].gate
    assert view.promoted is None
    assert fingerprint(project) == before


async def test_refused_run_is_either_not_there_or_failed_everywhere(
    client: Client, run_goal: RunGoal, climb: Climb, tmp_path: Path
) -> None:
    """Fault 18: what can be told before is refused with no run made; what the host finds ends the run for all."""
    options: dict[str, Any] = {"goal": "raise", "verify": ("true",), "agent": (climb(3),)}
    with pytest.raises(RefusedError):
        await client.start_goal(repo=tmp_path, id="goal-nowhere", **options)
    view = await run_goal(climb(3), setup="exit 4")

    rows = {row.id: row for row in await client.list()}
    assert "goal-nowhere" not in rows
    assert not client.home.run("goal-nowhere").exists()
    assert rows[view.id].status is view.status is RunStatus.FAILED


async def _events(client: Client, run: str) -> list[Event]:
    return [event async for event in client.events(run)]


def _temporary(word: str) -> list[Path]:
    return [path for path in Path(tempfile.gettempdir()).iterdir() if word in path.name]


async def _store(client: Client, run: str) -> Git:
    (baseline,) = [e for e in await _events(client, run) if isinstance(e, BaselineTaken)]
    return Git(client.home.store(baseline.store) / "store.git")
