"""Bring the user's tree to a run's result, or back to its start, after the run has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from ..activities.artifacts import append_events
from ..workflows.errors import RefusedError
from ..workflows.model.base import Sha
from ..workflows.model.event import BaselineTaken, Event, IterationDecided, RunEnded, RunPromoted, RunStarted
from ..workflows.model.goal import is_url
from ..workflows.model.promotion import Promote, PromoteTarget, Promotion
from ..workflows.model.reason import RunReason
from ..workflows.model.round.event import RoundDecided, RoundReady, RoundStarted
from .link import Link
from .listing import read_ledger
from .reasons import sentence
from .round_words import round_sentence
from .runs import all_events
from .views import is_round

E = TypeVar("E")


@dataclass(frozen=True)
class Outcome:
    """What a run has to bring: where from, where to, and in which store; `chain`: as commits from one to the other."""

    run: str
    repo: str
    store: str
    start: Sha
    head: Sha
    chain: bool = False


async def outcome(link: Link, run: str) -> Outcome:
    """Read it from the ledger; refused before there is a baseline, or a round's incumbent."""
    events = await all_events(link, run)
    return _of_round(run, events) if is_round(events) else _of_goal(run, events)


def _of_round(run: str, events: Sequence[Event]) -> Outcome:
    started, ready, decided = _last(events, RoundStarted), _last(events, RoundReady), _last(events, RoundDecided)
    if started is None or ready is None:
        raise RefusedError(f"{run} has no incumbent yet", hint=f"orch show {run}")
    head = (decided.incumbent if decided else None) or ready.incumbent
    return Outcome(run=run, repo=started.repo, store=ready.store, start=ready.incumbent, head=head, chain=True)


def _of_goal(run: str, events: Sequence[Event]) -> Outcome:
    started, baseline = _last(events, RunStarted), _last(events, BaselineTaken)
    if started is None or baseline is None:
        raise RefusedError(f"{run} has no baseline yet", hint=f"orch show {run}")
    decided = _last(events, IterationDecided)
    head = decided.commit if decided else baseline.commit
    return Outcome(run=run, repo=started.repo, store=baseline.store, start=baseline.commit, head=head)


async def promote(link: Link, run: str, target: PromoteTarget | None) -> Promotion:
    """Promote the verified head of a run that has ended, and add that to its ledger; a refusal is a value."""
    from ..activities import promotion

    found = await outcome(link, run)
    _require_verified(run, await all_events(link, run))
    _require_tree(link, found)
    to = target or PromoteTarget()
    request = Promote(
        run=run, repo=found.repo, store=found.store, old=found.start, new=found.head, target=to, chain=found.chain
    )
    moved = await asyncio.to_thread(promotion.promote, link.home, request)
    _record(link, run, moved)
    return moved


async def restore(link: Link, run: str) -> Promotion:
    """Bring back the exact tree that the run started from; a refusal is a value."""
    from ..activities import promotion

    found = await outcome(link, run)
    if _last(await all_events(link, run), RunEnded) is None:
        raise _not_ended(run)
    _require_tree(link, found)
    return await asyncio.to_thread(
        promotion.restore, link.home, run=run, repo=found.repo, store=found.store, old=found.start, new=found.head
    )


def _require_verified(run: str, events: Sequence[Event]) -> None:
    """Only a tree that passed the gate, or its rerun, is promoted."""
    end = _last(events, RunEnded)
    if end is None:
        raise _not_ended(run)
    if end.reason.code not in {RunReason.DONE, RunReason.PROMOTION_REFUSED}:
        if is_round(events):
            hint = f"what a lane found is still to be had: orch diff {run} --lane LANE | git apply"
            raise RefusedError(f"{run} has no new incumbent: {round_sentence(end.reason)}", hint=hint)
        raise RefusedError(
            f"{run} has no verified result: {sentence(end.reason)}",
            hint=f"a candidate's change is still to be had: orch diff {run} --candidate N | git apply",
        )


def _require_tree(link: Link, found: Outcome) -> None:
    """A repository that was given as a URL has no tree here that could move."""
    if is_url(found.repo):
        from ..activities.store import Store

        fetch = f"git fetch {Store(link.home, found.store).git_dir} refs/orch/{found.run}/head"
        raise RefusedError(
            f"{found.run} works on {found.repo}: there is no working tree here",
            hint=f"in a clone of it: {fetch}   (or: orch diff {found.run} | git apply)",
        )


def _not_ended(run: str) -> RefusedError:
    return RefusedError(f"{run} has not ended", hint=f"orch watch {run}, or orch cancel {run}")


def _record(link: Link, run: str, moved: Promotion) -> None:
    """The run's folder is the truth of an ended run, so an operator's promotion belongs there."""
    kept = read_ledger(link.home, run)
    if kept:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        append_events(link.home, run, [RunPromoted(seq=len(kept) + 1, at=at, promotion=moved)])


def _last(events: Sequence[Event], kind: type[E]) -> E | None:
    return next((event for event in reversed(events) if isinstance(event, kind)), None)
