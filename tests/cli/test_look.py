"""Looking at a run that has ended needs its folder alone: no engine is started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orch import Client
from orch.activities.artifacts import append_events
from orch.activities.home import Home
from orch.worker.state import open_state
from orch.workflows.errors import RefusedError
from orch.workflows.model.attempt import AttemptKey, Snapshot
from orch.workflows.model.budget import Caps
from orch.workflows.model.candidate import Candidate
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.event import (
    AttemptStarted,
    BaselineMeasured,
    BaselineTaken,
    CandidateMeasured,
    Event,
    IterationDecided,
    IterationStarted,
    RunEnded,
    RunStarted,
)
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.promotion import PromoteTarget
from orch.workflows.model.ranking import Ranking, Standing
from orch.workflows.model.reason import CandidateReason, Reason, RunReason
from orch.workflows.model.usage import Usage
from orch.workflows.model.verdict import Excerpt, RungResult, Verdict

RUN = "goal-mend-1a2b3c"
KEY = AttemptKey(run=RUN, iteration=1, candidate=1, binding=1)
CONTRACT = Contract(goal="mend it", rungs=(Rung(name="unit", run="false"),))
OLD, NEW, TREE = "1" * 40, "2" * 40, "3" * 40
RED = Exit(kind=ExitKind.FAILED, number=1)
AT = "2026-01-02T03:04:05.000+00:00"


def verdict(**facts: Any) -> Verdict:
    rung = RungResult(name="unit", exit=RED, **facts)
    return Verdict(tree=TREE, contract_digest=CONTRACT.digest, host="h", rungs=(rung,), rungs_total=1)


def candidate() -> Candidate:
    path = f"attempts/{KEY.name}/measure/0-stdout"
    return Candidate(
        attempt=KEY,
        agent="cmd:x",
        exit=Exit(kind=ExitKind.OK),
        snapshot=Snapshot(commit=NEW, tree=TREE, changed=1, paths=("a.txt",)),
        verdict=verdict(stdout=Excerpt(head="1 failed", size=8, path=path)),
        usage=Usage(usd=0.5, wall_s=2.0),
    )


def ledger() -> list[Event]:
    ranking = Ranking(order=(Standing(index=1, reason=Reason(code=CandidateReason.WON)),), decided_by="changed")
    facts: list[tuple[type[Any], dict[str, Any]]] = [
        (RunStarted, {
            "run": RUN, "repo": "/repo", "goal": CONTRACT.goal, "agents": ("cmd:x",), "caps": Caps(),
            "promote": PromoteTarget(),
        }),
        (BaselineTaken, {
            "store": "s", "commit": OLD, "tree": TREE, "parent": None, "dirty": False, "contract": CONTRACT,
            "contract_digest": CONTRACT.digest, "sandbox": True,
        }),
        (BaselineMeasured, {"verdict": verdict()}),
        (IterationStarted, {"ordinal": 1, "commit": OLD, "tree": TREE, "attempts": (KEY,)}),
        (AttemptStarted, {"attempt": KEY, "agent": "cmd:x"}),
        (CandidateMeasured, {"candidate": candidate()}),
        (IterationDecided, {"ordinal": 1, "ranking": ranking, "commit": NEW, "tree": TREE}),
        (RunEnded, {"status": "failed", "reason": Reason(code=RunReason.ITERATION_CAP)}),
    ]  # fmt: skip
    return [kind(seq=seq, at=AT, **given) for seq, (kind, given) in enumerate(facts, 1)]


@pytest.fixture
def ended(state: Path) -> Home:
    """A state directory with one ended run."""
    home = Home(state)
    open_state(home)
    append_events(home, RUN, ledger())
    folder = home.attempt(KEY)
    for name, text in (
        ("agent/1-stdout", "said\n"),
        ("agent/1-stderr", "grumbled\n"),
        ("measure/0-stdout", "1 failed\n"),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return home


def test_show_prints_the_documented_fields(orch: Any, ended: Home) -> None:
    done = orch("show", RUN, "--json")

    shown = json.loads(done.stdout)
    fields = {
        "id",
        "kind",
        "status",
        "reason",
        "repo",
        "baseline",
        "contract_digest",
        "iterations",
        "promoted",
        "usage",
    }
    of_candidate = {"index", "status", "rungs_passed", "rungs_total", "changed", "tree", "usage", "reason"}
    assert done.exit_code == 0
    assert fields <= shown.keys()
    assert {"ordinal", "winner", "decided_by", "candidates"} <= shown["iterations"][0].keys()
    assert of_candidate <= shown["iterations"][0]["candidates"][0].keys()
    assert shown["usage"] == {"tokens": None, "tokens_cached": None, "usd": 0.5, "wall_s": 2.0, "priced": ""}
    assert not (ended.engine / "server.json").exists()


def test_watch_prints_events_as_json_lines_and_ends_with_the_runs_status(orch: Any, ended: Home) -> None:
    done = orch("watch", RUN, "--json")

    assert done.exit_code == 1
    assert [json.loads(line)["seq"] for line in done.stdout.splitlines()] == list(range(1, 9))


def test_watch_once_is_a_look(orch: Any, ended: Home) -> None:
    done = orch("watch", RUN, "--once")

    assert done.exit_code == 0
    assert done.stdout.startswith(f"{RUN}  failed\n")
    assert "candidate 1 won: it changed the tree" in done.stdout


def test_list_knows_runs_that_the_engine_forgot(orch: Any, ended: Home) -> None:
    done = orch("list", "--json")

    assert [(row["id"], row["status"], row["ended_at"]) for row in json.loads(done.stdout)] == [(RUN, "failed", AT)]


def test_ledger_prints_a_line_per_event(orch: Any, ended: Home) -> None:
    lines = orch("ledger", RUN).stdout.splitlines()

    assert len(lines) == 8
    assert lines[5].endswith("candidate 1: 0 of 1 rungs pass, 1 path changed, 2.0s")


def test_logs_print_the_agents_streams_and_the_failing_rungs(orch: Any, ended: Home) -> None:
    done = orch("logs", RUN)

    assert done.stdout == "said\ngrumbled\n1 failed\n"
    assert "--- rung unit (exit 1) stdout" in done.stderr


def test_logs_of_a_run_without_attempts_are_those_of_its_baseline(orch: Any, ended: Home) -> None:
    run = "goal-no-attempt"
    append_events(ended, run, [ledger()[0], ledger()[-1].model_copy(update={"seq": 2})])
    setup = ended.run(run) / "attempts" / "i0-c0-b0" / "measure" / "setup"
    setup.mkdir(parents=True)
    (setup / "1-stderr").write_text("no such package\n")

    assert orch("logs", run).stdout == "no such package\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("cancel", RUN), "has ended"),
        (("approve", RUN), "has ended"),
        (("note", RUN, "x"), "has ended"),
        (("extend", RUN, "--max-iterations", "20"), "has ended"),
        (("extend", RUN), "nothing to extend"),
        (("note", RUN, " "), "a note of"),
        (("promote", RUN), "has no verified result"),
        (("promote", RUN, "--to", "none"), "promotes nothing"),
        (("show", "goal-mend-1a2b3d"), "no run goal-mend-1a2b3d"),
        (("logs", RUN, "--candidate", "7"), "no candidate 7"),
        (("diff", RUN, "--iteration", "3"), "no iteration 3"),
    ],
)
def test_what_an_ended_run_cannot_do_is_refused(args: tuple[str, ...], message: str, orch: Any, ended: Home) -> None:
    done = orch(*args)

    assert done.exit_code == 2
    assert message in done.stderr
    assert "hint: " in done.stderr
    assert not (ended.engine / "server.json").exists()


async def test_client_reads_an_ended_run(ended: Home) -> None:
    async with Client.connect(ended.root) as client:
        seen = [event.seq async for event in client.events(RUN, since=3)]
        view = await client.result(RUN)

        assert seen == [4, 5, 6, 7, 8]
        assert view.reason == Reason(code=RunReason.ITERATION_CAP)
        with pytest.raises(RefusedError, match="no run nothing"):
            await client.view("nothing")
