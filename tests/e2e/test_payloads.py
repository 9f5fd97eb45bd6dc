"""What crosses Temporal: payloads of a real run, and the workflows' own modules."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import pydantic_data_converter

from orch import Client
from orch.activities import processes
from orch.worker.connection import connect
from orch.workflows import effects
from orch.workflows.model.view import RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]


async def test_payloads_read_back_as_they_were_sent(client: Client, run_goal: RunGoal) -> None:
    """T02: every input and result that crossed the engine in a real run has the fields of its model, of their types."""
    view = await run_goal("cmd:echo 2 > level", "cmd:exit 3", sign_off="cmd:true", max_iterations=1)
    temporal = await connect(client.home)
    seen: set[str] = set()
    for workflow in (view.id, f"{view.id}/i1-c1-b1", f"{view.id}/i1-c2-b2"):
        scheduled: dict[int, str] = {}
        async for event in temporal.get_workflow_handle(workflow).fetch_history_events():
            if event.HasField("activity_task_scheduled_event_attributes"):
                facts = event.activity_task_scheduled_event_attributes
                scheduled[event.event_id] = facts.activity_type.name
                seen.add(await _round_trip(facts.activity_type.name, "request", facts.input.payloads[0]))
            if event.HasField("activity_task_completed_event_attributes"):
                done = event.activity_task_completed_event_attributes
                name = scheduled[done.scheduled_event_id]
                seen.add(await _round_trip(name, "return", done.result.payloads[0]))

    assert {
        "PrepareRun",
        "RunPrepared",
        "RunAgent",
        "AgentReport",
        "Snapshot",
        "Measure",
        "Verdict",
        "CloseRun",
    } <= seen


def test_workflows_load_in_the_sandbox_whatever_is_installed_or_set(tmp_path: Path) -> None:
    """T03: with telemetry variables and warnings as errors, their modules read no environment and no clock."""
    script = """
import asyncio
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import _Definition
from orch.worker.assembly import PASSED_THROUGH
from orch.workflows.registry import WORKFLOWS

async def load():
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
    for workflow in WORKFLOWS:
        SandboxedWorkflowRunner(restrictions=restrictions).prepare_workflow(_Definition.must_from_class(workflow))

asyncio.run(load())
"""
    env = processes.scrubbed_environment({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "false"})
    done = processes.run(processes.Command((sys.executable, "-W", "error", "-c", script), tmp_path, env), timeout_s=60)

    assert done.exit.ok, done.stderr.decode()


async def _round_trip(activity: str, which: str, payload: Payload) -> str:
    """Decode a payload as the effect's own type and encode it again; the name of the type."""
    hints: dict[str, Any] = getattr(effects, activity).__annotations__
    kind = getattr(effects, hints[which], None)
    if kind is None:
        return "None"
    (value,) = await pydantic_data_converter.decode([payload], [kind])
    (again,) = await pydantic_data_converter.encode([value])
    assert type(value) is kind
    assert again.data == payload.data
    return str(kind.__name__)
