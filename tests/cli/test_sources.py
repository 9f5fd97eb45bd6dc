"""A repository that is given as a URL, before the start: what is read of it, what it cannot give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orch.cli.options import GoalOptions
from orch.cli.plan import GoalPlan, resolve_goal
from orch.cli.reasons import next_step
from orch.workflows.errors import RefusedError
from orch.workflows.model.reason import Reason, RunReason
from orch.workflows.model.view import RunStatus, RunView

PROMPT = "{{goal}}\n{{checks}}\n{{feedback}}\n"


@pytest.fixture
def url(make_repo: Callable[..., Path], tmp_path: Path, kit: ModuleType) -> str:
    """A bare repository whose project has defaults of its own."""
    files = {"orch.yaml": "prompt-template: docs/prompt.md\n", "docs/prompt.md": PROMPT, "tests/test_a.py": ""}
    kit.git(tmp_path, "clone", "-q", "--bare", str(make_repo(tmp_path / "work", files)), "project.git")
    return (tmp_path / "project.git").as_uri()


def plan(url: Path | str, state: Path, **options: Any) -> GoalPlan:
    given = {"goal": "mend it", "verify": ("pytest -q tests/test_a.py",), "agent": ("cmd:true",), **options}
    return resolve_goal(GoalOptions(repo=url, **given), state=state)


def test_plan_names_the_url_and_the_commit_and_promotes_nowhere(url: str, state: Path, kit: ModuleType) -> None:
    found = plan(url, state)

    head = kit.git(Path(url.removeprefix("file://")), "rev-parse", "HEAD")
    assert (found.request.repo, found.request.ref, str(found.request.promote)) == (url, head, "none")
    assert found.facts[1].startswith(f"repository: {url} at {head[:12]}; the result stays here: orch diff goal-mend-it")


def test_defaults_and_protected_paths_are_read_from_the_repository(url: str, state: Path) -> None:
    request = plan(url, state).request

    assert request.template == PROMPT
    assert {"/tests/test_a.py", "conftest.py"} <= set(request.contract.protected)
    assert [path.name for path in (state / "stores").glob("*/tmp*")] == []


@pytest.mark.parametrize(
    ("options", "said", "mend"),
    [
        ({"promote": "worktree"}, "--promote worktree: URL has no working tree here", "orch diff"),
        ({"promote": "branch:x"}, "--promote branch:x: URL has no working tree here", "git fetch"),
        ({"carry": (".venv",)}, "--carry .venv: carried paths lie in a working tree, URL has none", "--setup"),
        ({"ref": "nope"}, "URL has no branch or tag nope", "git ls-remote URL"),
    ],
)
def test_what_a_url_cannot_give_is_refused(
    url: str, state: Path, options: dict[str, Any], said: str, mend: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        plan(url, state, **options)

    assert said.replace("URL", url) in refused.value.message
    assert mend.replace("URL", url) in refused.value.hint


def test_ref_of_a_working_tree_is_refused(repo: Path, state: Path) -> None:
    with pytest.raises(RefusedError, match=r"--ref main: .* is a working tree"):
        plan(repo, state, ref="main")

    assert not state.exists()


def test_refused_url_makes_no_state(orch: Any, state: Path) -> None:
    done = orch(
        "start", "goal", "x", "--repo", "https://me:word@host/x.git", "--verify", "false", "--agent", "cmd:true"
    )

    assert (done.exit_code, state.exists()) == (2, False)
    assert "holds a user or a password" in done.stderr
    assert "word@" not in done.stderr


def test_next_step_of_a_success_leads_to_a_clone() -> None:
    done = RunView(
        id="r",
        kind="goal",
        status=RunStatus.SUCCEEDED,
        reason=Reason(code=RunReason.DONE),
        goal="",
        repo="git@host:x.git",
        started_at="",
    )

    assert next_step(done).startswith("orch diff r | git apply, in a clone")
    assert next_step(done.model_copy(update={"repo": "/x"})) == "orch diff r, then: orch promote r"
