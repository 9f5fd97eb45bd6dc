"""Composition's one effect: a lane's files laid on a head, as one commit of the chain."""

from __future__ import annotations

from collections.abc import Sequence

from ..workflows.model.round.lane import Composed, ComposeStep
from .changes import Change, parse_raw
from .effect import effect, in_thread
from .home import Home
from .lanes.incumbent import Laid, StoredTree, Tree
from .lanes.manifest import Entry, Manifest
from .lanes.scope import crossings
from .store import Store
from .trees import Trees

SUBJECT_CHARS = 70
CLASH_CHARS = 500


class Composing:
    """Lays tickets on one another."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @effect
    async def compose_step(self, request: ComposeStep) -> Composed:
        """Lay a ticket's files on a head as one commit."""
        return await in_thread(composed, Store(self._home, request.store), request)


def composed(store: Store, request: ComposeStep) -> Composed:
    """The head with what the ticket changed against the incumbent, pinned as `refs/orch/<run>/chain-<lane>`.

    Lanes own disjoint paths, so nothing is merged. What two lanes added may still be one file on some disks, or file
    and folder at once: the head stays then. The same request again gives the same commit: its date is the ticket's.
    """
    changes = parse_raw(
        store.git.lines(
            "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", request.plan.incumbent, request.source
        )
    )
    with Trees(store.git) as trees:
        before = trees.tree_of(request.head)
        if clash := _clash(StoredTree(trees, request.head), changes):
            return Composed(commit=request.head, tree=before, clash=clash)
        tree = trees.spliced(before, changes)
    date = store.git.text("show", "-s", "--format=@%ct +0000", request.source)
    dated = store.git.with_env(GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)
    utf8 = ("-c", "i18n.commitEncoding=UTF-8")
    commit = dated.text(*utf8, "commit-tree", tree, "-p", request.head, stdin=message(request).encode())
    store.pin(f"refs/orch/{request.run}/chain-{request.lane}", commit)
    return Composed(commit=commit, tree=tree)


def _clash(head: Tree, changes: Sequence[Change]) -> str:
    entries = tuple(Entry(change.name, change.mode, "") for change in changes)
    flaw = next(crossings(Laid(head, Manifest("", "", entries, ""), {})), None)
    return flaw.detail[:CLASH_CHARS] if flaw else ""


def message(request: ComposeStep) -> str:
    """What the commit says: the hypothesis, and where it comes from."""
    lane = request.plan.lane(request.lane)
    if lane is None:
        raise ValueError(f"the plan has no lane {request.lane}")
    words = " ".join(lane.entry.hypothesis.split())
    subject = words if len(words) <= SUBJECT_CHARS else words[: SUBJECT_CHARS - 1].rstrip() + "…"
    facts = {
        "Ticket": request.ticket,
        "Lane": f"{lane.id} ({lane.agent.split(',')[0].split(':')[0]})",
        "Entry": lane.entry.id,
        "Plane": lane.entry.plane,
        "Round": f"{request.plan.campaign}/{request.plan.id}",
        "Evidence": f"run {request.run}, round-ledger.json",
    }
    return f"{subject}\n\n" + "".join(f"{name}: {value}\n" for name, value in facts.items())
