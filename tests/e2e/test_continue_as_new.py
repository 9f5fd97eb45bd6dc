"""A run past the history limit continues as new with its ledger and ends as if nothing had happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHistoryEventFilterType
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from orch.activities.home import Home
from orch.worker.assembly import make_workers
from orch.worker.server import binary
from orch.worker.settings import Settings
from orch.worker.state import host_id, open_state
from orch.workflows.goal import Goal
from orch.workflows.host import ORCH_QUEUE
from orch.workflows.model.budget import Caps
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.event import IterationDecided
from orch.workflows.model.goal import GoalRequest
from orch.workflows.model.view import RunStatus

pytestmark = [pytest.mark.engine]

LIMIT = "limit.historyCount.suggestContinueAsNew=60"


async def test_run_past_the_history_limit_keeps_ledger_budget_and_result(home: Home, project: Path) -> None:
    open_state(home)
    async with await WorkflowEnvironment.start_local(
        data_converter=pydantic_data_converter,
        dev_server_existing_path=str(binary()),
        dev_server_extra_args=["--dynamic-config-value", LIMIT, "--search-attribute", "OrchStatus=Keyword"],
    ) as environment:
        orchestrator, host, *_ = make_workers(environment.client, Settings(home=home, slots=2))
        async with orchestrator, host:
            request = _request(home, project)
            handle = await environment.client.start_workflow(Goal.run, request, id=request.run, task_queue=ORCH_QUEUE)
            view = await handle.result()
            page = await handle.query(Goal.ledger, 0)
            first = environment.client.get_workflow_handle(request.run, run_id=handle.first_execution_run_id)
            last = [e async for e in first.fetch_history_events(event_filter_type=_CLOSE)]

    assert last[0].HasField("workflow_execution_continued_as_new_event_attributes")
    assert view.status is RunStatus.SUCCEEDED
    assert [iteration.ordinal for iteration in view.iterations] == [1, 2, 3, 4]
    assert view.usage.tokens == 40
    assert [event.seq for event in page.events] == list(range(1, len(page.events) + 1))
    assert sum(isinstance(event, IterationDecided) for event in page.events) == 4
    assert (project / "level").read_text() == "4\n"


_CLOSE: Any = WorkflowHistoryEventFilterType.CLOSE_EVENT


def _request(home: Home, project: Path) -> GoalRequest:
    agent = 'cmd:echo $(( $(cat level) + 1 )) > level; echo "{\\"tokens_in\\": 10}" > $ORCH_USAGE_FILE'
    rungs = tuple(Rung(name=f"level-{n}", run=f'test "$(cat level)" -ge {n}') for n in (1, 2, 3, 4))
    return GoalRequest(
        run="goal-long",
        repo=str(project),
        host=host_id(home),
        contract=Contract(goal="raise the level", rungs=rungs),
        agents=(agent,),
        caps=Caps(max_iterations=6),
    )
