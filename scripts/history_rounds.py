"""The rounds that `record_histories.py` records: every way in which one can end, and what can come between.

The project has three knobs, `a`, `b` and `c`, numbers that stand for percents: `a` is a bottleneck, `b` and `c` are
another one together. Its benchmark is a shell script, to which a case may add lines: they find the knobs in `$a`, `$b`,
`$c` and the value in `$v`, and may count runs in `$COUNT`.
"""

# ruff: noqa: ASYNC110, INP001, S108 - another process is waited for; beside its script, with fixed places

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from git import Actor, Repo
from history_cases import SLOW, TOP  # beside this script

from orch import Client
from orch.activities.campaigns import record_round
from orch.activities.trials.devices import identities
from orch.activities.trials.leases import leased
from orch.cli.round_options import RoundOptions
from orch.cli.round_start import resolve_round
from orch.workflows.model.event import Event, RunEnded
from orch.workflows.model.reason import RunReason
from orch.workflows.model.round.campaign import RecordRound
from orch.workflows.model.round.event import (
    BindingClaimed,
    RoundReady,
    RoundStarted,
    StepComposed,
    TicketPutBack,
    TicketTaken,
)
from orch.workflows.model.round.plan import DeviceSet
from orch.workflows.model.round.request import RoundRequest

USER = Actor("A User", "user@example.org")
HOLDER = "run-holds"
LEASES = "/tmp/orch-histories/leases"
KNOBS = ("a", "b", "c")
STAGES = {"a": "reading", "b": "writing", "c": "writing"}

BENCH = """\
a=$(cat a/knob) b=$(cat b/knob) c=$(cat c/knob)
least=$b; [ $c -ge $b ] || least=$c
v=$((a * 500 + least * 300 + 20000 + $(date +%N | cut -c9) % 8))
COUNT=/tmp/orch-histories/count
TROUBLE
printf '{"latency": {"value": %d, "unit": "us"}}' $v > "$ORCH_RESULT"
"""
COUNTED = "echo run >> $COUNT; n=$(wc -l < $COUNT)"

Steer = Callable[[Client, str, Path], Awaitable[None]]


def turn(knob: str, percent: int, *more: str) -> str:
    """An agent that turns a knob and hands it over."""
    return "cmd:" + "; ".join(["set -e", f"echo {percent} > {knob}/knob", ".orch/round submit", *more])


@dataclass(frozen=True, eq=False)
class RoundCase:
    """One round to record.

    Attributes:
        name: names the file; mostly the reason it ends with.
        agents: the agent of each lane, by its knob.
        ends: the reason it must end with.
        plan: further keys of the plan's file.
        lanes: further keys of lanes, by their knobs.
        commands: further commands of the campaign.
        trouble: lines of the benchmark.
        promote: where the result goes.
        busy: whether others hold the processors all the time.
        before: done before the start, after the plan was checked.
        steer: done while it runs.
    """

    name: str
    agents: dict[str, str]
    ends: RunReason = RunReason.DONE
    plan: dict[str, Any] = field(default_factory=dict)
    lanes: dict[str, dict[str, Any]] = field(default_factory=dict)
    commands: dict[str, Any] = field(default_factory=dict)
    trouble: str = ":"
    promote: str = "none"
    busy: bool = False
    before: Steer | None = None
    steer: Steer | None = None

    workflow = "Round"

    @property
    def campaign(self) -> str:
        """The campaign's id: each case has its own."""
        return self.name.replace("_", "-")

    @property
    def run(self) -> str:
        """The run's id."""
        return f"round-{self.campaign}-r1"

    @property
    def files(self) -> dict[str, str]:
        """What the project holds."""
        return {"bench.sh": BENCH.replace("TROUBLE", self.trouble), **{f"{knob}/knob": "100\n" for knob in KNOBS}}

    def request(self, client: Client, project: Path) -> RoundRequest:
        """Write the plan's files and check them."""
        folder = project.with_name(f"{project.name}-plans")
        folder.mkdir()
        (folder / "campaign.yaml").write_text(yaml.safe_dump(self._campaign, sort_keys=False))
        (folder / "round.yaml").write_text(yaml.safe_dump(self._round, sort_keys=False))
        options = RoundOptions(plan=folder / "round.yaml", repo=project, sandbox=False, promote=self.promote)
        return resolve_round(options, client.home).request

    @property
    def _campaign(self) -> dict[str, Any]:
        return {
            "campaign": self.campaign,
            "incumbent": "main",
            "metric": {"name": "latency", "direction": "lower", "unit": "us"},
            "gates": {"pairs": 4, "repetitions": 1, "rollback": 0.01, "noise": 0.05},
            "protected": ["bench.sh"],
            "commands": {"benchmark": {"run": "sh bench.sh", "timeout": "20s"}, **self.commands},
            "entries": [
                {"id": knob, "plane": "io", "hypothesis": f"{knob} is slow", "stage": STAGES[knob], "headroom": 0.4}
                for knob in self.agents
            ],
        }

    @property
    def _round(self) -> dict[str, Any]:
        lanes = [
            {"id": knob, "entry": knob, "globs": [f"{knob}/**"], "agent": agent, **self.lanes.get(knob, {})}
            for knob, agent in self.agents.items()
        ]
        given = {"round": "r1", "campaign": "campaign.yaml", "devices": [{"name": "cpu"}], "lanes": lanes}
        return {**given, "deadline": "5m", "aa_every": 50, **self.plan}


async def _until(client: Client, run: str, kind: type[Event]) -> list[Event]:
    """The events up to the first of a kind."""
    seen: list[Event] = []
    async with asyncio.timeout(60):
        async for event in client.events(run):
            seen.append(event)
            if isinstance(event, kind):
                break
    return seen


def _cancel_at(kind: type[Event]) -> Steer:
    async def cancel(client: Client, run: str, _project: Path) -> None:
        await _until(client, run, kind)
        await asyncio.sleep(0.3)
        await client.cancel(run)

    return cancel


async def _busy_for_a_ticket(client: Client, run: str, _project: Path) -> None:
    """Hold the processors from when the lanes begin until a ticket was put back."""
    await _until(client, run, BindingClaimed)
    async with devices_held():
        await _until(client, run, TicketPutBack)


def devices_held() -> AbstractAsyncContextManager[object]:
    """Nothing can be measured meanwhile."""
    return leased(identities(DeviceSet(name="cpu")), patience_s=10)


async def _overtake(client: Client, run: str, _project: Path) -> None:
    """Another round of the campaign advances its incumbent meanwhile."""
    seen = await _until(client, run, BindingClaimed)
    (store,) = [event.store for event in seen if isinstance(event, RoundReady)]
    (plan,) = [event.plan for event in seen if isinstance(event, RoundStarted)]
    other = plan.model_copy(update={"id": "r0"})
    record = RecordRound(run=f"{run}-0", store=store, plan=other, revisions=(), incumbent=plan.incumbent)
    record_round(client.home, record, {})
    state = client.home.campaign(plan.campaign) / "state.json"
    state.write_text(state.read_text().replace(f'"incumbent": "{plan.incumbent}"', f'"incumbent": "{"e" * 40}"'))


async def _make_branch(client: Client, run: str, project: Path) -> None:
    await _until(client, run, BindingClaimed)
    repo = Repo(project)
    repo.create_head("faster", repo.index.commit("of the user", head=False, author=USER, committer=USER))


async def _no_repository(_client: Client, _run: str, project: Path) -> None:
    await asyncio.to_thread(shutil.rmtree, project / ".git")


async def _hold_tree(client: Client, _run: str, project: Path) -> None:
    holder = await client.start_goal(goal="hold", repo=project, verify=TOP, agent=(SLOW,), id=HOLDER, sandbox=False)
    async with asyncio.timeout(30):
        while not (client.home.run(holder) / "attempts/i1-c1-b1/prompt.md").exists():
            await asyncio.sleep(0.05)


async def _let_go(client: Client, run: str, _project: Path) -> None:
    await _until(client, run, RunEnded)
    await client.cancel(HOLDER)
    await client.result(HOLDER)


WORN = f"n=0; [ $a$b != 6050 ] || {{ {COUNTED}; }}; [ $n -le 4 ] || v=$((v + 40000))"
"""Both knobs together are a gain for as long as a step is measured, and none any more when the head is."""

DRIFTS = f"n=0; [ $a$b$c != 100100100 ] || {{ {COUNTED}; }}; [ $n -le 12 ] || [ $n -gt 20 ] || v=$((v + n % 2 * 30000))"
"""The incumbent's runs 13 to 20, a measurement of it against itself, are not alike."""

TWO = {"a": turn("a", 60), "b": turn("b", 50)}
ONE = {"a": turn("a", 60)}
IDLE = "cmd:sleep 60"

_R = RunReason
ROUND_CASES = (
    RoundCase("done", {**TWO, "c": turn("c", 55)}),
    RoundCase("done_on_a_branch", ONE, promote="branch:faster"),
    RoundCase(
        "done_with_rejects",
        {
            "a": turn("a", 60, "echo 1 > a/knob; .orch/round submit; echo 2 > a/knob; .orch/round submit"),
            "b": "cmd:exit 3",
        },
        lanes={"a": {"submissions": 2}, "b": {"budget": {"attempts": 2}}},
        commands={"build": "test $(cat a/knob) -ge 10"},
    ),
    RoundCase("done_after_a_fallback", TWO, trouble=WORN),
    RoundCase(
        "done_after_a_drift",
        {"a": turn("a", 60, "echo 50 > a/knob; .orch/round submit")},
        plan={"aa_every": 1},
        trouble=DRIFTS,
    ),
    RoundCase("done_after_a_lanes_deadline", {"a": turn("a", 60, "sleep 60")}, lanes={"a": {"deadline": "6s"}}),
    RoundCase(
        "done_after_a_busy_device", {"a": "cmd:sleep 2; echo 60 > a/knob; .orch/round submit"}, steer=_busy_for_a_ticket
    ),
    RoundCase("no_gain", {"a": turn("a", 101)}, _R.NO_GAIN),
    RoundCase("no_gain_strict", TWO, _R.NO_GAIN, plan={"composition": "strict"}, trouble=WORN),
    RoundCase("incumbent_fails", ONE, _R.INCUMBENT_FAILS, trouble="exit 3"),
    RoundCase("too_noisy", ONE, _R.TOO_NOISY, trouble="v=$((v + $(date +%N | cut -c8) * 20000))"),
    RoundCase("deadline", ONE, _R.DEADLINE, plan={"deadline": "5s"}, busy=True),
    RoundCase("preflight_failed", ONE, _R.PREFLIGHT_FAILED, before=_no_repository),
    RoundCase("tree_busy", ONE, _R.TREE_BUSY, promote="worktree", before=_hold_tree, steer=_let_go),
    RoundCase("promotion_refused", ONE, _R.PROMOTION_REFUSED, promote="branch:faster", steer=_make_branch),
    RoundCase("overtaken", ONE, _R.OVERTAKEN, steer=_overtake),
    RoundCase("cancelled", {"a": IDLE, "b": IDLE}, _R.CANCELLED, steer=_cancel_at(BindingClaimed)),
    RoundCase("cancelled_measuring", {"a": turn("a", 60), "b": IDLE}, _R.CANCELLED, steer=_cancel_at(TicketTaken)),
    RoundCase("cancelled_composing", TWO, _R.CANCELLED, steer=_cancel_at(StepComposed)),
)
