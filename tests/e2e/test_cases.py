"""Faults that users of such tools have met, on real runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orch import Client
from orch.activities.home import Home
from orch.worker import engine
from orch.worker.state import open_state
from orch.workflows.model.event import BaselineMeasured, BaselineTaken, CandidateMeasured, Event, GateMeasured
from orch.workflows.model.reason import CandidateReason, PromotionReason
from orch.workflows.model.view import CandidateStatus, RunStatus, RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]
Climb = Callable[[int], str]
Fingerprint = Callable[[Path], dict[str, str]]

PRIVATE = '"$(dirname "$ORCH_USAGE_FILE")"'
SECRETS = {
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "GIT_DIR": "/nowhere",
    "GIT_INDEX_FILE": "/nowhere/index",
    "SOME_API_KEY": "hush",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
}


@pytest.fixture
def inner_client(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client of an engine with two slots that was started from inside an agent's session and a git hook."""
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    home = Home(tmp_path / "state")
    open_state(home)
    with monkeypatch.context() as patch:  # to the end: a worker of older code is replaced while the client works
        for name, value in {**SECRETS, "ORCH_SLOTS": "2"}.items():
            patch.setenv(name, value)
        asyncio.run(engine.ensure_up(home))
        yield Client(home)
        asyncio.run(engine.down(home))


async def test_worker_inside_an_agents_session_hides_it_and_keeps_to_its_slots(
    inner_client: Client, project: Path
) -> None:
    """S18, S22, T03: agents and checks see neither session, hook nor secret; five candidates run two at a time."""
    clean = " && ".join(f'test -z "${{{name}+set}}"' for name in SECRETS)
    mark = f"date +%s.%N >> {PRIVATE}/times"
    agent = f"cmd:{mark}; {clean} && git status > /dev/null && echo $ORCH_CANDIDATE > done; sleep 0.3; {mark}"
    options: dict[str, Any] = {
        "goal": "be clean",
        "repo": project,
        "agent": (agent,),
        "candidates": 5,
        "promote": "none",
    }

    view = await inner_client.result(await inner_client.start_goal(verify=(f"test -e done && {clean}",), **options))

    assert [c.status for c in view.iterations[0].candidates] == [CandidateStatus.PASSED] * 5
    times = [p.read_text().split() for p in inner_client.home.run(view.id).glob("attempts/*/private/times")]
    assert len(times) == 5
    assert max(sum(a <= start < b for a, b in times) for start, _ in times) == 2


async def test_prompt_arrives_byte_for_byte_and_is_never_run(
    client: Client, run_goal: RunGoal, climb: Climb, project: Path
) -> None:
    """S01, S04: by file and on stdin alike, whatever characters the goal holds."""
    goal = "-p '\"$(touch pwn)`touch pwn`; touch pwn\n\\n %s \u00e9\u65e5\U0001f600 \x01\x1b[31m\r\n--help $HOME !!"
    copy = f'cat > {PRIVATE}/stdin; cp "$ORCH_PROMPT_FILE" {PRIVATE}/file'

    view = await run_goal(f"cmd:{copy}; test ! -e pwn && echo 3 > level", goal=goal, promote="none")

    assert view.status is RunStatus.SUCCEEDED
    assert view.goal == goal
    private = client.home.run(view.id) / "attempts/i1-c1-b1/private"
    assert (private / "stdin").read_bytes() == (private / "file").read_bytes()
    assert goal.encode() in (private / "file").read_bytes()
    assert not (project / "pwn").exists()


async def test_odd_output_breaks_nothing_and_is_kept_whole(client: Client, run_goal: RunGoal) -> None:
    """S05, S13, S24: a 3 MB line, broken UTF-8 and escape sequences, from agent and check."""
    noise = (
        "head -c 3000000 /dev/zero | tr '\\0' x; head -c 100000 /dev/urandom; "
        "printf '\\n\\377\\360\\237 \\033[32mscore: 0.93\\033[0m \\033]0;title\\007\\n'"
    )
    agent = f"cmd:{noise}; {noise} >&2; echo $ORCH_ITERATION > level"

    view = await run_goal(agent, verify=(f"{noise}; grep -q 2 level",), max_iterations=2)

    assert view.status is RunStatus.SUCCEEDED
    attempts = client.home.run(view.id) / "attempts"
    assert (attempts / "i1-c1-b1/agent/1-stdout").stat().st_size > 3_100_000
    prompt = (attempts / "i2-c1-b2/prompt.md").read_bytes()
    assert b"score: 0.93" in prompt
    assert b"\x1b" not in prompt
    assert len(prompt) < 20_000


async def test_only_tree_and_exit_status_speak_of_a_candidate(run_goal: RunGoal) -> None:
    """S14, S23: ERROR on stderr is no failure, and a good tree wins though its agent exited 1; both facts are shown."""
    view = await run_goal("cmd:echo ERROR cache miss >&2; echo 2 > level", "cmd:echo 3 > level; exit 1", promote="none")

    harmless, good = view.iterations[0].candidates
    assert (harmless.agent_exit, harmless.failure, harmless.rungs_passed) == ("ok", "", 2)
    assert (good.agent_exit, good.status) == ("exit 1", CandidateStatus.PASSED)
    assert view.iterations[0].winner == 2


async def test_workspace_removed_by_its_agent_fails_that_candidate_alone(run_goal: RunGoal, climb: Climb) -> None:
    """G09, I4: the failure has a kind and says what is gone; the others are measured."""
    view = await run_goal('cmd:rm -rf "$PWD"', "cmd:rm -rf $PWD; ln -s / $PWD", climb(3), promote="none")

    assert (view.status, view.iterations[0].winner) == (RunStatus.SUCCEEDED, 3)
    for candidate in view.iterations[0].candidates[:2]:
        assert candidate.rungs_passed != 3
        assert candidate.reason is not None


async def test_locks_signing_and_operations_of_the_user_neither_stop_a_run_nor_change(
    client: Client, run_goal: RunGoal, climb: Climb, project: Path, fingerprint: Fingerprint, kit: ModuleType
) -> None:
    """G01, G28, G30, G48, X06: a busy repository is read; promotion says what is in the way and touches nothing."""
    for name, value in (("commit.gpgsign", "true"), ("gpg.program", "/bin/false"), ("user.useConfigOnly", "true")):
        kit.git(project, "config", name, value)
    kit.write(
        project / ".git",
        {"config.lock": "", "index.lock": "", "hooks/post-checkout": f"#!/bin/sh\ntouch {project}/ran\n"},
    )
    (project / ".git/hooks/post-checkout").chmod(0o755)
    (project / ".git/MERGE_HEAD").write_text(kit.git(project, "rev-parse", "HEAD") + "\n")
    before = fingerprint(project)

    view = await run_goal(climb(3), promote="branch:result")
    refused = await client.promote(view.id)

    assert view.status is RunStatus.SUCCEEDED
    assert kit.git(project, "show", "result:level") == "3"
    assert refused.refused is not None
    assert refused.refused.code is PromotionReason.IN_PROGRESS
    after = fingerprint(project)
    assert {name for name in before | after if before.get(name) != after.get(name)} == {"for-each-ref"}


async def test_what_could_not_be_measured_ranks_below_everything_measured(run_goal: RunGoal) -> None:
    """M02: a check that runs out of time is no score, however far its candidate came before."""
    hang = "cmd:echo 2 > level; touch hang"

    view = await run_goal(
        hang,
        "cmd:echo 1 > level",
        "cmd:true",
        verify=("test $(cat level) -ge 1", "test $(cat level) -ge 2", "test ! -e hang || sleep 60; grep -q 3 level"),
        rung_timeout=2.0,
        max_iterations=1,
    )

    late, low, idle = view.iterations[0].candidates
    assert (late.status, late.rungs_passed) == (CandidateStatus.UNEVALUABLE, 2)
    assert late.reason is not None
    assert late.reason.code is CandidateReason.UNEVALUABLE
    assert view.iterations[0].winner == low.index
    assert idle.status is CandidateStatus.RED


SAME_TIME = "touch -r tests/check.sh x; mv x tests/check.sh"
TAMPERINGS = {
    "edits the check": "echo exit 0 > tests/check.sh",
    "replaces its fixtures": "rm -r tests; mkdir tests; echo exit 0 > tests/check.sh; echo x > tests/conftest.py",
    "puts a link in its place": "mkdir fake; echo exit 0 > fake/check.sh; rm -r tests; ln -s fake tests",
    "shadows its programs": "mkdir bin; for p in sh grep; do echo 'exit 0' > bin/$p; chmod +x bin/$p; done",
    "hides it from git": "git update-index --assume-unchanged tests/check.sh; echo exit 0 > tests/check.sh",
    "ignores it": "echo 'tests/' > .gitignore; git rm -rq --cached tests; echo exit 0 > tests/check.sh",
    "edits it while it is measured": "echo 'echo exit 0 > tests/check.sh' > lib.sh",
    "replaces it while it is measured": "echo 'rm -r tests; mkdir tests; echo exit 0 > tests/check.sh' > lib.sh",
    "keeps its size and time": f"echo \"echo 'exit 0 #2345678' > x; {SAME_TIME}\" > lib.sh",
}


async def test_no_tampering_with_the_checks_wins(
    client: Client, kit: ModuleType, tmp_path: Path, fingerprint: Fingerprint
) -> None:
    """M11: the frozen checks decide; what the code under test does to them while it is measured is no pass."""
    files = {"lib.sh": "true\n", "level": "0\n", "tests/check.sh": "grep -q 3 level\n", "tests/data": "x\n"}
    repo = kit.make_repo(tmp_path / "project", files)
    before = fingerprint(repo)

    view = await client.result(
        await client.start_goal(
            goal="raise",
            repo=repo,
            verify=("sh lib.sh", "sh tests/check.sh"),
            protect=("tests/**",),
            max_iterations=1,
            sandbox=False,  # which would not let it happen
            agent=tuple(f"cmd:{line}" for line in TAMPERINGS.values()),
        )
    )

    found = dict(zip(TAMPERINGS, view.iterations[0].candidates, strict=True))
    assert {name: c.status.value for name, c in found.items()} == {
        name: "unevaluable" if "lib.sh" in line else "red" for name, line in TAMPERINGS.items()
    }
    assert "tests/check.sh" in found["edits the check"].restored
    assert view.status is RunStatus.FAILED
    assert fingerprint(repo) == before


async def test_every_verdict_says_what_was_measured_by_what_and_where(client: Client, run_goal: RunGoal) -> None:
    """M13, G15: tree, contract and host stand beside each result, and the measured copy is that tree."""
    same = 'git diff --quiet HEAD && test -z "$(git status --porcelain)"'

    view = await run_goal(
        "cmd:echo 1 > level",
        "cmd:echo 3 > level",
        verify=("grep -q 3 level", f"{same} && git rev-parse 'HEAD^{{tree}}'; false"),
        max_iterations=1,
    )

    events = await _events(client, view.id)
    (baseline,) = [e for e in events if isinstance(e, BaselineTaken)]
    (first,) = [e.verdict for e in events if isinstance(e, BaselineMeasured)]
    candidates = [e.candidate for e in events if isinstance(e, CandidateMeasured)]
    verdicts = [(baseline.tree, first), *((c.tree, c.verdict) for c in candidates)]
    for tree, verdict in verdicts:
        assert verdict is not None
        assert (verdict.tree, verdict.contract_digest) == (tree, baseline.contract_digest)
        assert verdict.host
        assert verdict.rungs[1].stdout.head.strip() == tree
    assert not [e for e in events if isinstance(e, GateMeasured)]


async def _events(client: Client, run: str) -> list[Event]:
    return [event async for event in client.events(run)]
