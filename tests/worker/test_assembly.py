from __future__ import annotations

import asyncio
import os

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.common import RetryPolicy

from orch.activities.home import Home
from orch.worker.assembly import PASSED_THROUGH, make_workers
from orch.worker.connection import connect
from orch.worker.records import version
from orch.worker.settings import Settings
from orch.worker.state import host_id
from orch.workflows.host import ORCH_QUEUE, claim_queue, host_queue
from orch.workflows.registry import ATTEMPTS, RUNS

pytestmark = pytest.mark.engine


async def test_workflows_and_effects_have_queues_of_their_own(shared_home: Home) -> None:
    workers = make_workers(await connect(shared_home, identity="here"), Settings(home=shared_home, slots=2))
    assert [worker.task_queue for worker in workers] == [ORCH_QUEUE, host_queue(host_id(shared_home)), claim_queue()]
    shared, host, claims = (worker.config() for worker in workers)
    assert (shared.get("activities"), shared.get("workflows")) == ([], [*RUNS, *ATTEMPTS])
    assert (bool(host.get("activities")), host.get("workflows")) == (True, list(ATTEMPTS))
    assert ([a.__name__ for a in claims.get("activities", ())], claims.get("workflows")) == (["claim_host"], [])
    assert {worker.config().get("build_id") for worker in workers} == {version()}  # none reads all code that is loaded


async def test_host_is_asked_on_a_queue_for_each_set_of_its_labels(shared_home: Home) -> None:
    labelled = Settings(home=shared_home, slots=2, labels=frozenset({"gpu", "big"}))
    _, _, *claims = make_workers(await connect(shared_home, identity="here"), labelled)

    queues = [worker.task_queue for worker in claims]
    assert queues == ["orch-claim", "orch-claim-big", "orch-claim-gpu", "orch-claim-big+gpu"]
    assert claim_queue(("gpu", "big")) in queues


def test_the_sandbox_polices_the_rules() -> None:
    assert not any("orch.workflows.rules".startswith(name) for name in PASSED_THROUGH)


@pytest.mark.parametrize("name", ["Goal", "Attempt"])
async def test_a_run_whose_input_cannot_be_read_fails_instead_of_hanging(shared_home: Home, name: str) -> None:
    client = await connect(shared_home)
    run = await client.start_workflow(
        name,
        {"junk": 1},
        id=f"junk-{name}-{os.getpid()}",
        task_queue=ORCH_QUEUE if name == "Goal" else host_queue(host_id(shared_home)),
        retry_policy=RetryPolicy(maximum_attempts=1),
    )
    with pytest.raises(WorkflowFailureError):
        await asyncio.wait_for(run.result(), timeout=60)
