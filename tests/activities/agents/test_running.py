"""Launch a real process: what it is given, whose conversation it takes up, and what is known of it afterwards."""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

from orch.activities.agents import preparing, resting, running, secrets
from orch.activities.agents.preparing import AgentRun
from orch.activities.agents.prices import FILE as PRICES
from orch.activities.agents.registry import resolve
from orch.activities.agents.running import run_supervised
from orch.activities.home import Home
from orch.activities.runs import close_run_folder
from orch.activities.sandbox.registry import not_executed
from orch.workflows.model.goal import CloseRun
from orch.workflows.model.outcome import Outcome, OutcomeKind, Session
from orch.workflows.model.usage import Usage

RUN, KEY = "goal-x", "sk-do-not-tell"
DONE = """echo '{"text": "done"}'; echo '{"end": "stop"}'"""
TELL = """echo "{\\"text\\": \\"$TAKEN_UP/$FORK\\", \\"end\\": \\"stop\\"}" """
BEGIN = """echo s-first > "$HOME/memory"; echo '{"session": "s-first", "total": 2500}'; """ + DONE
FIRST = "i1-c1-b11"


class Stage(Protocol):
    home: Home
    launch: Callable[..., AgentRun]


def session(attempt: str = FIRST, id_: str = "s-first", agent: str = "talker", used: int = 2500) -> Session:
    return Session(agent=agent, id=id_, attempt=attempt, used=Usage(tokens_in=used))


async def test_agent_gets_its_prompt_files_and_a_private_home(stage: Stage) -> None:
    run = stage.launch(
        f'cat "$ORCH_PROMPT_FILE" "$HOME/talker.conf" > seen; echo "$EXTRA" >> seen; {DONE}', env={"EXTRA": "1"}
    )

    await run_supervised(run)

    seen = (run.place.folder / "tree" / "seen").read_text()
    assert seen == f"{run.prompt}quiet = true\n1\n"


async def test_later_launch_has_prompt_and_job_of_its_own(stage: Stage) -> None:
    first, second = stage.launch("echo one"), stage.launch(f"echo two; {DONE}", launch=2)

    assert [(await run_supervised(run)).outcome.kind.value for run in (first, second)] == ["stream_broken", "done"]
    folder = first.place.folder
    assert [(folder / name).read_text() for name in ("prompt.md", "prompt-2.md")] == [first.prompt, second.prompt]
    assert [run.job.name for run in (first, second)] == ["agent", "agent-2"]


async def test_login_is_copied_for_its_owner_alone(stage: Stage) -> None:
    login = Path.home() / ".talker" / "login.json"
    login.parent.mkdir(parents=True)
    login.write_text("token")

    ran = await run_supervised(stage.launch(f'stat -c %a "$HOME/.talker/login.json" > mode; {DONE}'))

    assert ran.outcome.kind is OutcomeKind.DONE
    assert (stage.launch("").place.folder / "tree" / "mode").read_text() == "600\n"


async def test_next_iteration_takes_up_the_session_and_pays_only_for_what_comes_on_top(stage: Stage) -> None:
    first = await run_supervised(stage.launch(BEGIN))
    heir = stage.launch(f"echo '{{\"total\": 6000}}'; {TELL}", iteration=2, session=session())
    branch = stage.launch(TELL, iteration=2, candidate=2, session=session(), fork=True)

    continued, forked = await run_supervised(heir), await run_supervised(branch)

    assert (first.report.session, first.report.session_used) == ("s-first", Usage(tokens_in=2500))
    assert [ran.answer for ran in (continued, forked)] == ["s-first/", "s-first/1"]
    assert not continued.report.lost_session
    assert (continued.report.usage.tokens, continued.report.session_used) == (3500, Usage(tokens_in=6000))


async def test_launch_that_tells_no_total_leaves_what_the_session_had_used(stage: Stage) -> None:
    await run_supervised(stage.launch(BEGIN))
    cut = await run_supervised(stage.launch("echo cut", iteration=2, session=session()))

    assert (cut.report.usage.tokens, cut.report.session_used) == (None, Usage(tokens_in=2500))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"session": session(attempt="i1-c9-b9")}, "no such attempt"),
        ({"session": session(id_="s-other")}, "no such session there"),
        ({"session": session(agent="codex")}, "another agent's"),
    ],
)
async def test_lost_session_begins_anew_says_so_and_is_told_everything(
    stage: Stage, more: dict[str, Any], why: str
) -> None:
    await run_supervised(stage.launch(BEGIN))
    run = stage.launch("exit 9", iteration=2, anew=f"echo '{{\"total\": 6000}}'; {TELL}", **more)

    ran, again = await run_supervised(run), await run_supervised(run)

    assert (ran.report.lost_session, ran.answer) == (True, "/"), why
    assert ran.report.usage.tokens == 6000
    assert again == ran


@pytest.mark.parametrize(("fork", "answer"), [(True, "/"), (False, "s-first/")])
async def test_agent_that_cannot_branch_off_begins_anew(stage: Stage, fork: bool, answer: str) -> None:
    await run_supervised(stage.launch(BEGIN, "loner"))
    taken = session(agent="loner")

    ran = await run_supervised(stage.launch(TELL, "loner", iteration=2, session=taken, fork=fork, anew=TELL))

    assert (ran.answer, ran.report.lost_session) == (answer, fork)


async def test_own_session_is_taken_up_where_it_is(stage: Stage) -> None:
    await run_supervised(stage.launch(BEGIN))
    ran = await run_supervised(stage.launch(TELL, launch=2, session=session()))

    assert (ran.answer, ran.report.lost_session) == ("s-first/", False)


async def test_agent_of_a_resting_provider_is_not_launched(stage: Stage) -> None:
    until = Outcome(kind=OutcomeKind.RATE_LIMITED, detail="429", retry_at=time.time() + 60)
    resting.learn(stage.home, RUN, "talker", until)
    run = stage.launch("touch ran")

    ran = await run_supervised(run)

    assert (ran.outcome, ran.report.blocked, str(ran.report.exit)) == (until, until, "not started: 429")
    assert not run.job.exists()


@pytest.mark.parametrize(
    ("event", "blocked"),
    [
        ('{"fail": "not_authorised"}', Outcome(kind=OutcomeKind.NOT_AUTHORISED, detail="as told")),
        ('{"fail": "rate_limited", "at": 9e9}', None),
        ('{"fail": "overloaded"}', None),
    ],
)
async def test_what_holds_for_others_too_is_told_to_them(stage: Stage, event: str, blocked: Outcome | None) -> None:
    script = f"echo '{event}'"
    await run_supervised(stage.launch(script, candidate=1))
    other = await run_supervised(stage.launch(script, candidate=2))
    another_spec = await run_supervised(stage.launch(DONE, "talker:other", candidate=3))

    if blocked is not None:
        assert other.report.blocked == blocked
    assert (other.report.blocked is None) is ("overloaded" in event)
    assert another_spec.report.blocked is None


async def test_words_on_stderr_explain_an_end_without_a_last_word(stage: Stage) -> None:
    cut = await run_supervised(stage.launch("echo overloaded >&2; exit 1", candidate=1))
    whole = await run_supervised(stage.launch(f"echo overloaded >&2; {DONE}", candidate=2))

    assert (cut.outcome.kind.value, cut.outcome.detail) == ("overloaded", "overloaded")
    assert whole.outcome.kind is OutcomeKind.DONE


async def test_program_that_is_not_there_was_not_started(stage: Stage) -> None:
    ran = await run_supervised(stage.launch(DONE, "talker,bin=no-such-program"))

    assert ran.outcome.kind is OutcomeKind.NOT_STARTED
    assert "no-such-program" in ran.outcome.detail


async def test_tokens_become_money_by_the_users_prices(stage: Stage) -> None:
    stage.home.root.mkdir(exist_ok=True)
    (stage.home.root / PRICES).write_text('dated = 2026-11-29\n["m-1"]\ninput = 2.0\noutput = 8.0\n')
    named = f"""echo '{{"session": "s-1", "model": "m-1", "tokens": 1000}}'; {DONE}"""
    silent = f"""echo '{{"tokens": 1000}}'; {DONE}"""

    by_stream = await run_supervised(stage.launch(named, candidate=1))
    by_spec = await run_supervised(stage.launch(silent, "talker:m-1", candidate=2))

    for ran in (by_stream, by_spec):
        assert (ran.report.usage.usd, ran.report.usage.priced) == (0.002, "2026-11-29")


async def test_report_of_any_text_can_be_sent(stage: Stage) -> None:
    halves = r"""printf '{"text": "cut \\ud83d", "session": "\\udc00"}\n{"end": "\\ud83d"}\n'"""
    report = (await run_supervised(stage.launch(halves))).report

    assert json.loads(report.model_dump_json())["message"] == "cut ?"


async def test_secrets_reach_the_agent_and_are_kept_in_their_file_alone(stage: Stage) -> None:
    secrets.keep(stage.home, RUN, ("TALKER_KEY", "OTHER_KEY"), {"TALKER_KEY": KEY, "OTHER_KEY": "other"})
    run = stage.launch(f"env | grep _KEY= | cut -c 1-15 > keys; {DONE}")
    await run_supervised(run)

    assert (run.place.folder / "tree" / "keys").read_text() == "TALKER_KEY=sk-d\n"
    assert _holding(stage.home.root) == [secrets.FILE]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in stage.home.root.rglob(secrets.FILE))
    close_run_folder(stage.home, CloseRun(run=RUN, store="", repo=""))
    assert _holding(stage.home.root) == []


def _holding(root: Path) -> list[str]:
    """The files that hold the secret."""
    return [path.name for path in root.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_what_an_agent_always_leaves_in_the_working_copy_goes_and_nothing_else(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / ".aider.tags.cache.v4").mkdir(parents=True)
    (tree / ".aider.tags.cache.v4" / "cache.db").write_text("x")
    (tree / ".aider.conf.yml").write_text("x")
    (tree / ".aider.tags.cache.v5").symlink_to(tmp_path)

    running._tidy(tree, resolve("aider"))

    assert {path.name for path in tree.iterdir()} == {".aider.conf.yml"}
    assert tmp_path.is_dir()


def test_program_that_the_sandbox_cannot_start_never_started() -> None:
    assert not_executed("bwrap: execvp no-such: No such file or directory\n") == "no-such: No such file or directory"
    assert not_executed("said: bwrap: execvp x: y\nand more\n") == ""


def test_copied_logins_go_with_the_attempt(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    login = tmp_path / "user" / ".codex" / "auth.json"
    login.parent.mkdir(parents=True)
    login.write_text("{}")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    place = stage.launch(DONE).place.folder

    preparing.log_in(resolve("codex"), place / "home")
    copied = place / "home" / ".codex" / "auth.json"
    assert stat.S_IMODE(copied.stat().st_mode) == 0o600
    preparing.log_out(place)

    assert not copied.exists()
    assert login.exists()
