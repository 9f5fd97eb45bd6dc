"""Raw options resolved to a request: defaults, the project's own defaults, protected tests, ids."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from orch.cli.options import GoalOptions
from orch.cli.placing import priority
from orch.cli.plan import GoalPlan, resolve_goal, run_id
from orch.workflows.errors import RefusedError
from orch.workflows.model.budget import Caps
from orch.workflows.model.goal import SandboxMode
from orch.workflows.model.placement import Placement
from orch.workflows.model.promotion import PromoteMode, PromoteTarget


def resolve(state: Path, **given: Any) -> GoalPlan:
    options = {"goal": "mend it", "verify": ("sh check.sh",), "agent": ("cmd:true",), **given}
    return resolve_goal(GoalOptions(**options), state=state)


def test_defaults_are_those_of_the_design(repo: Path, state: Path) -> None:
    request = resolve(state).request

    assert request.repo == str(repo)
    assert request.caps == Caps(candidates=1, max_iterations=10)
    assert request.sandbox is SandboxMode.AUTO
    assert request.promote == PromoteTarget(mode=PromoteMode.WORKTREE)
    assert (request.seal, request.sign_off, request.agents) == (False, "", ("cmd:true",))
    assert [(rung.name, rung.run, rung.timeout_s) for rung in request.contract.rungs] == [
        ("verify-1", "sh check.sh", 600.0)
    ]


def test_every_option_reaches_the_request(repo: Path, state: Path) -> None:
    (repo / ".venv").mkdir()
    (repo / ".venv" / "pyvenv.cfg").touch()
    request = resolve(
        state,
        best_of=4, max_iterations=3, budget_tokens=1000, budget_usd=1.5, deadline=7200.0, attempt_timeout=60.0,
        rung_timeout=30.0, protect=("docs/**",), setup=" true ", carry=(".venv",), sandbox=False, sign_off="cmd:false",
        seal=True, promote="branch:mended", id="my-run", verify=("true", "false"), agent=("cmd:true", "cmd:false"),
    ).request  # fmt: skip

    assert request.run == "my-run"
    assert request.caps == Caps(candidates=4, max_iterations=3, tokens=1000, usd=1.5, deadline_s=7200.0, attempt_s=60.0)
    assert [(rung.name, rung.timeout_s) for rung in request.contract.rungs] == [("verify-1", 30.0), ("verify-2", 30.0)]
    assert (request.contract.setup, request.contract.carry, request.contract.protected) == (
        "true",
        (".venv",),
        ("docs/**",),
    )
    assert (request.sandbox, request.sign_off, request.seal) == (SandboxMode.OFF, "cmd:false", True)
    assert request.promote == PromoteTarget(mode=PromoteMode.BRANCH, branch="mended")


def test_placement_reaches_the_request(
    repo: Path, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCH_HOST_AWAY", "90s")
    url = tmp_path.as_uri()

    plan = resolve(state, exchange=url, needs=("gpu", "big", "gpu"), priority=1)

    assert plan.request.placement == Placement(exchange=url, needs=("gpu", "big"), away_s=90.0)
    assert plan.request.priority == 1
    assert f"hosts: any with gpu, big, by way of {url}" in plan.facts
    assert (resolve(state).request.placement.exchange, resolve(state).request.priority) == ("", 3)


def test_run_takes_its_turn_by_its_priority_and_its_repository(repo: Path, state: Path) -> None:
    one = priority(resolve(state, priority=2).request)
    two = priority(resolve(state).request.model_copy(update={"repo": "/elsewhere"}))

    assert (one.priority_key, two.priority_key) == (2, 3)
    assert one.fairness_key != two.fairness_key
    assert all(len(key or "") <= 64 for key in (one.fairness_key, two.fairness_key))


def test_each_agent_gets_a_candidate_by_default(repo: Path, state: Path) -> None:
    assert resolve(state, agent=("cmd:true", "cmd:false")).request.caps.candidates == 2


def test_repository_is_found_from_below(repo: Path, state: Path) -> None:
    assert resolve(state, repo=repo / "tests").request.repo == str(repo)


def test_tests_that_the_ladder_names_are_protected_and_told(repo: Path, state: Path) -> None:
    plan = resolve(state, verify=("sh check.sh", "true tests/test_slug.py", "true slug.py"))

    assert plan.request.contract.protected == ("/check.sh", "/tests/test_slug.py")
    assert plan.facts[-1] == "protected, because the ladder names them: /check.sh, /tests/test_slug.py"


def test_plan_tells_the_worst_case(repo: Path, state: Path) -> None:
    plan = resolve(state, candidates=4, budget_usd=2.0, deadline=7200.0)

    assert "candidates: 4 per iteration, at most 40 attempts, $2.00, deadline in 2h00m" in plan.facts


def test_goal_may_stand_in_a_file(repo: Path, state: Path) -> None:
    (repo / "goal.txt").write_text("from a file\n")

    assert resolve(state, goal="", goal_file=repo / "goal.txt").request.contract.goal == "from a file"


def test_contract_file_is_the_contract(repo: Path, state: Path) -> None:
    (repo / "c.yaml").write_text("goal: of the file\nrungs: [{name: a, run: sh check.sh}]\n")

    own = resolve(state, goal="", verify=(), contract=repo / "c.yaml").request.contract
    said = resolve(state, goal="said", verify=(), contract=repo / "c.yaml").request.contract

    assert (own.goal, own.protected) == ("of the file", ("/check.sh",))
    assert said.goal == "said"


def test_projects_defaults_hold_where_nothing_is_given(repo: Path, state: Path) -> None:
    (repo / "orch.yaml").write_text("verify: sh check.sh\nagent: ['cmd:true', 'cmd:false']\ndeadline: 1h\n")

    request = resolve(state, verify=(), agent=()).request
    given = resolve(state, verify=("true",), agent=("cmd:true",), deadline=60.0).request

    assert (request.agents, request.caps.deadline_s) == (("cmd:true", "cmd:false"), 3600.0)
    assert (given.agents, given.caps.deadline_s, given.contract.rungs[0].run) == (("cmd:true",), 60.0, "true")


@pytest.mark.parametrize(
    ("default", "given"),
    [
        ("contract: c.yaml\n", {"verify": ("true",)}),
        ("verify: 'false'\nsetup: 'false'\n", {"verify": (), "contract": Path("c.yaml")}),
        ("best-of: 9\n", {"candidates": 2}),
        ("goal-file: nope\n", {"goal": "given"}),
    ],
)
def test_option_of_the_command_line_replaces_a_contradicting_default(
    default: str, given: dict[str, Any], repo: Path, state: Path
) -> None:
    (repo / "orch.yaml").write_text(default)
    (repo / "c.yaml").write_text("rungs: [{name: a, run: 'true'}]\n")

    request = resolve(state, **given).request

    assert (request.contract.rungs[0].run, request.contract.setup) == (
        "sh check.sh" if "verify" not in given else "true",
        "",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("candidats: 3\n", "orch.yaml:1: unknown key `candidats` (did you mean `candidates`?)"),
        ("verify: 'true'\ndeadline: soon\n", "orch.yaml:2: 'soon' is not a duration"),
        ("candidates: many\n", "orch.yaml:1: `candidates`: should be a valid integer"),
        ("id: x\n", "orch.yaml:1: unknown key `id`"),
        ("- a\n", "orch.yaml:1: defaults are a mapping"),
    ],
)
def test_bad_defaults_are_refused_with_their_line(text: str, message: str, repo: Path, state: Path) -> None:
    (repo / "orch.yaml").write_text(text)

    with pytest.raises(RefusedError) as refused:
        resolve(state)

    assert message in refused.value.message


def test_ids_are_readable_valid_and_fresh() -> None:
    ids = {run_id("goal", text) for text in ("Make slugify keep digits!", "Make slugify keep digits!", "…", "x" * 300)}

    assert len(ids) == 4
    assert all(re.fullmatch(r"goal(-[a-z0-9-]+)?-[0-9a-f]{6}", name) for name in ids)
    assert max(len(name) for name in ids) <= 50
