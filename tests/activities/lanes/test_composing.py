"""Tickets laid on one another: as one commit each, or not at all where they cannot lie in one checkout."""

from __future__ import annotations

from typing import Any

import pytest

from orch.activities.composing import composed
from orch.workflows.model.round.lane import Composed, ComposeStep
from orch.workflows.model.round.ticket import Submission

from .handing import RUN


def ticket(lane: Any, files: Any) -> Submission:
    lane.put(files)
    (found,) = lane.take()
    assert found.refused is None
    submission: Submission = found
    return submission


def lay(lane: Any, found: Submission, head: str) -> Composed:
    """One ticket on a head; whose it is says the message alone."""
    step: dict[str, Any] = {"run": RUN, "store": lane.store.key, "plan": lane.plan, "source": found.commit}
    return composed(lane.store, ComposeStep(**step, lane="l1", ticket=found.ticket, head=head))


def test_head_has_the_files_of_every_ticket_and_the_same_step_again_is_the_same_commit(lane: Any) -> None:
    one = ticket(lane, {"src/a.py": None, "src/new/x": b"x"})
    two = ticket(lane, {"src/A.py": b"A", "src/a.py": None, "src/new/y": b"y", "src/deep/b.py": b"b = 2\n"})

    head = lay(lane, one, lane.incumbent)
    last = lay(lane, two, head.commit)

    before, after = lane.files(lane.incumbent), lane.files(last.commit)
    assert {path: after.get(path) for path in before | after if before.get(path) != after.get(path)} == {
        "src/a.py": None,
        "src/A.py": ("100644", b"A"),
        "src/deep/b.py": ("100644", b"b = 2\n"),
        "src/new/x": ("100644", b"x"),
        "src/new/y": ("100644", b"y"),
    }
    assert lane.store.git.text("rev-parse", f"{last.commit}^") == head.commit
    assert (last.tree, last.clash) == (lane.store.tree_of(last.commit), "")
    assert lay(lane, two, head.commit) == last


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("src/New.py", "src/new.py"),
        ("src/\u00e9", "src/e\u0301"),
        ("src/New/x", "src/new/y"),
        ("src/N", "src/n/x"),
        ("src/n", "src/n/x"),
        ("src/n/x", "src/n"),
    ],
)
def test_what_cannot_lie_beside_the_files_of_another_ticket_leaves_the_head(lane: Any, first: str, second: str) -> None:
    one, two = ticket(lane, {first: b"1"}), ticket(lane, {second: b"2", "src/a.py": b"a = 2\n"})
    head = lay(lane, one, lane.incumbent)

    found = lay(lane, two, head.commit)

    assert (found.commit, found.tree) == (head.commit, head.tree)
    assert found.clash
    assert lane.store.resolve(f"refs/orch/{RUN}/chain-l1") == head.commit
