"""The runs that `record_histories.py` records: every way in which a workflow can end by itself or by its operator."""

# ruff: noqa: ASYNC110, E501, INP001 - another process is waited for; beside its script

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from history_hosts import ROOT_OF_EXCHANGE, lose, lose_and_offer_another, one_other_host, share  # beside this script

from orch import Client
from orch.workflows.model.reason import RunReason
from orch.workflows.model.review import Extension
from orch.workflows.model.view import RunStatus

LADDER = tuple(f'test "$(cat level)" -ge {n}' for n in (1, 2, 3))
TOP = ("grep -q 3 level",)
ONE, TWO, THREE = (f"cmd:echo {n} > level" for n in (1, 2, 3))
STEP = "cmd:echo $(( $(cat level) + 1 )) > level"
SLOW = "cmd:echo 1 > level; sleep 60"
NOTED = 'cmd:grep -q "use three" "$ORCH_PROMPT_FILE" && echo 3 > level; echo $ORCH_ITERATION > which; sleep 1'
TURN = "cmd:if grep -q a which; then echo b > which; else echo a > which; fi"
NONCE = 'grep -o \'nonce": "[0-9a-f]*\' "$ORCH_PROMPT_FILE" | head -1 | cut -d\'"\' -f3'
APPROVE = f"""cmd:printf '{{"nonce": "%s", "veto": false, "reason": "fine"}}\\n' $({NONCE})"""


_LIMITED = """echo '{"type": "session", "id": "0f3b2f0e-1111-4222-8333-944455556666"}'
if test -e "$HOME/again"; then echo 3 > level; stop=stop; else touch "$HOME/again"; stop=error; fi
echo '{"type": "message_end", "message": {"role": "assistant", "timestamp": '$(date +%s)'000, "content": [{"type": "text", "text": "well"}], "stopReason": "'$stop'", "errorMessage": "429 rate limit, try again in SECONDSs", "usage": {"input": 10, "output": 5, "cacheRead": 2}}}'
echo '{"type": "agent_end", "messages": []}'"""
PROGRAMS = {
    "refused": """echo '{"type": "session", "id": "0f3b2f0e-1111-4222-8333-944455556666"}'
echo '{"type": "message_end", "message": {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "401 Incorrect API key"}}'
echo '{"type": "agent_end", "messages": []}'""",
    "limited": _LIMITED.replace("SECONDS", "1"),
    "limited-long": _LIMITED.replace("SECONDS", "12"),
}  # fmt: skip
"""Programs that speak as pi does, for what a shell line cannot tell; the recorder writes them."""


def _speaks_as_pi(name: str) -> str:
    return f"pi:a-model,bin=/tmp/orch-histories/bin/{name}"


def _spend(usage: str) -> str:
    return f"cmd:echo '{usage}' > $ORCH_USAGE_FILE; echo 1 > level"


@dataclass(frozen=True, eq=False)
class Case:
    """One run to record.

    Attributes:
        name: names the file; for goals mostly the reason it ends with.
        agents: one spec per candidate.
        ends: the reason a goal must end with.
        options: fields of GoalOptions.
        before: done before the start, after the options were checked.
        steer: done while it runs.
        workflow: what is started.
        replacements: how often a candidate is begun anew elsewhere, where that is not the usual.
    """

    name: str
    agents: tuple[str, ...]
    ends: RunReason = RunReason.DONE
    options: dict[str, Any] = field(default_factory=dict)
    before: Callable[[Client, Path], Awaitable[None]] | None = None
    steer: Callable[[Client, str, Path], Awaitable[None]] | None = None
    workflow: str = "Goal"
    replacements: int | None = None

    @property
    def run(self) -> str:
        """The run's id."""
        return f"{self.workflow.lower()}-{self.name.replace('_', '-')}"


async def _until(client: Client, run: str, status: RunStatus) -> None:
    async with asyncio.timeout(30):
        while (await client.view(run)).status is not status:
            await asyncio.sleep(0.1)


async def _agent_works(client: Client, run: str) -> None:
    async with asyncio.timeout(30):
        while not (client.home.run(run) / "attempts/i1-c1-b1/prompt.md").exists():
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)


async def _approve(client: Client, run: str, _project: Path) -> None:
    await _until(client, run, RunStatus.WAITING)
    await client.approve(run, by="operator")


async def _reject(client: Client, run: str, _project: Path) -> None:
    await _until(client, run, RunStatus.WAITING)
    await client.reject(run, by="operator", comment="not this ladder")


async def _cancel(client: Client, run: str, _project: Path) -> None:
    await _agent_works(client, run)
    await client.cancel(run)


async def _cancel_at_once(client: Client, run: str, _project: Path) -> None:
    await client.cancel(run)


async def _cancel_waiting(client: Client, run: str, _project: Path) -> None:
    await _until(client, run, RunStatus.WAITING)
    await client.cancel(run)


async def _edit_meanwhile(client: Client, run: str, project: Path) -> None:
    await _agent_works(client, run)
    (project / "level").write_text("mine\n")


async def _note_and_extend(client: Client, run: str, _project: Path) -> None:
    await _agent_works(client, run)
    await client.note(run, "use three", by="operator")
    await client.extend(run, Extension(max_iterations=3, candidates=2))


async def _no_repository(_client: Client, project: Path) -> None:
    await asyncio.to_thread(shutil.rmtree, project / ".git")


async def _hold_tree(client: Client, project: Path) -> None:
    run = await client.start_goal(goal="hold", repo=project, verify=TOP, agent=(SLOW,), id="run-holder", sandbox=False)
    await _agent_works(client, run)


async def _let_go(client: Client, run: str, _project: Path) -> None:
    await client.result(run)
    await client.cancel("run-holder")
    await client.result("run-holder")


HANGS_THERE = "cmd:case $ORCH_TMP in */lost/*) sleep 30;; esac; echo 3 > level"
ELSEWHERE = {"verify": TOP, "exchange": ROOT_OF_EXCHANGE}

_R = RunReason
CASES = (
    Case("done", ("cmd:true", ONE, THREE, TWO), options={"verify": LADDER}),
    Case("done_after_three_iterations", (STEP, "cmd:true"), options={"verify": LADDER}),
    Case("done_on_a_branch", (THREE,), options={"verify": TOP, "promote": "branch:fix/level"}),
    Case("done_without_promotion", (THREE,), options={"verify": TOP, "promote": "none"}),
    Case("done_sealed", (THREE,), options={"verify": TOP, "seal": True}, steer=_approve),
    Case("done_signed_off", (THREE,), options={"verify": TOP, "sign_off": APPROVE}),
    Case("done_noted_and_extended", (NOTED,), options={"verify": TOP, "max_iterations": 1}, steer=_note_and_extend),
    Case("already_green", (THREE,), _R.ALREADY_GREEN, {"verify": ("true",)}),
    Case("preflight_failed", (THREE,), _R.PREFLIGHT_FAILED, {"verify": TOP}, before=_no_repository),
    Case("rung_cannot_run", (THREE,), _R.RUNG_CANNOT_RUN, {"verify": ("./no-such-program",)}),
    Case("setup_failed", (THREE,), _R.SETUP_FAILED, {"verify": TOP, "setup": "exit 4"}),
    Case("tree_busy", (THREE,), _R.TREE_BUSY, {"verify": TOP}, before=_hold_tree, steer=_let_go),
    Case("seal_rejected", (THREE,), _R.SEAL_REJECTED, {"verify": TOP, "seal": True}, steer=_reject),
    Case("iteration_cap", (ONE, TWO), _R.ITERATION_CAP, {"verify": LADDER, "max_iterations": 1}),
    Case(
        "iteration_cap_vetoed",
        (THREE,),
        _R.ITERATION_CAP,
        {"verify": TOP, "sign_off": "cmd:exit 1", "max_iterations": 1},
    ),
    Case(
        "iteration_cap_setup_fails_later",
        (THREE,),
        _R.ITERATION_CAP,
        {"verify": TOP, "setup": "mkdir /tmp/orch-histories/once", "max_iterations": 1},
    ),
    Case("budget_tokens", (_spend('{"tokens_in": 600}'),), _R.BUDGET_TOKENS, {"verify": TOP, "budget_tokens": 1000}),
    Case("budget_usd", (_spend('{"usd": 6}'),), _R.BUDGET_USD, {"verify": TOP, "budget_usd": 10}),
    Case("deadline", (SLOW,) * 5, _R.DEADLINE, {"verify": TOP, "deadline": 3.0}),
    Case("deadline_unsealed", (THREE,), _R.DEADLINE, {"verify": TOP, "seal": True, "deadline": 2.0}),
    Case("done_after_a_rate_limit", (_speaks_as_pi("limited"),), options={"verify": TOP}),
    Case("done_after_a_long_rest", (_speaks_as_pi("limited-long"),), options={"verify": TOP}),
    Case("agent_unusable", (_speaks_as_pi("refused"),), _R.AGENT_UNUSABLE, {"verify": TOP}),
    Case("stuck_no_diff", ("cmd:true", "cmd:true"), _R.STUCK_NO_DIFF, {"verify": TOP}),
    Case("stuck_crashed", ("cmd:exit 9", "cmd:kill -9 $$"), _R.STUCK_CRASHED, {"verify": TOP}),
    Case(
        "stuck_unevaluable",
        ("cmd:echo $ORCH_ITERATION > slow",),
        _R.STUCK_UNEVALUABLE,
        {"verify": ("test ! -e slow || sleep 60; exit 1",), "rung_timeout": 0.5},
    ),
    Case("stuck_timeout", ("cmd:sleep 60",), _R.STUCK_TIMEOUT, {"verify": TOP, "attempt_timeout": 0.5}),
    Case("stuck_oscillation", (TURN,), _R.STUCK_OSCILLATION, {"verify": ("cat which; exit 1",)}),
    Case("stuck_repeat", ("cmd:echo $ORCH_ITERATION > which",), _R.STUCK_REPEAT, {"verify": TOP}),
    Case(
        "promotion_refused",
        ("cmd:sleep 2; echo 3 > level",),
        _R.PROMOTION_REFUSED,
        {"verify": TOP},
        steer=_edit_meanwhile,
    ),
    Case("cancelled", (SLOW, ONE), _R.CANCELLED, {"verify": TOP}, steer=_cancel),
    Case("cancelled_between_steps", (THREE,), _R.CANCELLED, {"verify": TOP}, steer=_cancel_at_once),
    Case("cancelled_waiting", (THREE,), _R.CANCELLED, {"verify": TOP, "seal": True}, steer=_cancel_waiting),
    Case("done_on_any_host", ("cmd:true", THREE), options=ELSEWHERE, before=share),
    Case(
        "done_after_a_lost_host",
        (HANGS_THERE,),
        options={**ELSEWHERE, "needs": ("there",)},
        before=one_other_host,
        steer=lose_and_offer_another,
    ),
    Case(
        "stuck_with_a_lost_host",
        (HANGS_THERE,),
        _R.ITERATION_CAP,
        {**ELSEWHERE, "needs": ("there",), "max_iterations": 1},
        before=one_other_host,
        steer=lose,
        replacements=0,
    ),
    Case("succeeded", (THREE,), options={"verify": TOP}, workflow="Scheduled"),
    Case("already_green", (THREE,), options={"verify": ("true",)}, workflow="Scheduled"),
    Case("failed", (ONE,), options={"verify": TOP, "max_iterations": 1}, workflow="Scheduled"),
)
