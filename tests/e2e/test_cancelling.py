"""A cancelled run ends as cancelled, whatever it was doing, and nothing of it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch import Client
from orch.activities.jobs import find_jobs
from orch.workflows.model.view import RunStatus

pytestmark = [pytest.mark.engine]

Fingerprint = Callable[[Path], dict[str, str]]


async def test_cancelled_run_says_so_and_leaves_nothing_running(
    client: Client, project: Path, fingerprint: Fingerprint, tmp_path: Path
) -> None:
    """T05, S06, I3: whatever it was doing, and whatever its processes had started."""
    before = fingerprint(project)
    green = "cmd:echo 3 > level"
    hang = {phase: f"touch {tmp_path}/{phase}; sleep 300 & sleep 300" for phase in ("setup", "agent", "rung", "review")}
    phases: dict[str, dict[str, Any]] = {
        "setup": {"agent": (green,), "setup": f"test $ORCH_CANDIDATE = 0 || {{ {hang['setup']}; }}"},
        "agent": {"agent": (f"cmd:{hang['agent']}",)},
        "rung": {"agent": (green,), "verify": (f"grep -q 3 level && {{ {hang['rung']}; }}",)},
        "review": {"agent": (green,), "sign_off": f"cmd:{hang['review']}"},
        "seal": {"agent": (green,), "seal": True},
    }

    await asyncio.gather(*(_cancel(client, project, tmp_path / name, **options) for name, options in phases.items()))

    assert fingerprint(project) == before


async def test_runs_cancelled_while_their_candidates_queue_leave_no_slot_taken(
    client: Client, project: Path, tmp_path: Path
) -> None:
    """T05, S22: those that wait for a slot end, too."""
    agent = f"cmd:touch {tmp_path}/here; sleep 300"

    await _cancel(client, project, tmp_path / "here", agent=(agent,), candidates=20)

    assert [path for path in (*client.home.slots.glob("*"), *client.home.ports.glob("*")) if path.name.isdigit()] == []


async def test_what_a_cancelled_agent_used_is_still_counted(client: Client, project: Path, tmp_path: Path) -> None:
    """Faults 5 and 9: a run that is cut short owes what was spent."""
    report = """echo '{"tokens_in": 70, "usd": 0.2}' > $ORCH_USAGE_FILE"""

    run = await _cancel(client, project, tmp_path / "here", agent=(f"cmd:{report}; touch {tmp_path}/here; sleep 300",))

    view = await client.view(run)
    assert (view.usage.tokens, view.usage.usd) == (70, 0.2)
    assert view.iterations[0].candidates[0].failure.startswith("cancelled")


async def _cancel(client: Client, repo: Path, sign: Path, **options: Any) -> str:
    """Start a run, cancel it once it shows a sign or waits, and see that nothing of it is left."""
    given = {"goal": "raise", "repo": repo, "verify": ("grep -q 3 level",), "promote": "none", "sandbox": False}
    run = await client.start_goal(**{**given, **options})
    async with asyncio.timeout(60):
        while not sign.exists() and (await client.view(run)).status is not RunStatus.WAITING:
            await asyncio.sleep(0.05)
    await client.cancel(run)
    async with asyncio.timeout(40):
        view = await client.result(run)
        while not (client.home.run(run) / "closed").exists():
            await asyncio.sleep(0.05)
    assert view.status is RunStatus.CANCELLED
    assert find_jobs(client.home.run(run)) == []
    return run
