"""The ledger on disk: appended once whatever is repeated, and readable whatever the text holds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from orch.activities import artifacts
from orch.activities.artifacts import write_whole
from orch.activities.home import Home
from orch.workflows.model.event import NoteAdded
from orch.workflows.model.review import Note


def _note(seq: int, text: str = "x") -> NoteAdded:
    return NoteAdded(seq=seq, at="2026-01-01T00:00:00+00:00", note=Note(text=text))


def test_appending_the_same_events_again_changes_nothing(home: Home) -> None:
    artifacts.append_events(home, "goal-x", [_note(1), _note(2)])
    artifacts.append_events(home, "goal-x", [_note(2), _note(3)])
    artifacts.append_events(home, "goal-x", [_note(1), _note(2), _note(3)])

    assert [event.seq for event in artifacts.read_events(home.run("goal-x") / artifacts.LEDGER)] == [1, 2, 3]


def test_line_separators_of_unicode_do_not_cut_a_line(home: Home) -> None:
    odd = _note(1, "a\u2028b\u2029c\x85d\x0be\n\r\nf")

    artifacts.append_events(home, "goal-x", [odd, _note(2)])

    assert artifacts.read_events(home.run("goal-x") / artifacts.LEDGER) == (odd, _note(2))


def test_missing_ledger_has_no_events(home: Home) -> None:
    assert artifacts.read_events(home.run("goal-x") / artifacts.LEDGER) == ()


def test_run_is_closed_only_once_it_was_marked(home: Home) -> None:
    assert not artifacts.is_closed(home, "goal-x")

    artifacts.mark_closed(home, "goal-x")

    assert artifacts.is_closed(home, "goal-x")


def test_file_that_many_threads_write_at_once_is_whole_and_none_fails(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda number: write_whole(path, f"{number % 10}" * 5000), range(200)))
    assert len(set(path.read_text())) == 1
    assert list(path.parent.iterdir()) == [path]
