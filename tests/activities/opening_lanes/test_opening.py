"""A lane's workspace: what it holds, that the target resolves inside, and what its commands can and cannot reach."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orch.activities.agents import preparing
from orch.activities.lanes import opening
from orch.activities.sandbox import Profile
from orch.activities.slots import held
from orch.activities.trials import leases
from orch.workflows.model.exit import ExitKind
from orch.workflows.model.outcome import OutcomeKind
from orch.workflows.model.round.plan import Command
from orch.workflows.model.round.ticket import Cause

Scenes = Callable[..., Any]

PROBE = Command(run="PYTHONPATH=src python3 -c 'import pkg; print(pkg.__file__)'")


def inside(one: Any, script: str, number: int = 1, launch: int = 1) -> str:
    """What a script prints in a lane, where it must end well."""
    report = one.agent(script, number, launch=launch)
    assert report.exit.ok, (report.exit, report.stderr)
    return str(report.stdout.head).strip()


def test_a_lane_has_wrapper_facts_and_desk_and_git_sees_none_of_them(
    scene: Scenes, project: Path, kit: ModuleType
) -> None:
    before = kit.fingerprint(project)
    one = scene()
    opened = one.open()
    store = (one.home.store(one.store) / "store.git" / "info" / "exclude").read_text()

    assert (opened.failed, opened.path) == (None, str(one.folder() / "tree"))
    said = inside(one, "ls -A .orch; test -x .orch/round && git remote; echo > new; git status --porcelain")
    facts = json.loads((one.written() / ".orch" / "lane.json").read_text())
    assert said == "lane.json\nround\n?? new"
    assert (facts["round"], facts["lane"], facts["incumbent"]) == ("r", "fast", one.plan.incumbent)
    assert facts["desk"] == os.path.realpath(one.folder() / "desk")
    assert ".orch" not in store
    assert kit.fingerprint(project) == before


def test_excludes_of_the_user_hold_in_a_lane(scene: Scenes) -> None:
    one = scene()
    one.open()
    assert inside(one, "mkdir notes; touch notes/mine; git status --porcelain") == ""


def test_an_opened_lane_is_found_again_as_its_agent_left_it(scene: Scenes) -> None:
    one = scene(commands={"probe": PROBE, "setup": Command(run="echo $$ > made")})
    first = one.open()
    inside(one, "echo mine > .orch/round; echo more > src/new.py; touch $PWD/../desk/outbox/kept")
    again = one.open()
    assert (again.path, again.failed) == (first.path, None)
    assert inside(one, "cat .orch/round src/new.py; ls ../desk/outbox; cat made", launch=2).startswith(
        "mine\nmore\nkept\n"
    )
    assert list(held(one.home.slots).values()) == ["round-c-r/i1-c1-b1"]


def test_a_lane_that_was_half_laid_out_is_finished(scene: Scenes, monkeypatch: pytest.MonkeyPatch) -> None:
    one = scene()

    def dies(*_: object) -> None:
        raise LookupError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(opening, "exclude", dies)
        with pytest.raises(Exception, match="killed"):
            one.open()
    one.open()
    assert inside(one, "ls -A .orch; git status --porcelain") == "lane.json\nround"


def test_a_host_set_to_worktrees_gives_lanes_refs_of_their_own(scene: Scenes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCH_WORKSPACES", "worktree")
    one = scene()
    one.open()
    assert inside(one, "git branch mine; git for-each-ref").endswith("refs/heads/mine")
    assert not one.refs("refs/heads/mine")


def test_what_stands_in_the_place_of_the_wrappers_folder_is_not_followed(
    scene: Scenes, project: Path, kit: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (project / ".orch").symlink_to(tmp_path / "elsewhere")
    kit.commit_all(project)
    one = scene()
    one.open()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert inside(one, "ls .orch") == "lane.json\nround"


def test_a_target_inside_of_the_lane_is_found(scene: Scenes) -> None:
    one = scene(commands={"probe": PROBE})
    assert one.open().failed is None


@pytest.mark.parametrize("sandbox", [True, False])
def test_a_target_that_set_up_installed_is_inside_by_whatever_name(scene: Scenes, sandbox: bool) -> None:
    """Set-up that is shared knows another path of the tree than the lane does."""
    setup = Command(run="printf 'print(\"%s\")' $PWD/src/pkg/__init__.py > where.py")
    one = scene(sandbox=sandbox, commands={"setup": setup, "probe": Command(run="echo hello; python3 where.py")})
    opened = one.open()
    assert (opened.failed, opened.detail) == (None, "")


def test_a_target_by_the_path_of_the_users_checkout_is_inside_in_the_sandbox_alone(
    scene: Scenes, project: Path
) -> None:
    probe = Command(run=f"echo {project}/src/pkg/__init__.py")
    assert scene(commands={"probe": probe}).open().failed is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("python3 -c 'import json; print(json.__file__)'", "outside: "),
        ("ln -s /etc/passwd here; echo here", "outside: /etc/passwd"),
        ("echo src/pkg/absent.py", "no file: src/pkg/absent.py"),
        ("true", "it printed no path"),
        ("echo; echo", "it printed no path"),
        ("echo nothing found >&2; exit 3", "the probe: exit 3"),
        ("echo src/pkg/__init__.py; exit 1", "the probe: exit 1"),
        ("sleep 60", "the probe: timed out"),
    ],
)
def test_a_target_that_does_not_resolve_inside_fails_the_lane_with_what_was_printed(
    scene: Scenes, line: str, said: str
) -> None:
    one = scene(commands={"probe": Command(run=line, timeout_s=5)})
    opened = one.open()
    assert opened.failed is Cause.PROBE_FAILED
    assert said in opened.detail
    assert opened.exit is not None
    assert opened.output.head == {"echo nothing found >&2; exit 3": "nothing found\n"}.get(line, opened.output.head)
    assert one.open() == opened


def test_a_failing_set_up_fails_the_lane(scene: Scenes) -> None:
    opened = scene(commands={"setup": Command(run="echo no network; exit 7")}).open()
    assert (opened.failed, str(opened.exit), opened.output.head) == (Cause.SETUP_FAILED, "exit 7", "no network\n")


def test_a_lane_for_which_there_is_no_room_in_time_is_not_opened(scene: Scenes, lane_of: Any) -> None:
    one = scene(lanes=(lane_of("a"), lane_of("b", globs=("lib/**",))))
    one.open(slots=1)
    late = one.open(2, slots=1, left=0.5)
    assert (late.path, late.failed) == (None, None)
    assert not one.folder(2).exists()


def test_an_agent_hands_over_through_the_wrapper_and_needs_no_network(
    scene: Scenes, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Profile("agent", network=False, git=True, grades=False)
    monkeypatch.setattr(preparing.AgentRun, "profile", alone)
    one = scene()
    one.open()
    submit = "echo SPEED = 2 > src/pkg/__init__.py; .orch/round submit"
    first, second, last = inside(one, f"{submit}; git commit -qam done; {submit}; git log --format=%s -1").splitlines()
    ticket = json.loads(first)["ticket"]
    (content,) = (one.folder() / "desk" / "outbox" / ticket / "files").iterdir()
    assert content.read_text() == "SPEED = 2\n"
    assert json.loads(second) == {**json.loads(first), "duplicate": True}
    assert last == "done"


def test_an_agent_reaches_neither_other_lanes_nor_what_the_round_keeps(scene: Scenes, lane_of: Any) -> None:
    one = scene(lanes=(lane_of("a"), lane_of("b", globs=("lib/**",))))
    one.open(1)
    one.open(2)
    run, store = one.home.run("round-c-r"), one.home.store(one.store) / "store.git"
    (run / "ledger.jsonl").write_text("kept\n")
    kept = [
        one.folder(2) / "desk/outbox",
        one.folder(2) / "upper",
        one.folder(2) / "tree/src",
        one.folder(2) / "git",
        run,
        store / "refs",
        one.home.slots,
        leases.folder(),
    ]
    named = [f"${{d}}{path.relative_to('/')}" for path in kept]  # what a command names as it is would be shown to it
    tries = "; ".join(f"touch {path}/planted; ls {path}" for path in named)
    looks = f"echo x >> {run}/ledger.jsonl; cat {run}/ledger.jsonl {store}/packed-refs; ls {run}/attempts"
    report = one.agent(f"d=/; {tries}; {looks}; true")

    assert [path for path in kept if (path / "planted").exists()] == []
    assert (run / "ledger.jsonl").read_text() == "kept\n"
    assert "kept" not in report.stdout.head
    assert report.stdout.head.split() == ["attempts", one.folder(1).name]


def test_an_agent_is_told_the_lanes_own_prompt(scene: Scenes) -> None:
    one = scene()
    opened = one.open()
    report = one.agent("cat", prompt=opened.prompt)
    assert "## This lane: `fast`" in report.stdout.head
    assert ".orch/round submit" in report.stdout.head
    assert "## Checks" not in report.stdout.head + report.stdout.tail


def test_an_agent_is_not_launched_after_the_deadline(scene: Scenes) -> None:
    one = scene()
    one.open()
    late = one.agent("touch began", left=-1)
    assert late.exit.kind is ExitKind.NOT_STARTED
    assert late.blocked is not None
    assert (late.blocked.kind, late.blocked.detail) == (
        OutcomeKind.TIMED_OUT,
        "the deadline passed before it was launched",
    )
    assert not (one.written() / "began").exists()


def test_a_closed_lane_leaves_neither_its_desk_nor_its_tree(scene: Scenes) -> None:
    one = scene()
    one.open()
    inside(one, "for n in $(seq 2000); do : > ../desk/outbox/$n; done")
    one.close()
    left = {entry.name for entry in one.folder().iterdir()}
    assert left.isdisjoint({"desk", "tree", "upper", "git"})
    assert held(one.home.slots) == {}
