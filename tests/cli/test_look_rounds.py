"""Looking at rounds that have ended: every reading command, with their folders alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from orch import Client
from orch.activities.artifacts import append_events, read_events
from orch.activities.campaigns import record_round
from orch.activities.home import Home
from orch.activities.store import Store, ensure_bare
from orch.cli.views import view_of
from orch.worker.state import open_state
from orch.workflows.errors import RefusedError
from orch.workflows.model.event import Event
from orch.workflows.model.round.campaign import RecordRound, Revision
from orch.workflows.model.round.event import RoundDecided, RoundReady, RoundStarted, TicketQueued
from orch.workflows.model.round.plan import EntryStatus
from orch.workflows.model.round.view import RoundView
from orch.workflows.rules.round_document import round_document
from orch.workflows.rules.round_projection import project_round

from ..rounds.stories import ROUND, composed, fruitless


@pytest.fixture
def ended(state: Path) -> Home:
    """A state directory with one round that ended."""
    home = Home(state)
    open_state(home)
    append_events(home, ROUND, composed())
    return home


def job(folder: Path, name: str, text: str) -> None:
    """A job's folder as its supervisor leaves it."""
    path = folder / name
    path.mkdir(parents=True)
    for kept in ("job.json", "supervisor.json", "exit.json"):
        (path / kept).write_text("{}")
    (path / "1-stdout").write_text(text)


def test_list_shows_rounds_beside_goals(orch: Any, ended: Home) -> None:
    (row,) = json.loads(orch("list", "--json").stdout)

    assert (row["id"], row["kind"], row["status"]) == (ROUND, "round", "succeeded")
    assert (row["goal"], row["promote"]) == ("round r1 of campaign parser", "branch:faster")


def test_show_prints_the_view_of_a_round(orch: Any, ended: Home) -> None:
    done = orch("show", ROUND, "--json")

    assert done.exit_code == 0
    assert RoundView.model_validate_json(done.stdout) == project_round(composed())
    assert orch("show", ROUND).stdout.startswith(f"{ROUND}  succeeded\nround: r1 of campaign parser")


def test_watch_of_an_ended_round_ends_with_its_status(orch: Any, ended: Home) -> None:
    append_events(ended, "round-other-r1", fruitless())

    lines = orch("watch", ROUND, "--json")
    failed = orch("watch", "round-other-r1")

    assert lines.exit_code == 0
    assert [json.loads(line)["seq"] for line in lines.stdout.splitlines()] == [event.seq for event in composed()]
    assert failed.exit_code == 1
    assert "no gain was confirmed" in failed.stderr.splitlines()[-1]
    assert orch("watch", ROUND, "--once").stdout == orch("show", ROUND).stdout


def test_ledger_prints_a_line_per_event_of_a_round(orch: Any, ended: Home) -> None:
    lines = orch("ledger", ROUND).stdout.splitlines()

    assert len(lines) == len(composed())
    assert lines[0].endswith("round r1 of campaign parser started: 3 lanes")
    assert lines[-1].endswith("succeeded: a new incumbent, measured anew and better than the old one")


async def test_the_client_gives_each_kind_its_view(ended: Home) -> None:
    async with Client.connect(ended.root) as client:
        view = await client.result(ROUND, RoundView)

        assert view.round == "r1"
        assert await client.look(ROUND) == view
        with pytest.raises(RefusedError, match=f"{ROUND} is a round"):
            await client.view(ROUND)


def test_logs_print_what_a_lanes_agent_said(orch: Any, ended: Home) -> None:
    attempts = ended.run(ROUND) / "attempts"
    job(attempts / "i1-c1-b1", "setup", "ready\n")
    job(attempts / "i1-c1-b1", "agent", "faster now\n")
    job(attempts / "i1-c1-b1" / "tree", "not-ours", "a file of the agent's\n")
    job(attempts / "i1-c2-b2", "agent", "no luck\n")

    first, other = orch("logs", ROUND), orch("logs", ROUND, "--lane", "cache")

    assert first.stdout == "ready\nfaster now\n"
    assert first.stderr.splitlines()[0].startswith("lane tokens: ")
    assert other.stdout == "no luck\n"


def test_logs_print_what_a_measurement_printed(orch: Any, ended: Home) -> None:
    ticket = project_round(composed()).lanes[0].tickets[1]
    folder = ended.run(ROUND) / "attempts" / f"i2-c{ticket.ordinal}-b{ticket.ordinal}"
    job(folder, "build", "compiled\n")
    job(folder, "trial-1", "93 ms\n")
    job(folder / "candidate", "trial", "a file of the candidate's\n")

    by_ticket = orch("logs", ROUND, "--ticket", ticket.ticket)
    by_end = orch("logs", ROUND, "--ticket", ticket.ticket.rpartition("-")[2])
    by_number = orch("logs", ROUND, "--measurement", str(ticket.ordinal))

    assert by_ticket.stdout == by_end.stdout == by_number.stdout == "compiled\n93 ms\n"
    assert by_ticket.stderr.startswith(f"ticket {ticket.ticket}: ")


@pytest.fixture
def commits(ended: Home, make_repo: Callable[..., Path], kit: Any, tmp_path: Path) -> None:
    """Give the round real commits in a real store: the incumbent, the tickets of `tokens`, the new incumbent."""
    repo = make_repo(tmp_path / "repo", {"fast.py": "slow\n"})
    shas = [kit.git(repo, "rev-parse", "HEAD")]
    for text in ("first try\n", "second try\n", "composed\n"):
        kit.write(repo, {"fast.py": text})
        shas.append(kit.commit_all(repo))
    store = Store(ended, "parser-1a2b")
    ensure_bare(store, "sha1")
    kit.git(repo, "push", "-q", str(store.git_dir), "HEAD:refs/orch/x/head")
    tickets = iter(shas[1:3])
    events = [_with_commit(event, shas[0], tickets, shas[3]) for event in composed()]
    events[0] = events[0].model_copy(update={"repo": str(repo)})
    (ended.run(ROUND) / "ledger.jsonl").unlink()
    append_events(ended, ROUND, events)


def _with_commit(event: Event, old: str, tickets: Iterator[str], new: str) -> Event:
    match event:
        case RoundReady():
            return event.model_copy(update={"incumbent": old})
        case TicketQueued() if event.submission.lane == "tokens":
            submission = event.submission.model_copy(update={"commit": next(tickets)})
            return event.model_copy(update={"submission": submission})
        case RoundDecided():
            return event.model_copy(update={"incumbent": new})
        case _:
            return event


@pytest.mark.parametrize(
    ("args", "text"),
    [((), "composed"), (("--lane", "tokens"), "second try"), (("--ticket", "r1-tokens-cd858e1e"), "first try")],
)
@pytest.mark.usefixtures("commits")
def test_diff_is_what_became_of_the_incumbent(
    args: tuple[str, ...], text: str, orch: Any, kit: Any, make_repo: Any, tmp_path: Path
) -> None:
    done = orch("diff", ROUND, *args)

    clone = make_repo(tmp_path / "clone", {"fast.py": "slow\n"})
    kit.git(clone, "apply", stdin=done.stdout.encode())
    assert (clone / "fast.py").read_text() == f"{text}\n"


@pytest.mark.usefixtures("commits")
def test_promote_brings_the_chain_of_an_ended_round_to_a_branch(
    orch: Any, ended: Home, kit: Any, tmp_path: Path
) -> None:
    done = orch("promote", ROUND, "--to", "branch:later")

    repo = tmp_path / "repo"
    assert done.exit_code == 0, done.stderr
    assert kit.git(repo, "rev-parse", "later") == kit.git(repo, "rev-parse", "main")
    view = view_of(read_events(ended.run(ROUND) / "ledger.jsonl"))
    assert view.promoted is not None
    assert view.promoted.branch == "later"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("logs", ROUND, "--lane", "token"), "no lane token"),
        (("logs", ROUND, "--ticket", "r1-tokens-ffffffff"), "no ticket"),
        (("logs", ROUND, "--measurement", "0"), "no measurement 0"),
        (("logs", ROUND, "--ticket", "r1-cache-655d1dec"), "was not measured"),
        (("logs", ROUND, "--candidate", "1"), "is a round"),
        (("logs", ROUND, "--review"), "is a round"),
        (("logs", ROUND, "--lane", "cache", "--ticket", "x"), "name one thing"),
        (("logs", ROUND, "--lane", "cache", "--candidate", "1"), "name one thing"),
        (("diff", ROUND, "--candidate", "1"), "is a round"),
        (("diff", ROUND, "--ticket", "r1-cache-655d1dec"), "was not taken in"),
        (("diff", "round-other-r1"), "the incumbent stays"),
        (("diff", ROUND, "--lane", "cache", "--ticket", "x"), "name one thing"),
        (("shell", ROUND), "is a round"),
        (("shell", ROUND, "--candidate", "1"), "is a round"),
        (("shell", ROUND, "--lane", "token"), "no lane token"),
        (("shell", ROUND, "--ticket", "r1-tokens-ffffffff"), "no ticket"),
        (("shell", ROUND, "--lane", "cache", "--ticket", "x"), "name one thing"),
        (("shell", ROUND, "--lane", "cache"), "the trees of round-parser-r1 are not here"),
        (("promote", "round-other-r1"), "has no new incumbent"),
        (("cancel", ROUND), "has ended"),
    ],
)
def test_what_a_round_does_not_have_is_refused_with_what_it_has(
    args: tuple[str, ...], message: str, orch: Any, ended: Home
) -> None:
    append_events(ended, "round-other-r1", fruitless())

    done = orch(*args)

    assert done.exit_code == 2, done.stderr
    assert message in done.stderr
    assert "hint: " in done.stderr


def test_options_of_rounds_are_refused_for_goals(orch: Any, ended: Home) -> None:
    from .test_look import RUN, ledger

    append_events(ended, RUN, ledger())

    assert "is no round" in orch("logs", RUN, "--lane", "a").stderr
    assert "is no round" in orch("diff", RUN, "--ticket", "a").stderr
    assert "is no round" in orch("shell", RUN, "--lane", "a").stderr


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)


def test_report_is_one_file_of_its_own(orch: Any, ended: Home, tmp_path: Path) -> None:
    path = tmp_path / "round.html"

    done = orch("report", ROUND, "-o", str(path))

    text = path.read_text(encoding="utf-8")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"written: {path}\n"
    assert text.startswith("<!doctype html>\n")
    assert not {"script", "link", "img", "iframe", "object"} & _Tags(text).seen
    assert orch("report", ROUND, "-o", "-").stdout == text + "\n"


def test_report_of_a_goal_run_has_its_candidates(orch: Any, ended: Home, tmp_path: Path) -> None:
    from .test_look import RUN, ledger

    append_events(ended, RUN, ledger())

    text = orch("report", RUN, "-o", "-").stdout

    assert "<h1>mend it</h1>" in text
    assert "Iteration 1" in text


def test_report_that_cannot_be_written_is_refused(orch: Any, ended: Home, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    done = orch("report", ROUND, "-o", str(tmp_path / "file" / "round.html"))

    assert done.exit_code == 2
    assert "cannot be written" in done.stderr


def test_report_draws_what_the_campaigns_record_says(orch: Any, ended: Home) -> None:
    for events, name in ((fruitless(), "r0"), (composed(), "r1")):
        begun = events[0]
        assert isinstance(begun, RoundStarted)
        plan = begun.plan.model_copy(update={"id": name})
        run = f"round-parser-{name}"
        document = round_document(events, project_round(events)) | {"run": run, "round": name}
        row = Revision(
            campaign="parser",
            round=name,
            run=run,
            entry="e",
            lane="tokens",
            status=EntryStatus.REJECTED,
            why=f"of {name}",
        )
        record = RecordRound(run=run, store="s", plan=plan, revisions=(row,))
        record_round(ended, record, document)

    text = orch("report", ROUND, "-o", "-").stdout

    assert "Rounds of the campaign" in text
    assert ">r0</text>" in text
    assert "<td>of r1</td>" in text
    assert "of r0" not in text
