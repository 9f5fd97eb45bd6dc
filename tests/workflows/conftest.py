"""Recorded histories, a replayer set up as the worker is, and rounds on the engine without any effect."""

from __future__ import annotations

import re
import sys
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Interceptor, Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

import orch.workflows
from orch.activities import effect
from orch.activities.home import Home
from orch.worker.assembly import workflow_runner
from orch.worker.codec import SealingCodec, converter
from orch.worker.connection import connect
from orch.workflows import guard, ticket_queue, trials
from orch.workflows.model.round.plan import RoundPlan
from orch.workflows.model.round.request import RoundRequest

from .one_round import OneRound
from .round_host import Agent, RoundHost

HISTORIES = Path(__file__).parents[1] / "histories"
WORKFLOWS = Path(orch.workflows.__path__[0])


@pytest.fixture
def runner() -> SandboxedWorkflowRunner:
    """The worker's sandbox."""
    return workflow_runner()


@pytest.fixture
def replayer(runner: SandboxedWorkflowRunner) -> Callable[..., Replayer]:
    """Make a replayer of some workflows.

    The worker's `workflow_failure_exception_types` are left out: with them a history that does not fit makes the
    replayer of temporalio 1.35 wait for ever, instead of raising.
    """

    def make(workflows: Sequence[type], *interceptors: Interceptor) -> Replayer:
        return Replayer(
            workflows=workflows,
            workflow_runner=runner,
            data_converter=converter(SealingCodec(None)),
            interceptors=interceptors,
        )

    return make


@pytest.fixture(scope="session")
def load_history() -> Callable[[str], WorkflowHistory]:
    """Read a recorded history by its workflow and way of ending, for example `Goal/done`."""

    def load(name: str) -> WorkflowHistory:
        return WorkflowHistory.from_json(name, (HISTORIES / f"{name}.json").read_text(encoding="utf-8"))

    return load


@pytest.fixture
def rewrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """Import a copy of a module of `orch.workflows` with some of its text replaced."""

    def load(source: str, name: str, *changes: tuple[str, str]) -> ModuleType:
        text = (WORKFLOWS / source).read_text(encoding="utf-8")
        for old, new in changes:
            assert text.count(old) == 1, f"{source} does not hold {old!r} once"
            text = text.replace(old, new)
        package = ".".join(["orch.workflows", *Path(source).parts[:-1]])
        (tmp_path / f"{name}.py").write_text(_absolute(text, package), encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return __import__(name)

    return load


def _absolute(text: str, package: str) -> str:
    """The text with its relative imports made absolute."""

    def resolve(found: re.Match[str]) -> str:
        parts = package.split(".")
        base = ".".join(parts[: len(parts) - len(found[1]) + 1])
        return f"from {base}.{found[2]} import" if found[2] else f"from {base} import"

    return re.sub(r"^from (\.+)(\S*) import", resolve, text, flags=re.MULTILINE)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `history_name` once for every recorded history."""
    if "history_name" in metafunc.fixturenames:
        names: list[Any] = [
            str(path.relative_to(HISTORIES).with_suffix("")) for path in sorted(HISTORIES.glob("*/*.json"))
        ]
        metafunc.parametrize("history_name", names)


@pytest.fixture
async def a_round(engine_home: Home, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Awaitable[OneRound]]:
    """Make a round of a plan with what its host does; pauses are short there, and a cancellation is heard soon."""
    monkeypatch.setattr(effect, "BEAT_S", 0.1)
    for module in (guard, ticket_queue, trials):
        monkeypatch.setattr(module, "PAUSE_S", 0.2)

    async def make(plan: RoundPlan, agents: dict[str, Agent], **facts: Any) -> OneRound:
        name = f"round-{uuid.uuid4().hex[:8]}"
        started = {"promote": facts.pop("promote")} if "promote" in facts else {}
        request = RoundRequest(run=name, repo="/repo", host=name, plan=plan, **started)
        return OneRound(await connect(engine_home), RoundHost(agents, **facts), request)

    return make
