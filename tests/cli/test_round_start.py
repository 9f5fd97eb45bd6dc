"""Starting a round: what is shown, what is refused, and that a round is started once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from math import ceil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orch import Client
from orch.activities import artifacts, campaigns
from orch.activities.artifacts import PLAN
from orch.activities.home import Home
from orch.activities.repository import inspect
from orch.activities.sandbox import Flaw, registry
from orch.cli import round_start
from orch.cli.listing import KIND
from orch.cli.playing import Player
from orch.cli.round_options import RoundOptions
from orch.cli.round_plan_lines import plan_lines
from orch.cli.round_start import RoundStart, resolve_round
from orch.worker.keys import add_key
from orch.worker.state import open_state
from orch.workflows.errors import RefusedError
from orch.workflows.model.event import RunEnded
from orch.workflows.model.goal import SandboxMode
from orch.workflows.model.promotion import PromoteMode, PromoteTarget
from orch.workflows.model.reason import Reason, RunReason
from orch.workflows.model.round.plan import Command, RoundPlan

FULL = RoundPlan.model_validate(
    {
        "id": "r03",
        "campaign": "parser",
        "campaign_digest": "0" * 64,
        "incumbent": "0123456789abcdef0123456789abcdef01234567",
        "metric": {"name": "latency", "direction": "lower", "unit": "ms"},
        "gates": {
            "pairs": 12,
            "repetitions": 3,
            "rollback": 0.01,
            "noise": 0.05,
            "validator": [{"path": "bench/check.py", "sha256": "ab" * 32}],
        },
        "protected": ["docs/**", "pyproject.toml", "/bench/run.sh", "/bench/check.py"],
        "devices": [
            {"name": "quiet", "cpus": [2, 3], "load": 0.5, "governor": "performance"},
            {"name": "gpu", "cpus": [4], "cuda": [0]},
        ],
        "commands": {
            "setup": {"run": "pip install -e ."},
            "probe": {"run": "python -c 'import parser; print(parser.__file__)'"},
            "benchmark": {"run": "sh bench/run.sh", "timeout_s": 90},
            "validate_": {"run": "python bench/check.py"},
        },
        "lanes": [
            {
                "id": "tok",
                "entry": {
                    "id": "tokens",
                    "plane": "algorithm",
                    "hypothesis": "Scan bytes\x1b[31m instead of characters",
                    "stage": "tokenize",
                    "headroom": 0.2,
                },
                "globs": ["src/tok*.py", "src/tables/**"],
                "agent": "claude:sonnet,max-turns=40",
                "budget": {"attempts": 2, "wall_s": 1800, "turns": 40, "tokens": 200000, "usd": 3},
                "condition": "the lexer was rewritten",
            },
            {
                "id": "fmt",
                "entry": {"id": "format", "plane": "memory", "hypothesis": "Write into one buffer", "headroom": 0.155},
                "globs": ["src/fmt.py"],
                "agent": "cmd:./optimize.sh",
                "submissions": 3,
            },
        ],
        "deadline_s": 7200,
    }
)


def test_plan_is_shown_on_one_screen(golden: Callable[[str, str], None]) -> None:
    lines = plan_lines(FULL, promote="branch:faster", sandbox=True, warnings=["r03.yaml:8: too \x07 little headroom"])

    assert len(lines) <= 30
    golden("round_plan.txt", "\n".join(lines) + "\n")


def test_protected_globs_that_the_files_name_are_shown_first(optimized: Any, home: Home) -> None:
    optimized.edit(("round: r01", 'round: r01\nprotected: ["only/mine/**"]'))
    start = resolved(optimized, home, sandbox=False)

    lines = plan_lines(start.plan, promote="none", sandbox=True, said=start.checked.said)

    (shown,) = (line for line in lines if line.startswith("protected:"))
    assert start.plan.protected.index("only/mine/**") > 0
    assert shown.partition(":")[2].lstrip().startswith("docs/**, only/mine/**, ")
    assert shown.endswith(f" and {len(start.plan.protected) - 3} more")


def test_three_lanes_and_a_warning_fit_a_small_terminal() -> None:
    lanes = tuple(FULL.lanes[n % 2].model_copy(update={"id": f"lane-{n}"}) for n in range(3))
    commands = FULL.commands.model_copy(update={"build": Command(run="make"), "smoke": Command(run="pytest -q")})
    plan = FULL.model_copy(update={"lanes": lanes, "commands": commands, "devices": FULL.devices[:1]})
    warning = "r03.yaml:8: the headroom of `tokens`, 1%, is less than the noise lets count (try more pairs)"

    lines = plan_lines(plan, promote="branch:faster", sandbox=True, warnings=[warning], screen=(80, 24))

    assert sum(ceil(max(len(line), 1) / 80) for line in lines) <= 23  # and the prompt
    table = next(n for n, line in enumerate(lines) if line.startswith("lane "))
    assert all(len(line) <= 80 for line in lines[table : table + 4])
    assert lines[table].split() == ["lane", "budget", "tickets", "globs"]
    assert "src/tok*.py" in lines[table + 1]
    assert lines[-1] == f"warning: {warning}"


def test_most_lanes_still_fit_on_a_screen() -> None:
    many = FULL.model_copy(update={"lanes": FULL.lanes[1:] * 16})

    assert len(plan_lines(many, promote="none", sandbox=False)) <= 50


def resolved(optimized: Any, home: Home, **given: Any) -> RoundStart:
    return resolve_round(RoundOptions(plan=optimized.round, **given), home)


def test_options_reach_the_request(optimized: Any, home: Home) -> None:
    request = resolved(optimized, home, promote="branch:faster", sandbox=False, priority=1).request

    assert (request.run, request.repo, request.plan.id) == ("round-parser-r01", str(optimized.repo), "r01")
    assert request.promote == PromoteTarget(mode=PromoteMode.BRANCH, branch="faster")
    assert (request.sandbox, request.priority, request.path) == (SandboxMode.OFF, 1, os.environ["PATH"])
    assert resolved(optimized, home, sandbox=False).request.promote == PromoteTarget(mode=PromoteMode.NONE)


def test_with_keys_the_id_holds_no_words(optimized: Any, home: Home) -> None:
    open_state(home)
    add_key(home)

    one, two = (resolved(optimized, home, sandbox=False).request for _ in range(2))
    optimized.edit(("round: r01", "round: r02"))

    assert one.run == two.run
    assert one.run.startswith("round-")
    assert "parser" not in one.run
    assert "project" not in one.label
    assert resolved(optimized, home, sandbox=False).request.run != one.run


def test_round_keeps_its_id_when_the_keys_change(optimized: Any, home: Home) -> None:
    open_state(home)
    add_key(home)
    first = resolved(optimized, home, sandbox=False).request
    home.run(first.run).mkdir(parents=True)
    campaigns.begin(home, first.plan, first.run)

    add_key(home)

    assert resolved(optimized, home, sandbox=False).request.run == first.run


def test_dry_run_shows_the_plan_and_creates_nothing(
    orch: Any, optimized: Any, state: Path, fingerprint: Callable[[Path], dict[str, str]]
) -> None:
    before = fingerprint(optimized.repo)

    plain = orch("start", "round", "r01.yaml", "--dry-run", "--no-sandbox")
    data = orch("start", "round", "r01.yaml", "--dry-run", "--no-sandbox", "--json")

    assert plain.exit_code == data.exit_code == 0
    digest = json.loads(data.stdout)["digest"]
    assert plain.stdout.startswith(f"round r01 of campaign parser  digest {digest[:16]}\n")
    assert "off: everything can read and write whatever you can" in plain.stdout
    assert RoundPlan.model_validate(json.loads(data.stdout)["plan"]).digest == digest
    assert json.loads(data.stdout)["id"] == "round-parser-r01"
    assert not state.exists()
    assert fingerprint(optimized.repo) == before


BAD: dict[str, tuple[tuple[str, ...], tuple[tuple[str, str], ...], str, str]] = {
    "missing plan": (("none.yaml",), (), "none.yaml: no such file", "readable YAML"),
    "a refusal": (("r01.yaml",), (("entry: format", "entry: tokens"),), "r01.yaml:12: lanes `tok` and", "orch check"),
    "missing program": (
        ("r01.yaml",),
        (("agent: cmd:true\n    budget", "agent: cmd:no-such-agent\n    budget"),),
        "there is no program 'no-such-agent'",
        "install it",
    ),
    "bad target": (("r01.yaml", "--promote", "trunk"), (), "'trunk' is no target", "branch:NAME"),
    "priority": (("r01.yaml", "--priority", "9"), (), "--priority: '9'", ""),
    "no repository": (("r01.yaml", "--repo", "/"), (), "not a git repository", "git init"),
    "unknown option": (("r01.yaml", "--promot", "none"), (), "--promot", "--promote"),
}


@pytest.mark.parametrize(("args", "edits", "named", "mend"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused_before_anything_is_created(  # noqa: PLR0917 - a row and the world
    args: tuple[str, ...],
    edits: tuple[tuple[str, str], ...],
    named: str,
    mend: str,
    orch: Any,
    optimized: Any,
    state: Path,
) -> None:
    optimized.edit(*edits)

    done = orch("start", "round", *args, "--no-sandbox", "--detach")

    assert done.exit_code == 2
    assert named in done.stderr
    assert mend in done.stderr
    assert done.stdout == ""
    assert not state.exists()


def test_without_a_sandbox_a_round_is_refused_with_the_reason(
    orch: Any, optimized: Any, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "probe", lambda: Flaw("bwrap is not installed", "install bubblewrap"))

    done = orch("start", "round", "r01.yaml", "--detach")

    assert done.exit_code == 2
    assert "a round runs in the sandbox, and that does not work here: bwrap is not installed" in done.stderr
    assert "hint: install bubblewrap; or give --no-sandbox" in done.stderr
    assert not state.exists()


def test_merge_in_progress_is_refused_for_the_worktree_only(
    orch: Any, optimized: Any, state: Path, kit: ModuleType
) -> None:
    (optimized.repo / ".git" / "MERGE_HEAD").write_text(optimized.incumbent + "\n")

    refused = orch("start", "round", "r01.yaml", "--no-sandbox", "--promote", "worktree", "--dry-run")
    fine = orch("start", "round", "r01.yaml", "--no-sandbox", "--promote", "branch:x", "--dry-run")

    assert (refused.exit_code, fine.exit_code) == (2, 0)
    assert "a merge is in progress" in refused.stderr


def test_what_the_state_directory_knows_of_a_round_counts_without_the_engine(optimized: Any, home: Home) -> None:
    start = resolved(optimized, home, sandbox=False)
    artifacts.write_whole(home.run("round-parser-r01") / PLAN, start.plan.model_dump_json())
    optimized.edit(("deadline: 2h", "deadline: 3h"))
    other = resolved(optimized, home, sandbox=False)

    round_start.refuse_other_plan(home, start.request)
    with pytest.raises(RefusedError, match="was started with another plan") as refused:
        round_start.refuse_other_plan(home, other.request)
    artifacts.mark_closed(home, "round-parser-r01")
    with pytest.raises(RefusedError, match="round-parser-r01 has ended"):
        round_start.refuse_other_plan(home, start.request)

    assert start.plan.digest in refused.value.message
    assert other.plan.digest in refused.value.message


async def test_round_that_was_played_before_is_read_and_said_so(
    optimized: Any, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = resolved(optimized, home, sandbox=False).plan
    reason = Reason[RunReason](code=RunReason.NO_GAIN)
    ended = RunEnded(seq=1, at="2026-03-04T09:00:00+00:00", status="failed", reason=reason)
    artifacts.append_events(home, "round-parser-r01", [ended])
    options = RoundOptions(plan=optimized.round, sandbox=False)

    played = await Player(Client(home), options, inspect(optimized.repo))(plan)

    assert played == [ended]
    assert "round-parser-r01 has ended already: nothing is measured" in capsys.readouterr().err


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds are started where no worker takes them up: they stay as they are."""
    monkeypatch.setattr(round_start, "ORCH_QUEUE", "orch-nobody")


@pytest.mark.engine
@pytest.mark.usefixtures("nobody")
async def test_round_is_started_once(optimized: Any, client: Client) -> None:
    optimized.edit(("campaign: parser", "campaign: once"), campaign=True)
    told: list[str] = []
    client.link.say = told.append
    run = await client.start_round(optimized.round, sandbox=False, promote="worktree")
    temporal = await client.link.temporal()
    handle = temporal.get_workflow_handle(run)
    described = await handle.describe()

    assert (run, described.workflow_type) == ("round-once-r01", "Round")
    assert (await described.memo())["promote"] == "worktree"
    assert described.typed_search_attributes.get(KIND) == "round"

    assert await client.start_round(optimized.round, sandbox=False, promote="worktree") == run
    assert "round-once-r01 runs already, with this very plan" in told

    optimized.round.write_text(optimized.round.read_text().replace("deadline: 2h", "deadline: 3h"))
    with pytest.raises(RefusedError) as changed:
        await client.start_round(optimized.round, sandbox=False)
    assert "round-once-r01 was started with another plan: its digest is " in changed.value.message
    assert (await described.memo())["digest"] in changed.value.message
    assert (
        resolve_round(RoundOptions(plan=optimized.round, sandbox=False), client.home).plan.digest
        in changed.value.message
    )

    optimized.round.write_text(optimized.round.read_text().replace("deadline: 3h", "deadline: 2h"))
    await handle.terminate()
    with pytest.raises(RefusedError, match="round-once-r01 has ended"):
        await client.start_round(optimized.round, sandbox=False)


@pytest.mark.engine
@pytest.mark.usefixtures("nobody")
async def test_secrets_of_a_live_round_survive_a_second_start(
    optimized: Any, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimized.edit(("campaign: parser", "campaign: keys"), campaign=True)
    run = await client.start_round(optimized.round, sandbox=False)
    kept = client.home.run(run) / "secrets.json"
    kept.write_text('{"A_KEY": "first"}')

    await client.start_round(optimized.round, sandbox=False)

    assert json.loads(kept.read_text()) == {"A_KEY": "first"}
    await (await client.link.temporal()).get_workflow_handle(run).terminate()
