"""What is refused before anything is started, and with which mend: the prompt template, and agents."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.cli import preflight
from orch.cli.options import GoalOptions
from orch.cli.plan import resolve_goal
from orch.workflows.errors import RefusedError
from orch.workflows.model.goal import MAX_TEMPLATE
from orch.workflows.model.outcome import SessionMode

TEMPLATE = "{{goal}}\n{{checks}}\n{{feedback}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "prompt.md"


def test_template_is_read(file: Path) -> None:
    file.write_text(f"é {TEMPLATE}")

    assert preflight.template(file) == f"é {TEMPLATE}"
    assert preflight.template(None) == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        (b"\xff\xfe", "cannot be read: it is not UTF-8"),
        (TEMPLATE.encode() + b"x" * MAX_TEMPLATE, "32,801 characters, at most 32,768"),
        (b"{{gaol}}", "unknown placeholder {{gaol}}"),
        (b"", "leaves out {{goal}}, {{checks}}, {{feedback}}"),
    ],
)
def test_template_that_is_of_no_use_is_refused_by_its_name(file: Path, content: bytes | None, said: str) -> None:
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(RefusedError) as refused:
        preflight.template(file)

    assert str(file) in refused.value.message
    assert said in refused.value.message
    assert refused.value.hint


def test_folder_is_no_template(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="cannot be read: Is a directory"):
        preflight.template(tmp_path)


def test_longest_template_is_taken(file: Path) -> None:
    file.write_text(TEMPLATE.ljust(MAX_TEMPLATE, "x"))

    assert len(preflight.template(file)) == MAX_TEMPLATE


def test_template_and_session_mode_reach_the_request(repo: Path, state: Path) -> None:
    (repo / "prompt.md").write_text(TEMPLATE)
    given = {"goal": "mend it", "verify": ("true",), "agent": ("cmd:true",)}

    plain = resolve_goal(GoalOptions(**given), state=state).request
    fork = resolve_goal(GoalOptions(**given, session="fork", prompt_template=Path("prompt.md")), state=state).request

    assert (plain.template, plain.session) == ("", SessionMode.CONTINUE)
    assert (fork.template, fork.session) == (TEMPLATE, SessionMode.FORK)


def test_project_may_name_its_template_once_for_all(repo: Path, state: Path) -> None:
    (repo / "docs").mkdir()
    (repo / "docs" / "prompt.md").write_text(TEMPLATE)
    (repo / "orch.yaml").write_text("prompt-template: docs/prompt.md\nsession: fresh\n")

    options = GoalOptions(goal="mend it", verify=("true",), agent=("cmd:true",))
    request = resolve_goal(options, state=state).request

    assert (request.template, request.session) == (TEMPLATE, SessionMode.FRESH)


PROGRAMS = {
    "missing": ("", "there is no program 'codex' on PATH"),
    "broken": ("exit 7", "cannot be used here: broken"),
    "too old": ("echo codex-cli 0.1.0", "cannot be used here: too old"),
    "not logged in": ("echo codex-cli 9.9.9", "cannot be used here: no login"),
}


@pytest.mark.parametrize("fault", PROGRAMS)
def test_agent_that_cannot_work_here_is_refused_before_anything_is_started(
    fault: str, tmp_path: Path, make_repo: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    script, said = PROGRAMS[fault]
    programs = tmp_path / "bin"
    programs.mkdir()
    if script:
        (programs / "codex").write_text(f"#!/bin/sh\n{script}\n")
        (programs / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.defpath}")
    for name in ("CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    state = tmp_path / "state"
    options = GoalOptions(goal="x", repo=make_repo(tmp_path / "repo"), verify=("false",), agent=("codex",))

    with pytest.raises(RefusedError) as refused:
        resolve_goal(options, state=state)

    assert said in refused.value.message
    assert refused.value.hint
    assert not state.exists()


def test_agent_whose_key_the_contract_refers_to_is_taken(
    tmp_path: Path, make_repo: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "codex").write_text("#!/bin/sh\necho codex-cli 9.9.9\n")
    (tmp_path / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    for name in ("CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    contract = tmp_path / "c.yaml"
    contract.write_text("goal: x\nrungs: [{name: a, run: 'false'}]\nsecrets: {OPENAI_API_KEY: 'cmd:pass show it'}\n")
    options = GoalOptions(repo=make_repo(tmp_path / "repo"), contract=contract, agent=("codex:m",))

    plan = resolve_goal(options, state=tmp_path / "state")

    assert "secrets: OPENAI_API_KEY from cmd:pass show it, to agent" in plan.facts


def test_secrets_of_the_command_line_are_references_for_agents(make_repo: Callable[..., Path], tmp_path: Path) -> None:
    given = ("A=env:B", "C=cmd:pass show a=b")
    options = GoalOptions(
        goal="x", repo=make_repo(tmp_path / "repo"), verify=("false",), agent=("cmd:true",), secret=given
    )

    found = resolve_goal(options, state=tmp_path / "state").request.contract.secrets

    assert [(s.name, s.source, s.to) for s in found] == [
        ("A", "env:B", ("agent",)),
        ("C", "cmd:pass show a=b", ("agent",)),
    ]


@pytest.mark.parametrize("given", ["TOKEN=sk-given-itself", "sk-given-itself", "PATH=env:A", "=env:A"])
def test_secret_that_is_no_reference_is_refused_and_no_value_is_shown(
    given: str, make_repo: Callable[..., Path], tmp_path: Path
) -> None:
    options = GoalOptions(
        goal="x", repo=make_repo(tmp_path / "repo"), verify=("false",), agent=("cmd:true",), secret=(given,)
    )

    with pytest.raises(RefusedError, match="that is no reference") as refused:
        resolve_goal(options, state=tmp_path / "state")

    assert "sk-given-itself" not in refused.value.message


def test_agent_with_a_key_is_taken(
    tmp_path: Path, make_repo: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "codex").write_text("#!/bin/sh\necho codex-cli 9.9.9\n")
    (tmp_path / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    options = GoalOptions(goal="x", repo=make_repo(tmp_path / "repo"), verify=("false",), agent=("codex:m",))

    assert resolve_goal(options, state=tmp_path / "state").request.agents == ("codex:m",)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"needs": ("gpu",)}, "--needs without --exchange"),
        ({"exchange": "HERE", "needs": ("GPU!",)}, "--needs: 'GPU!'"),
        ({"exchange": "HERE", "carry": (".venv",)}, "--carry and --exchange contradict each other"),
        ({"exchange": "HERE/gone"}, "cannot be written"),
        ({"exchange": "file:///proc/sys"}, "cannot be written"),
        ({"exchange": "s3://key:word@bucket/x"}, "holds more than its place"),
        ({"priority": 9}, "--priority: '9'"),
    ],
)
def test_placement_that_cannot_be_is_refused(
    make_repo: Callable[..., Path], tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    repo = make_repo(tmp_path / "project")
    if "exchange" in given:
        given = {**given, "exchange": str(given["exchange"]).replace("HERE", tmp_path.as_uri())}
    options = GoalOptions(goal="mend", repo=repo, verify=("true",), agent=("cmd:true",), **given)

    with pytest.raises(RefusedError) as refused:
        resolve_goal(options, state=tmp_path / "state")

    assert said in refused.value.message


def test_broken_limit_in_the_environment_is_refused(
    make_repo: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCH_HOST_AWAY", "soon")
    options = GoalOptions(goal="mend", repo=make_repo(tmp_path / "p"), verify=("true",), agent=("cmd:true",))

    with pytest.raises(RefusedError, match="ORCH_HOST_AWAY"):
        resolve_goal(options, state=tmp_path / "state")


@pytest.mark.parametrize("variable", ["ORCH_SANDBOX", "ORCH_WORKSPACES"])
def test_setting_that_names_nothing_is_refused_before_a_worker_could_take_it(
    variable: str, repo: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "nonsense")

    with pytest.raises(RefusedError, match=variable):
        resolve_goal(GoalOptions(goal="mend it", repo=repo, verify=("true",), agent=("cmd:true",)), state=state)

    assert not state.exists()
