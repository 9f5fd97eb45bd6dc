"""Every bad input: exit status 2, the thing and the mend are named, and nothing is created."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from orch.cli import carrying

GOOD = ("start", "goal", "mend it", "--verify", "sh check.sh", "--agent", "cmd:true", "--detach")


def goal(*options: str, text: str = "mend it", verify: str = "sh check.sh", agent: str = "cmd:true") -> tuple[str, ...]:
    rungs = ("--verify", verify) if verify else ()
    agents = ("--agent", agent) if agent else ()
    return ("start", "goal", text, *rungs, *agents, *options)


BAD = {
    "empty goal": (goal(text=""), "goal is empty", "say in words"),
    "whitespace goal": (goal(text=" \n\t"), "goal is empty", "say in words"),
    "goal with NUL": (goal(text="a\0b"), "NUL", "remove it"),
    "huge goal": (goal(text="x" * 20_001), "20,001 characters", "in a file"),
    "missing goal file": (goal("--goal-file", "nope.txt", text=""), "nope.txt", "readable text file"),
    "no rung": (goal(verify=""), "no rung", "--verify"),
    "blank rung": (goal(verify="  "), "--verify is empty", "exit 0"),
    "no agent": (goal(agent=""), "no agent", "--agent"),
    "unknown agent": (goal(agent="cmdd:x"), "cmdd", "cmd"),
    "agent without command": (goal(agent="cmd:"), "cmd:", "cmd:COMMAND"),
    "unknown reviewer": (goal("--sign-off", "cdm:x"), "cdm", "cmd"),
    "unknown option": (goal("--verfy", "x"), "--verfy", "--verify"),
    "unknown command": (("strat", "goal"), "strat", "start"),
    "unknown kind": (("start", "gaol"), "gaol", "goal"),
    "zero candidates": (goal("-n", "0"), "0 candidates", "1 to 64"),
    "negative candidates": (goal("-n", "-3"), "-3 candidates", "1 to 64"),
    "too many candidates": (goal("-n", "65", "--max-iterations", "4"), "260 agent runs", "-n 64"),
    "word for a number": (goal("-n", "many"), "many", "integer"),
    "fewer candidates than agents": (goal("-n", "1", "--agent", "cmd:false"), "2 agents for 1", "-n 2"),
    "two counts": (goal("-n", "2", "--best-of", "2"), "--best-of and --candidates", "give one"),
    "verify and contract": (goal("--contract", "c.yaml"), "--verify and --contract", "as a rung"),
    "setup and contract": (goal("--contract", "c.yaml", "--setup", "x", verify=""), "--setup and --contract", "setup:"),
    "carried nothing": (goal("--carry", "node_modules"), "'node_modules' matches nothing", "ignored here"),
    "carried tracked files": (goal("--carry", "slug.py"), "'slug.py' matches only tracked files", "drop it"),
    "two goals": (goal("--goal-file", "g.txt"), "--goal-file and TEXT", "as TEXT or as a file"),
    "missing contract": (goal("--contract", "nope.yaml", verify=""), "nope.yaml", "readable YAML"),
    "missing program of a rung": (goal(verify="no-such-program -q"), "no-such-program", "install it"),
    "missing program of an agent": (goal(agent="cmd:no-such-agent go"), "no-such-agent", "install it"),
    "bad duration": (goal("--deadline", "soon"), "soon", "1h30m"),
    "no time": (goal("--deadline", "0s"), "0s", "above zero"),
    "no iteration": (goal("--max-iterations", "0"), "--max-iterations", "greater than or equal to 1"),
    "no tokens": (goal("--budget-tokens", "0"), "--budget-tokens", "greater than or equal to 1"),
    "no money": (goal("--budget-usd", "0"), "--budget-usd", "greater than 0"),
    "infinite money": (goal("--budget-usd", "inf"), "--budget-usd", "finite"),
    "bad target": (goal("--promote", "trunk"), "trunk", "branch:NAME"),
    "branch without a name": (goal("--promote", "branch:"), "branch:", "branch:NAME"),
    "bad id": (goal("--id", "Not Good"), "Not Good", "lower-case"),
    "not a repository": (goal("--repo", "/"), "not a git repository", "git init"),
    "missing folder": (goal("--repo", "nowhere"), "nowhere", ""),
    "schedule without a time": (("schedule", "create", *goal()[1:]), "never act", "--cron"),
    "schedule with two times": (
        ("schedule", "create", *goal("--cron", "0 2 * * *", "--every", "1h")[1:]), "--cron and --every", "give"
    ),
    "unknown time zone": (
        ("schedule", "create", *goal("--every", "1h", "--time-zone", "Europe/Pariss")[1:]), "Pariss", "Europe/Paris"
    ),
    "unknown overlap": (("schedule", "create", *goal("--every", "1h", "--overlap", "skipp")[1:]), "skipp", "skip"),
}  # fmt: skip


@pytest.mark.parametrize(("args", "named", "mend"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused_before_anything_is_created(  # noqa: PLR0917 - a row and the world
    args: tuple[str, ...], named: str, mend: str, orch: Any, repo: Path, state: Path, fingerprint: Any
) -> None:
    before = fingerprint(repo)

    done = orch(*args)

    assert done.exit_code == 2
    assert named in done.stderr
    assert mend in done.stderr
    assert done.stdout == ""
    assert not state.exists()
    assert fingerprint(repo) == before


def test_every_refusal_of_a_plan_is_one_error_and_one_hint(orch: Any, repo: Path, state: Path) -> None:
    done = orch(*goal("-n", "0"))

    first, second = done.stderr.splitlines()

    assert first.startswith("error: ")
    assert second.startswith("hint: ")


def test_merge_in_progress_is_refused_for_the_worktree_only(
    orch: Any, repo: Path, state: Path, kit: ModuleType
) -> None:
    (repo / ".git" / "MERGE_HEAD").write_text(kit.git(repo, "rev-parse", "HEAD") + "\n")

    done = orch(*GOOD)

    assert done.exit_code == 2
    assert "a merge is in progress" in done.stderr
    assert "--promote none" in done.stderr
    assert not state.exists()


def test_full_disk_is_refused(orch: Any, repo: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=10 << 20))

    done = orch(*GOOD)

    assert done.exit_code == 2
    assert "no space: 10 MiB are free" in done.stderr
    assert "orch gc" in done.stderr
    assert not state.exists()


def test_carrying_more_than_20_gib_is_refused(
    orch: Any, repo: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carrying, "MAX_BYTES", 4096)
    (repo / "deps").mkdir()
    (repo / "deps/large").write_bytes(b"x" * 9000)

    done = orch(*GOOD, "--carry", "deps")

    assert done.exit_code == 2
    assert "would be carried, at most 4 KiB; the largest: deps" in done.stderr
    assert "hint: carry less" in done.stderr
    assert not state.exists()


def test_sandbox_that_does_not_work_is_refused_when_required(
    orch: Any, repo: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orch.activities.sandbox import Flaw, registry

    monkeypatch.setattr(registry, "probe", lambda: Flaw("bwrap is not installed", "install bubblewrap"))

    done = orch(*GOOD, "--sandbox")

    assert done.exit_code == 2
    assert "--sandbox: bwrap is not installed" in done.stderr
    assert "hint: install bubblewrap; or give --no-sandbox" in done.stderr


def test_newer_state_directory_is_refused(orch: Any, repo: Path, state: Path) -> None:
    state.mkdir()
    (state / "version").write_text("99\n")

    done = orch(*GOOD)

    assert done.exit_code == 2
    assert "version 99" in done.stderr
    assert "upgrade orch" in done.stderr
    assert sorted(path.name for path in (state / "engine").iterdir()) == []


@pytest.mark.parametrize(
    "args",
    [("show",), ("watch",), ("logs",), ("diff",), ("ledger",), ("approve",), ("reject",), ("cancel",), ("promote",)],
    ids=lambda args: args[0],
)
def test_unknown_run_is_refused_without_starting_an_engine(
    args: tuple[str, ...], orch: Any, repo: Path, state: Path
) -> None:
    done = orch(*args, "goal-nothing")

    assert done.exit_code == 2
    assert "no run goal-nothing" in done.stderr
    assert "orch list" in done.stderr
    assert not (state / "engine" / "server.json").exists()
