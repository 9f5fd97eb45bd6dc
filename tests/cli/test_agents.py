"""`orch agents` on a host whose programs, keys and logins the test decides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities.agents.adapter import Traits
from orch.activities.agents.registry import adapter_of
from orch.activities.agents.survey import Flaw, Surveyed, keys, survey
from orch.cli.agents import hint, table

CODEX = adapter_of("codex").traits
OLDEST = ".".join(map(str, CODEX.oldest))
TRAITS = Traits(
    program="prog",
    oldest=(1, 2),
    forks=True,
    limits=frozenset({"usd", "turns"}),
    prices=True,
    secrets=("PROG_API_KEY", "PROG_URL", "PROG_TOKEN"),
    login=(".prog/auth",),
)

Install = Callable[[str, str], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a shell script on a PATH that holds no agent, for a user without keys."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    for name in (*CODEX.secrets, *adapter_of("qwen").traits.secrets):
        monkeypatch.delenv(name, raising=False)

    def script(name: str, text: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    return script


def found(name: str, patience_s: float = 10.0) -> Surveyed:
    """What the survey says of one agent."""
    return next(one for one in survey(patience_s) if one.name == name)


def test_a_program_that_is_not_there_is_not_found(install: Install) -> None:
    assert found("codex") == Surveyed("codex", CODEX, flaw=Flaw.NOT_FOUND)


def test_a_program_with_a_key_in_the_environment_is_usable(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    path = install("codex", f"echo codex-cli {OLDEST}")
    monkeypatch.setenv(keys(CODEX)[0], "sk-test")

    assert found("codex") == Surveyed("codex", CODEX, str(path), OLDEST)


def test_a_program_with_a_login_in_the_users_home_is_usable(install: Install) -> None:
    install("codex", f"echo codex-cli {OLDEST}")
    login = Path.home() / CODEX.login[0]
    login.parent.mkdir(parents=True)
    login.write_text("{}")

    assert found("codex").flaw is None


def test_a_program_with_a_server_of_the_users_own_needs_no_key(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("codex", f"echo codex-cli {OLDEST}")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")

    assert found("codex").flaw is None


@pytest.mark.parametrize("value", [None, ""])
def test_a_program_without_key_and_login_is_not_usable(
    value: str | None, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("codex", f"echo codex-cli {OLDEST}")
    if value is not None:
        monkeypatch.setenv(keys(CODEX)[0], value)

    one = found("codex")

    assert one.flaw is Flaw.NO_LOGIN
    assert keys(CODEX)[0] in hint(one)
    assert f"~/{CODEX.login[0]}" in hint(one)


def test_a_base_url_is_no_key() -> None:
    assert keys(TRAITS) == ("PROG_API_KEY", "PROG_TOKEN")


@pytest.mark.parametrize("older", ["0.0.9", "0.1"])
def test_a_program_that_is_too_old_is_not_usable(older: str, install: Install) -> None:
    install("codex", f"echo codex-cli {older}")

    one = found("codex")

    assert (one.version, one.flaw) == (older, Flaw.TOO_OLD)
    assert f"install {OLDEST} or newer" in hint(one)


@pytest.mark.parametrize(
    "script",
    [
        f"echo {OLDEST}",
        f"echo v{OLDEST}-beta.1 >&2",
        f"printf '\\033[1m{OLDEST}\\033[0m\\n'",
        f"cat; echo 'codex {OLDEST}'",  # it reads its stdin, which is closed
        f"echo {OLDEST}; sleep 60 &",  # it leaves something running that holds its output
    ],
)
def test_a_version_is_found_however_it_is_told(script: str, install: Install) -> None:
    install("codex", script)

    assert found("codex").version == OLDEST


def test_a_program_that_tells_no_version_is_not_held_to_be_old(install: Install) -> None:
    install("codex", "echo none of your business")

    assert (found("codex").version, found("codex").flaw) == ("", Flaw.NO_LOGIN)


@pytest.mark.parametrize(
    ("script", "detail"),
    [
        ("echo 'node: not found' >&2; exit 127", "--version: exit 127: node: not found"),
        ("kill -9 $$", "--version: signal 9"),
        ("sleep 60", "--version: timed out (0.5 s)"),
    ],
)
def test_a_program_that_does_not_run_is_broken(script: str, detail: str, install: Install) -> None:
    install("codex", script)

    one = found("codex", patience_s=0.5 if "sleep" in script else 10.0)

    assert (one.flaw, one.detail) == (Flaw.BROKEN, detail)
    assert detail in hint(one)


def test_programs_are_asked_all_at_once(install: Install, tmp_path: Path) -> None:
    for name, other in (("codex", "qwen"), ("qwen", "codex")):
        install(name, f"touch {tmp_path}/{name}; while ! test -e {tmp_path}/{other}; do sleep 0.05; done; echo 99.9.9")

    assert [one.version for one in survey() if one.name in {"codex", "qwen"}] == ["99.9.9", "99.9.9"]


def test_asking_leaves_the_users_home_and_folder_alone(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("codex", f'echo x > "$HOME/.left"; echo x > left; echo {OLDEST}')
    monkeypatch.chdir(tmp_path)
    before = [sorted(folder.iterdir()) for folder in (Path.home(), tmp_path)]

    assert found("codex").version == OLDEST
    assert [sorted(folder.iterdir()) for folder in (Path.home(), tmp_path)] == before


def test_a_command_is_always_usable(install: Install) -> None:
    assert found("cmd").flaw is None


def test_the_table_has_a_row_each_and_the_mend_below() -> None:
    rows = table(
        [
            Surveyed("one", TRAITS, "/bin/prog", "1.2.3"),
            Surveyed("two", TRAITS, flaw=Flaw.NOT_FOUND),
            Surveyed("three", TRAITS, "/bin/prog", "1.1", Flaw.TOO_OLD),
            Surveyed("four", TRAITS, "/bin/prog", "1.2", Flaw.NO_LOGIN),
            Surveyed("five", TRAITS, "/bin/prog", "", Flaw.BROKEN, "--version: exit 1: \x1b[31mno node"),
            Surveyed("six", flaw=Flaw.NOT_LOADED, detail="ImportError: gone"),
            Surveyed("seven", Traits(program="sh", resumes=False, streams=False), "/bin/sh"),
        ]
    )

    assert list(rows) == [
        "agent  version  here        limits by itself  can",
        "one    1.2.3    yes         turns, usd        resume, fork, show its steps, tell its cost",
        "two    -        not found   turns, usd        resume, fork, show its steps, tell its cost",
        "      hint: there is no 'prog' on PATH: install it, or name it: --agent two,bin=/PATH/TO/prog",
        "three  1.1      too old     turns, usd        resume, fork, show its steps, tell its cost",
        "      hint: /bin/prog is too old: install 1.2 or newer",
        "four   1.2      no login    turns, usd        resume, fork, show its steps, tell its cost",
        "      hint: no login: set PROG_API_KEY or PROG_TOKEN; or log in by 'prog', so that ~/.prog/auth is there",
        "five   -        broken      turns, usd        resume, fork, show its steps, tell its cost",
        "      hint: /bin/prog does not work: --version: exit 1: \\x1b[31mno node; run it by hand",
        "six    -        not loaded  -                 -",
        "      hint: its adapter cannot be loaded: ImportError: gone; mend or remove the package that brings it",
        "seven  -        yes         -                 -",
    ]


def test_a_hint_names_the_first_keys_only() -> None:
    many = Traits(program="prog", secrets=tuple(f"{letter}_API_KEY" for letter in "ABCDE"))

    assert hint(Surveyed("one", many, flaw=Flaw.NO_LOGIN)) == (
        "no login: set A_API_KEY or B_API_KEY or C_API_KEY, or another of its 5 keys (--json tells all)"
    )


def test_agents_prints_a_document_for_programs(orch: Any, install: Install, state: Path) -> None:
    path = install("codex", f"echo codex-cli {OLDEST}")

    done = orch("agents", "--json")
    document = json.loads(done.stdout)
    codex = next(one for one in document["agents"] if one["name"] == "codex")

    assert done.exit_code == 0
    assert {"max-turns", "max-usd", "bin"} <= document["settings"].keys()
    assert codex["path"] == str(path)
    assert (codex["version"], codex["usable"], codex["why_not"]) == (OLDEST, False, "no_login")
    assert codex["hint"]
    assert {
        "limits",
        "resumes",
        "forks",
        "streams",
        "prices",
        "settings",
        "program",
        "oldest",
        "keys",
        "login",
    } <= codex.keys()
    assert not state.exists()


def test_agents_tells_the_settings_and_how_to_write_a_spec(orch: Any, install: Install) -> None:
    done = orch("agents")

    assert done.exit_code == 0
    assert done.stdout.count("max-turns ") == 1
    assert all(f"  {key} " in done.stdout for key in CODEX.settings)
    assert "spec: NAME[:MODEL][,KEY=VALUE…]" in done.stdout


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder for sys.path with an installed package that brings three adapters, one of them good."""
    site = tmp_path / "site"
    info = site / "tiny_agent-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-agent\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(
        "[orch.agents]\ntiny = tiny_agent:Tiny\nbent = tiny_agent:Bent\ngone = tiny_agent_gone:Gone\n"
    )
    (site / "tiny_agent.py").write_text(
        "from orch.activities.agents.adapter import Traits\n"
        "class Tiny:\n"
        "    name = 'tiny'\n"
        "    traits = Traits(program='sh', version=(), limits=frozenset({'turns'}), settings={'mood': 'how it is'})\n"
        "class Bent:\n"
        "    def __init__(self):\n"
        "        raise RuntimeError('no mood today')\n"
    )
    return site


def test_adapters_of_installed_packages_are_listed_and_broken_ones_break_nothing(package: Path) -> None:
    def orch(*args: str) -> str:
        env = {**os.environ, "PYTHONPATH": str(package)}
        command = [sys.executable, "-m", "orch.cli.main", "agents", *args]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60).stdout

    listed = {one["name"]: one for one in json.loads(orch("--json"))["agents"]}

    assert listed["tiny"]["usable"]
    assert listed["tiny"]["limits"] == ["turns"]
    assert listed["tiny"]["settings"] == {"mood": "how it is"}
    assert listed["bent"]["why_not"] == listed["gone"]["why_not"] == "not_loaded"
    assert "RuntimeError: no mood today" in listed["bent"]["hint"]
    assert "settings of tiny:\n  mood  how it is\n" in orch()
