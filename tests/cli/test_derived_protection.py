"""`protected: auto` derives what the ladder's tools load by themselves, and says what it covers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from orch.activities.protection import matcher, matches
from orch.cli.derived_protection import resolve
from orch.cli.main import cli
from orch.cli.reading import reader
from orch.workflows.model.contract import Contract, Rung

FILES = {
    "Makefile": "include build/more.inc\n-include $(X)/skipped\nall: test\ntest: lint ; @echo done\n"
    "\t@pytest -q tests\nlint:\n\truff check .\nrelease:\n\tcargo publish\n",
    "build/more.inc": "deep:\n\tgo test ./...\n",
    "package.json": '{"scripts": {"pretest": "eslint .", "test": "jest --ci", "e2e": "playwright test"}}',
    "scripts/ci.sh": "#!/bin/sh\nset -e\nsh ./scripts/inner.sh\n",
    "scripts/inner.sh": "cd sub && cargo test\n",
    "app.py": "print()\n",
    "tests/test_a.py": "",
    "rules.ini": "",
}

MANY = ["conftest.py", "sub/conftest.py", "pytest.ini", "pyproject.toml", "a/sitecustomize.py", "x.pth", ".coveragerc"]


def derived(line: str, *protected: str, setup: str = "", files: dict[str, str] | None = None) -> tuple[str, ...]:
    given = Contract(goal="g", rungs=(Rung(name="a", run=line),), protected=protected, setup=setup)
    return resolve(given, (FILES if files is None else files).get)[0].protected


def covered(globs: tuple[str, ...], name: str) -> bool:
    return matches(matcher(globs), name.encode())


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("pytest -q", [*MANY, "tox.ini", "setup.cfg", "a/__pycache__/test_a.cpython-312.pyc", "tests/test_a.py"]),
        ("python3.12 -m pytest", [*MANY, "pytest.py", "pytest/__init__.py", "x.egg-info/entry_points.txt"]),
        ("FOO=1 timeout 60 uv run pytest -c rules.ini", [*MANY, "uv.lock", "rules.ini"]),
        ("if bash -c 'pytest tests'; then exit 0; fi", MANY),
        (".venv/bin/python -m unittest", ["sitecustomize.py", ".venv/lib/a.py", "unittest.py", "test_a.py"]),
        (". .venv/bin/activate && pytest", [".venv/bin/pytest", *MANY]),
        ("tox", ["tox.ini", *MANY]),
        ("nox -s tests", ["noxfile.py", *MANY]),
        ("ruff check . && mypy .", ["ruff.toml", "sub/.ruff.toml", "mypy.ini", "pyproject.toml"]),
        ("make", ["Makefile", "sub/x.mk", "build/more.inc", "ruff.toml", *MANY]),
        ("make deep", ["go.mod", "a_test.go", "vendor/x/y.go"]),
        ("npm test", ["package.json", ".npmrc", "node_modules/.bin/jest", "jest.config.ts", ".eslintrc.js"]),
        ("yarn run e2e", ["playwright.config.ts", "yarn.lock"]),
        ("npx --yes vitest run", ["vitest.config.ts", "package-lock.json", "src/a.spec.ts"]),
        ("sh scripts/ci.sh", ["scripts/ci.sh", "scripts/inner.sh", "Cargo.toml", ".cargo/config.toml", "build.rs"]),
        ("./scripts/ci.sh", ["scripts/ci.sh", "Cargo.toml"]),
        ("tests/test_a.py", ["tests/test_a.py"]),
    ],
)  # fmt: skip
def test_files_that_the_tools_of_a_line_load_are_protected(line: str, names: list[str]) -> None:
    globs = derived(line)

    assert [name for name in names if not covered(globs, name)] == []


@pytest.mark.parametrize("line", ['test "$(cat level)" -ge 3', "grep -q 3 level", "true", "'unbalanced"])
def test_ladder_without_a_known_tool_protects_nothing(line: str) -> None:
    assert derived(line) == ()


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("pytest", "src/slug.py"),
        ("make", "Cargo.toml"),
        ("make release", "ruff.toml"),
        ("python app.py", "app.py"),
        ("npm test", "playwright.config.ts"),
        ("echo pytest", "conftest.py"),
        ("pip install -r requirements.txt", "README.md"),
    ],
)
def test_what_is_worked_on_stays_open(line: str, name: str) -> None:
    assert not covered(derived(line), name)


def test_setup_adds_the_tools_that_it_runs() -> None:
    globs = derived("true", setup="pip install -r rules.ini")

    assert covered(globs, "setup.py")
    assert covered(globs, "rules.ini")


def test_list_stands_for_itself_and_may_name_auto_or_open_a_path() -> None:
    assert derived("pytest tests/test_a.py", "docs/**") == ("/tests/test_a.py", "docs/**")
    assert {"conftest.py", "docs/**"} <= set(derived("pytest", "auto", "docs/**"))
    opened = derived("pytest", "!pyproject.toml")
    assert covered(opened, "conftest.py")
    assert not covered(opened, "pyproject.toml")
    assert not covered(derived("pytest tests/test_a.py", "!*"), "conftest.py")


def test_derived_globs_are_the_same_for_the_same_tree() -> None:
    assert derived("make && npm test") == derived("make && npm test")


def test_scripts_that_run_one_another_end() -> None:
    assert covered(
        derived("sh check.sh", files={"check.sh": "sh check.sh\nmake\n", "Makefile": "include Makefile\n"}), "x.mk"
    )


def test_check_tells_what_is_protected_and_the_digest_of_the_run(repo: Path, state: Path) -> None:
    (repo / "c.yaml").write_text("goal: x\nprotected: auto\nrungs: [{name: a, run: pytest check.sh}]\n")

    done = CliRunner().invoke(cli, ["check", "c.yaml"])

    frozen: Any = resolve(Contract(goal="x", rungs=(Rung(name="a", run="pytest check.sh"),)), reader(repo))[0]
    assert done.stdout == f"c.yaml: 1 rung, digest {frozen.digest}\n"
    assert "protected, because pytest would load them: conftest.py, " in done.stderr
    assert "protected, because the ladder names them: /check.sh" in done.stderr


def test_empty_list_is_refused_with_the_mend(repo: Path, state: Path) -> None:
    (repo / "c.yaml").write_text("goal: x\nprotected: []\nrungs: [{name: a, run: pytest}]\n")

    done = CliRunner().invoke(cli, ["check", "c.yaml"])

    assert done.exit_code == 2
    assert "`protected` is an empty list" in done.stderr
