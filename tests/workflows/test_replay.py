"""Recorded histories replay: a change of a workflow, a rule or a model leaves recorded runs as they were."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    Replayer,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from orch.workflows.model.candidate import Candidate
from orch.workflows.model.reason import RunReason
from orch.workflows.model.round.view import RoundView
from orch.workflows.model.view import RunView
from orch.workflows.registry import WORKFLOWS

MakeReplayer = Callable[..., Replayer]
LoadHistory = Callable[[str], WorkflowHistory]
Rewrite = Callable[..., ModuleType]

HISTORIES = Path(__file__).parents[1] / "histories"
NAMES = {cls: workflow._Definition.must_from_class(cls).name for cls in WORKFLOWS}
RESULTS: dict[str, type[Any]] = {"Goal": RunView, "Attempt": Candidate, "Scheduled": RunView, "Round": RoundView}
OF_ROUNDS = {RunReason.INCUMBENT_FAILS, RunReason.TOO_NOISY, RunReason.NO_GAIN, RunReason.OVERTAKEN}
OF_BOTH = {
    RunReason.DONE,
    RunReason.PREFLIGHT_FAILED,
    RunReason.TREE_BUSY,
    RunReason.DEADLINE,
    RunReason.PROMOTION_REFUSED,
    RunReason.CANCELLED,
}
NOT_RECORDED = {RunReason.SEAL_WAITING, RunReason.HOST_LOST, RunReason.INTERNAL}
"""A reason to wait; a host that is away for a week; bugs."""

CAPTURED = EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED
"""The last event of a history that was captured while a worker had a task of it."""


class Witness(Interceptor):
    """Keeps what replayed workflows return."""

    def __init__(self) -> None:
        self.results: list[Any] = []

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002
        input.unsafe_extern_functions["witness"] = self.results.append
        return _Inbound


class _Inbound(WorkflowInboundInterceptor):
    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002
        result = await super().execute_workflow(input)
        workflow.extern_functions()["witness"](result)
        return result


async def test_recorded_history_replays_to_the_same_decision(
    replayer: MakeReplayer, load_history: LoadHistory, history_name: str
) -> None:
    history, witness = load_history(history_name), Witness()

    await replayer(WORKFLOWS, witness).replay_workflow(history)

    recorded = _recorded(history, history_name.partition("/")[0])
    assert [_decision(result) for result in witness.results] == [_decision(result) for result in recorded]


def test_every_workflow_has_a_history() -> None:
    assert {path.parent.name for path in HISTORIES.glob("*/*.json")} == set(NAMES.values())


@pytest.mark.parametrize(
    ("kind", "reasons"), [("Goal", set(RunReason) - NOT_RECORDED - OF_ROUNDS), ("Round", OF_BOTH | OF_ROUNDS)]
)
def test_every_way_of_ending_a_run_has_a_history(load_history: LoadHistory, kind: str, reasons: set[RunReason]) -> None:
    names = [f"{kind}/{path.stem}" for path in HISTORIES.glob(f"{kind}/*.json")]
    ends = {match for name in names for match in _ends(load_history(name))}

    assert ends == reasons


CAPTURED_AT_WORK = (
    "Goal/done",
    "Goal/done_noted_and_extended",
    "Goal/cancelled",
    "Attempt/measured",
    "Round/done_after_a_busy_device",
    "Round/cancelled_measuring",
)


@pytest.mark.parametrize("stride", [10, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", CAPTURED_AT_WORK)
async def test_history_of_a_run_that_still_goes_on_replays(
    replayer: MakeReplayer, load_history: LoadHistory, name: str, stride: int
) -> None:
    events = load_history(name).events
    ends = [n for n, event in enumerate(events, 1) if event.event_type == CAPTURED]
    replay = replayer(WORKFLOWS)

    for end in ends[::stride]:
        await replay.replay_workflow(WorkflowHistory(f"{name} to event {end}", events[:end]))

    assert len(ends) > 5


async def test_attempt_with_two_steps_swapped_does_not_replay(
    replayer: MakeReplayer, load_history: LoadHistory, rewrite: Rewrite
) -> None:
    swapped = rewrite(
        "attempt.py",
        "swapped_attempt",
        (
            "await self._work(request)",
            "taken = await self._snapshot(request)\n            await self._work(request)",
        ),
        ("self._measured(request, await self._snapshot(request))", "self._measured(request, taken)"),
    )

    with pytest.raises(workflow.NondeterminismError, match="take_snapshot"):
        await replayer([swapped.Attempt]).replay_workflow(load_history("Attempt/measured"))


async def test_goal_that_asks_for_the_seal_first_does_not_replay(
    replayer: MakeReplayer, load_history: LoadHistory, rewrite: Rewrite
) -> None:
    before = "await self._measure_baseline() or await self._seal(request)"
    after = "await self._seal(request) or await self._measure_baseline()"
    swapped = rewrite("goal.py", "swapped_goal", (before, after))

    with pytest.raises(workflow.NondeterminismError):
        await replayer([swapped.Goal]).replay_workflow(load_history("Goal/done_sealed"))


async def test_round_that_begins_its_lanes_before_it_knows_the_noise_does_not_replay(
    replayer: MakeReplayer, load_history: LoadHistory, rewrite: Rewrite
) -> None:
    before = "if unfit := await self._guard.qualify():"
    after = "await self._lanes()\n        if unfit := await self._guard.qualify():"
    swapped = rewrite("round.py", "swapped_round", (before, after))

    with pytest.raises(workflow.NondeterminismError):
        await replayer([swapped.Round]).replay_workflow(load_history("Round/done"))


async def test_copy_without_a_change_replays(
    replayer: MakeReplayer, load_history: LoadHistory, rewrite: Rewrite
) -> None:
    copy = rewrite("attempt.py", "copied_attempt")

    await replayer([copy.Attempt]).replay_workflow(load_history("Attempt/measured"))


def test_histories_name_no_place_of_the_machine_that_recorded_them(history_name: str) -> None:
    text = (HISTORIES / f"{history_name}.json").read_text(encoding="utf-8")
    payloads = b"\n".join(base64.b64decode(data) for data in re.findall(r'"data":"([^"]*)"', text)).decode()

    paths = re.findall(r"(?<![\w.)\"}])(/(?:home|root|Users|opt|srv|var|work|tmp)/[\w./-]+)", payloads)

    assert {path for path in paths if not path.startswith("/tmp/orch-histories/")} == set()
    assert "stackTrace" not in text
    assert set(re.findall(r'"identity":"([^"]*)"', text)) <= {"recorder"}


def _recorded(history: WorkflowHistory, name: str) -> list[Any]:
    """The recorded result, as a list of one; empty for a workflow that failed or was cancelled."""
    payloads = history.events[-1].workflow_execution_completed_event_attributes.result.payloads
    return pydantic_data_converter.payload_converter.from_payloads(payloads, [RESULTS[name]]) if payloads else []


def _decision(result: RunView | RoundView | Candidate) -> Any:
    """What was decided, without the wording."""
    if isinstance(result, Candidate):
        return result.failure, result.exit, result.tree, result.verdict and result.verdict.rungs_passed
    if isinstance(result, RoundView):
        lanes = [(lane.id, lane.end, lane.kept, len(lane.attempts)) for lane in result.lanes]
        tickets = [(it.ticket, it.state, it.cause, it.evaluation and it.evaluation.verdict) for it in result.tickets]
        steps = [(step.lane, step.result, step.commit) for step in result.steps]
        return result.status, result.reason, result.new_incumbent, result.chain, result.usage, lanes, tickets, steps
    rounds = [(i.winner, i.decided_by, [(c.tree, c.status, c.reason) for c in i.candidates]) for i in result.iterations]
    return result.status, result.reason, result.head, result.promoted, result.usage, rounds


def _ends(history: WorkflowHistory) -> Iterator[RunReason]:
    """The reason of the run's end, as its last step wrote it to the ledger."""
    for event in history.events:
        scheduled = event.activity_task_scheduled_event_attributes
        if scheduled.activity_type.name == "close_run":
            (close,) = pydantic_data_converter.payload_converter.from_payloads(scheduled.input.payloads, None)
            if close["events"]:  # a host that attempts went to is told without any
                yield RunReason(close["events"][-1]["reason"]["code"])
