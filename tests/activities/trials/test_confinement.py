"""Confinement: what a build, a smoke test and a trial try to write outside of their checkout the system denies.

Each attempt is made by a real process in the real sandbox and tells the system's own words. Nothing changed on disk
afterwards, and the ticket fails with the cause.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orch.activities.rounds import prepare_round
from orch.activities.sandbox import registry
from orch.activities.workspaces.registry import open_workspace
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.goal import SandboxMode
from orch.workflows.model.promotion import PromoteTarget
from orch.workflows.model.round.request import PrepareRound
from orch.workflows.model.round.ticket import Cause

DENIED = ("Read-only file system", "No such file or directory", "Permission denied", "Directory nonexistent")


class Victims:
    """What must not be written: by names that mean something to people."""

    def __init__(self, rig: Any, home: Path) -> None:
        run = rig.home.run("round-c-r1")
        lane = rig.home.attempt(AttemptKey(run="round-c-r1", iteration=1, candidate=2, binding=2))
        open_workspace(rig.store, lane, rig.plan.incumbent)
        (lane / "desk").mkdir()
        for path in (run / "ledger.jsonl", lane / "desk/status", rig.home.root / "secret", home / ".profile"):
            path.write_text("kept\n")
        other = rig.home.attempt(AttemptKey(run="round-c-r1", iteration=2, candidate=900, binding=900))
        (other / "runs").mkdir(parents=True)
        (other / "pairs.jsonl").write_text("kept\n")
        self.paths = {
            "ledger": run / "ledger.jsonl",
            "lane": lane / "tree/knob",
            "desk": lane / "desk/status",
            "trial": other / "pairs.jsonl",
            "store": rig.store.git_dir / "refs/orch/round-c-r1/head",
            "state": rig.home.root / "secret",
            "home": home / ".profile",
            "repo": rig.repo / "bench.sh",
        }

    @property
    def script(self) -> str:
        """Tries to write each of them and the grading file beside it, and tells what the system says; it fails then."""
        aims = {**self.paths, "grading": Path("bench.sh")}
        tries = "\n".join(f"try {name} '{path}'" for name, path in aims.items())
        return f"""
try() {{
    said=$( (echo stolen >> "$2") 2>&1 ) && echo "$1: written" >&2 || echo "$1: ${{said##*: }}" >&2
}}
{tries}
exit 13
"""

    def content(self) -> dict[str, object]:
        """All of it as it is on the disk."""
        return {name: (path.read_bytes() if path.is_file() else path.exists()) for name, path in self.paths.items()}


@pytest.fixture
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "user"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def assert_denied(head: str, tail: str, victims: Victims, before: dict[str, object]) -> None:
    said = dict(line.split(": ", 1) for line in f"{head}{tail}".splitlines())
    assert said.keys() == {*victims.paths, "grading"}
    assert {name: text for name, text in said.items() if not text.endswith(DENIED)} == {}
    assert victims.content() == before


@pytest.mark.parametrize(
    ("file", "cause"),
    [("build.sh", Cause.BUILD_FAILED), ("smoke.sh", Cause.SMOKE_FAILED)],
    ids=["build", "smoke"],
)
def test_a_step_that_writes_elsewhere_is_denied_and_its_ticket_fails(
    rig: Any, user_home: Path, file: str, cause: Cause
) -> None:
    victims = Victims(rig, user_home)
    candidate = rig.candidate({file: victims.script})
    before = victims.content()
    found = rig.build(candidate)
    assert (found.failed, found.side) == (cause, "candidate")
    assert found.detail == f"{file.removesuffix('.sh')}: exit 13"
    assert_denied(found.output.head, found.output.tail, victims, before)


def test_a_trial_that_writes_elsewhere_is_denied_and_has_no_value(rig: Any, user_home: Path) -> None:
    victims = Victims(rig, user_home)
    candidate = rig.candidate({"code.sh": victims.script})
    before = victims.content()
    found = rig.measure(candidate)
    assert found.detail == "pair 0, candidate: the benchmark ended with exit 13"
    assert [sample.value for pair in found.pairs for sample in pair.b] == [None]
    assert_denied(found.output.head, found.output.tail, victims, before)


def test_what_a_trial_prints_of_others_is_nothing(rig: Any, user_home: Path) -> None:
    victims = Victims(rig, user_home)
    looks = "\n".join(
        f"cat '{path}' 2>/dev/null && echo seen" for path in victims.paths.values() if path != rig.repo / "bench.sh"
    )
    script = f"{looks}\nls '{rig.home.root}' '{user_home}' /run 2>/dev/null\nexit 1\n"
    found = rig.measure(rig.candidate({"code.sh": script}))
    said = f"{found.output.head}{found.output.tail}".split()
    assert "/run:" in said
    assert not {"seen", "kept", "secret"} & set(said)


def test_a_validator_sees_the_output_and_nothing_else_that_it_could_change(rig: Any, user_home: Path) -> None:
    victims = Victims(rig, user_home)
    writes = f'echo x > "$ORCH_RESULT" || echo x > "$ORCH_OUTPUT/answer" || {{ {victims.script} }}'
    rig.with_plan(validate_=rig.plan.commands.validate_.model_copy(update={"run": writes}))
    candidate = rig.candidate({"knob": "80.0"})
    before = victims.content()
    found = rig.measure(candidate)
    lines = [line for line in f"{found.output.head}{found.output.tail}".splitlines() if "cannot create" not in line]
    assert found.side == "base"
    assert_denied("\n".join(lines), "", victims, before)


@pytest.fixture
def no_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A host without a program for sandboxes."""
    monkeypatch.setenv("ORCH_SANDBOX", "bwrap")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "sh", "env"):
        (programs / name).symlink_to(next(p for p in map(Path, os.get_exec_path()) if (p / name).exists()) / name)
    monkeypatch.setenv("PATH", str(programs))
    registry._tried.cache_clear()
    yield
    registry._tried.cache_clear()


def test_where_there_is_no_sandbox_a_round_is_refused_with_the_reason(
    make_rig: Callable[..., Any], no_sandbox: None
) -> None:
    rig = make_rig()
    request = PrepareRound(
        run="round-c-r2",
        repo=str(rig.repo),
        plan=rig.plan,
        sandbox=SandboxMode.REQUIRED,
        promote=PromoteTarget.parse("none"),
    )
    prepared = prepare_round(rig.home, request)
    assert prepared.refused is not None
    assert prepared.refused.data["detail"] == "the sandbox does not work here: bwrap is not installed"
