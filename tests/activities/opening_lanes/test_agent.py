"""A lane's agent: where it runs while others are measured."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from orch.activities import artifacts
from orch.activities.trials.processors import spare
from orch.workflows.model.round.plan import DeviceSet

MINE = sorted(os.sched_getaffinity(0))


FIRST = DeviceSet(name="quiet", cpus=(MINE[0],))


@pytest.mark.skipif(not spare([FIRST]), reason="one core is measured on, and none is left")
def test_an_agent_keeps_off_the_processors_of_measurements(scene: Callable[..., Any]) -> None:
    one = scene(devices=(FIRST,))
    artifacts.write_whole(one.home.run("round-c-r") / artifacts.PLAN, one.plan.model_dump_json())
    assert one.open().failed is None
    said = one.agent("python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)))'").stdout.head
    assert said.split() == [str(number) for number in spare([FIRST])]
