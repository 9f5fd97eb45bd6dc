"""A contract file: what it means, and every refusal with its line and the mend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orch.cli.contract_file import check_contract, load_contract
from orch.workflows.errors import RefusedError

GOOD = """\
goal: Make slugify keep digits
rungs:
  - {name: lint, run: ruff check .}
  - {name: unit, run: pytest -q, timeout: 10m, network: true}
protected: ["tests/**", "pyproject.toml"]
setup: pip install -e .
setup_timeout: 90s
carry: [.venv]
"""


def test_contract_file_means_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(GOOD)

    contract = load_contract(tmp_path / "c.yaml")

    assert contract.goal == "Make slugify keep digits"
    assert [(rung.name, rung.run, rung.timeout_s, rung.network) for rung in contract.rungs] == [
        ("lint", "ruff check .", 600.0, False),
        ("unit", "pytest -q", 600.0, True),
    ]
    assert contract.protected == ("tests/**", "pyproject.toml")
    assert (contract.setup, contract.setup_timeout_s, contract.carry) == ("pip install -e .", 90.0, (".venv",))


def test_secrets_are_references_for_agents_unless_they_say_more(tmp_path: Path) -> None:
    more = "secrets:\n  A: env:B\n  C: {from: 'cmd:pass show c', to: [agent, setup]}\n"
    (tmp_path / "c.yaml").write_text(GOOD + more)
    (tmp_path / "none.yaml").write_text(GOOD)

    contract = load_contract(tmp_path / "c.yaml")

    assert [(secret.name, secret.source, secret.to) for secret in contract.secrets] == [
        ("A", "env:B", ("agent",)),
        ("C", "cmd:pass show c", ("agent", "setup")),
    ]
    assert contract.digest == load_contract(tmp_path / "none.yaml").digest


def test_value_that_stands_in_the_file_is_refused_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(GOOD + "secrets: {A: sk-given-itself}\n")

    with pytest.raises(RefusedError) as refused:
        load_contract(tmp_path / "c.yaml")

    assert "sk-given-itself" not in f"{refused.value.message}{refused.value.hint}"


def test_goal_of_the_command_line_stands_in_for_the_file(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("rungs: [{name: a, run: 'true'}]\n")

    assert load_contract(tmp_path / "c.yaml", goal="other words").goal == "other words"


REFUSED: dict[str, tuple[str | bytes, list[tuple[int, str]]]] = {
    "empty file": ("", [(1, "a contract is a mapping")]),
    "a list": ("- a\n", [(1, "a contract is a mapping")]),
    "tab": ("goal: x\nrungs:\n\t- a\n", [(3, "not valid YAML")]),
    "open quote": ('goal: "x\nrungs: []\n', [(3, "not valid YAML")]),
    "two documents": ("goal: x\n---\ngoal: y\n", [(2, "not valid YAML")]),
    "control character": ("goal: x\nrungs: \x07\n", [(2, "control character")]),
    "not UTF-8": (b"goal: x\nsetup: \xff\n", [(2, "not UTF-8")]),
    "holds itself": ("setup: &a [*a]\ngoal: x\nrungs: [{name: a, run: b}]\n", [(1, "`setup`"), (1, "holds itself")]),
    "unknown key": (
        "goal: x\nrungz:\n  - {name: a, run: b}\n",
        [(2, "unknown key `rungz`")],
    ),
    "unknown key of a rung": (
        "goal: x\nrungs:\n  - name: a\n    run: b\n    timeot: 5m\n",
        [(5, "unknown key `timeot`")],
    ),
    "key twice": (
        "goal: x\nrungs: [{name: a, run: b}]\ngoal: y\n",
        [(3, "`goal` stands twice, first on line 1")],
    ),
    "no goal": ("rungs: [{name: a, run: b}]\n", [(1, "`goal` is missing")]),
    "empty goal": ("goal: ' '\nrungs: [{name: a, run: b}]\n", [(1, "`goal` is empty")]),
    "key without value": ("goal: x\nsetup:\nrungs: [{name: a, run: b}]\n", [(2, "`setup` is empty")]),
    "no rungs": ("goal: x\nrungs: []\n", [(2, "`rungs` is empty")]),
    "rungs as text": ("goal: x\nrungs: pytest\n", [(2, "`rungs`")]),
    "rung as text": ("goal: x\nrungs:\n  - a\n  - pytest -q\n", [(3, "rung 1"), (4, "rung 2")]),
    "rung without run": ("goal: x\nrungs:\n  - {name: a, run: b}\n  - name: c\n", [(4, "rung 2: `run` is missing")]),
    "bad duration": (
        "goal: x\nrungs:\n  - name: a\n    run: b\n    timeout: soon\n",
        [(5, "'soon' is not a duration")],
    ),
    "too long": ("goal: x\nrungs:\n  - {name: a, run: b, timeout: 2d}\n", [(3, "rung 1: `timeout`")]),
    "number for text": ("goal: x\nrungs: [{name: a, run: b}]\nsetup: 5\n", [(3, "`setup`: should be a valid string")]),
    "text for a list": ("goal: x\nrungs: [{name: a, run: b}]\ncarry: .venv\n", [(3, "`carry`")]),
    "number in a list": (
        "goal: x\nrungs: [{name: a, run: b}]\nprotected: [a, 5]\ncarry: ['']\n",
        [(3, "item 2 of `protected`: should be a valid string"), (4, "item 1 of `carry` is empty")],
    ),
    "bad name": ("goal: x\nrungs:\n  - {name: '!', run: b}\n", [(3, "rung 1: `name`")]),
    "name twice": ("goal: x\nrungs: [{name: a, run: b}, {name: a, run: c}]\n", [(1, "used twice: a")]),
    "secret itself": (
        "goal: x\nrungs: [{name: a, run: b}]\nsecrets:\n  TOKEN: sk-given-itself\n",
        [(4, "secret `TOKEN`: it is no reference")],
    ),
    "secrets as list": ("goal: x\nrungs: [{name: a, run: b}]\nsecrets: [A]\n", [(3, "`secrets` is no mapping")]),
    "secret for rungs": (
        "goal: x\nrungs: [{name: a, run: b}]\nsecrets:\n  A: {from: env:A, to: [rungs]}\n",
        [(4, "secret `A`: `to` is not a list of agent and setup")],
    ),
    "secret with more": (
        "goal: x\nrungs: [{name: a, run: b}]\nsecrets:\n  A: {from: env:A, for: me}\n",
        [(4, "secret `A`: it is no reference")],
    ),
    "names no secret can have": (
        "goal: x\nrungs: [{name: a, run: b}]\nsecrets:\n  PATH: env:A\n  GIT_DIR: env:A\n  A-B: env:A\n",
        [
            (4, "secret `PATH`: that variable is not free"),
            (5, "secret `GIT_DIR`: that variable is not free"),
            (6, "secret `A-B`: that is no name of a variable"),
        ],
    ),
    "several": (
        "gaol: x\nrungs:\n  - {name: a, run: b, timeout: x}\n  - {nam: a}\n",
        [(1, "unknown key `gaol`"), (3, "not a duration"), (4, "rung 2: `run`"), (4, "unknown key `nam`")],
    ),
}


@pytest.mark.parametrize(("text", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals_name_their_line(text: str | bytes, expected: list[tuple[int, str]], tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())

    contract, document = check_contract(path)

    assert contract is None
    found = sorted(set(document.refusals))
    assert [refusal.line for refusal in found] == [line for line, _ in expected]
    for refusal, (_, words) in zip(found, expected, strict=True):
        assert words in refusal.message


def test_refusals_offer_the_nearest_key(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("goal: x\nrungs: [{name: a, run: b}]\nprotectd: [x]\n")

    with pytest.raises(RefusedError) as refused:
        load_contract(tmp_path / "c.yaml")

    assert refused.value.message == f"{tmp_path}/c.yaml:3: unknown key `protectd` (did you mean `protected`?)"


def test_many_aliases_cost_nothing(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    (tmp_path / "c.yaml").write_text(bomb)

    contract, document = check_contract(tmp_path / "c.yaml")

    assert contract is None
    assert document.refusals


def test_check_prints_the_digest(orch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # no repository, in which what is to be carried would have to be
    (tmp_path / "c.yaml").write_text(GOOD)

    done = orch("check", str(tmp_path / "c.yaml"), "--json")

    assert done.exit_code == 0
    assert json.loads(done.stdout)["digest"] == load_contract(tmp_path / "c.yaml").digest


def test_check_prints_every_refusal(orch: Any, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("rung: []\ngoal: ' '\n")

    plain, data = orch("check", str(tmp_path / "c.yaml")), orch("check", str(tmp_path / "c.yaml"), "--json")

    assert plain.exit_code == data.exit_code == 2
    assert "c.yaml:1: unknown key `rung` (did you mean `rungs`?)" in plain.stderr
    assert [refusal["line"] for refusal in json.loads(data.stdout)["refusals"]] == [1, 2]
