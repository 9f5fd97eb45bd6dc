"""Workflow modules load in Temporal's sandbox on any host, and the sandbox polices the rules too."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from orch.workflows.registry import WORKFLOWS

Rewrite = Callable[..., ModuleType]

TRACING = {
    "OTEL_SDK_DISABLED": "false",
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_METRICS_EXPORTER": "otlp",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317",
    "OTEL_PYTHON_CONTEXT": "contextvars_context",
}


@pytest.mark.parametrize("cls", WORKFLOWS, ids=lambda cls: cls.__name__)
async def test_workflow_loads_in_the_sandbox_without_a_warning(
    cls: type, runner: SandboxedWorkflowRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in TRACING.items():
        monkeypatch.setenv(name, value)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runner.prepare_workflow(workflow._Definition.must_from_class(cls))


@pytest.mark.parametrize(
    ("effect", "line"),
    [
        ("time.time", "import time; time.time()"),
        ("random.random", "import random; random.random()"),
        ("os.getcwd", "import os; os.getcwd()"),
        ("__builtins__.open", "open('/etc/hostname')"),
    ],
)
async def test_effect_planted_in_a_rule_is_refused(
    replayer: Callable[..., Replayer],
    load_history: Callable[[str], WorkflowHistory],
    rewrite: Rewrite,
    effect: str,
    line: str,
) -> None:
    first = "    if baseline.setup is not None"
    rewrite("rules/baseline.py", "planted_rule", (first, f"    {line}\n{first}"))
    old, new = "from .rules import baseline, budget", "import planted_rule as baseline\nfrom .rules import budget"
    planted = rewrite("goal.py", "planted_goal", (old, new))

    with pytest.raises(Exception, match=f"Cannot access {effect}"):
        await replayer([planted.Goal]).replay_workflow(load_history("Goal/rung_cannot_run"))
