"""The steps of a run on its host, each one activity: prepare, measure, review, promote, close."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError
from temporalio.workflow import ActivityConfig

from . import effects
from .details import agent_label
from .host import host_queue
from .ledger import GoalLedger
from .model.attempt import AttemptKey, Measure, SpendCaps
from .model.goal import CloseRun, GoalRequest, MoveHead, PrepareRun, RunPrepared
from .model.placement import Exchange
from .model.promotion import Promote, Promotion
from .model.review import Review, ReviewHead
from .model.verdict import Verdict
from .stopping import raise_if_cancelled

LEAVE = timedelta(seconds=10)
"""A run's end waits no longer than this for another host to hear of it."""


def exchange(request: GoalRequest, store: str) -> Exchange | None:
    """By which artifact store the run's attempts may go to other hosts; None: they stay.

    Two hosts may hold different repositories at the same path, so the host is a part of the key.
    """
    url = request.placement.exchange
    return Exchange(url=url, key=f"{store}.{request.host}") if url and store else None


class RunSteps:
    """Calls the effects of one run with what its state says; records nothing and decides nothing."""

    def __init__(self, request: GoalRequest, ledger: GoalLedger) -> None:
        self._request = request
        self._ledger = ledger
        self._state = ledger.state

    async def prepare(self) -> RunPrepared:
        """Check the repository and take the baseline."""
        request = self._request
        prepare = PrepareRun(
            run=request.run,
            repo=request.repo,
            contract=request.contract,
            agents=request.agents,
            sandbox=request.sandbox,
            promote=request.promote,
            path=request.path,
            host=request.host,
            exchange=request.placement.exchange,
            ref=request.ref,
        )
        return await workflow.execute_activity(
            effects.prepare_run, prepare, **self._options(effects.STEP, "take the baseline")
        )

    async def measure(self, *, gate: bool) -> Verdict:
        """Measure the head's tree: every rung for a ranking, up to the first red for a gate."""
        raise_if_cancelled()
        state = self._state
        measure = Measure(
            attempt=self._key(),
            store=state.store,
            commit=state.known_head[0],
            tree=state.known_head[1],
            contract=state.known_contract,
            gate=gate,
            sandbox=state.sandbox,
        )
        summary = f"gate of iteration {state.ordinal}" if gate else "measure the baseline"
        return await workflow.execute_activity(effects.measure, measure, **self._options(effects.WAIT, summary))

    async def review(self, gate: Verdict) -> Review:
        """Ask the reviewer about the head's tree."""
        raise_if_cancelled()
        state = self._state
        review = ReviewHead(
            attempt=self._key(),
            agent=self._request.sign_off,
            store=state.store,
            old=state.known_baseline[0],
            new=state.known_head[0],
            contract=state.known_contract,
            verdict=gate,
            deadline=state.deadline,
            limit_s=state.caps.attempt_s,
            sandbox=state.sandbox,
            spend=SpendCaps(tokens=state.caps.tokens, usd=state.caps.usd),
        )
        summary = f"sign-off by {agent_label(self._request.sign_off)}"
        return await workflow.execute_activity(effects.review_head, review, **self._options(effects.WAIT, summary))

    async def move_head(self, base: str) -> None:
        """Point the run's head in the store at the head, `base` being the one before, and keep the newest events."""
        state = self._state
        move = MoveHead(
            run=self._request.run,
            store=state.store,
            commit=state.known_head[0],
            events=self._ledger.unkept(),
            exchange=exchange(self._request, state.store),
            base=base,
        )
        summary = f"head of iteration {state.ordinal}"
        await workflow.execute_activity(effects.move_head, move, **self._options(effects.STEP, summary))
        self._ledger.kept(move.events)

    async def promote(self) -> Promotion:
        """Bring the head to where the run was asked to."""
        raise_if_cancelled()
        request, state = self._request, self._state
        promote = Promote(
            run=request.run,
            repo=request.repo,
            store=state.store,
            old=state.known_baseline[0],
            new=state.known_head[0],
            target=request.promote,
        )
        summary = f"promote to {request.promote}"
        return await workflow.execute_activity(effects.promote, promote, **self._options(effects.STEP, summary))

    async def close(self) -> None:
        """Keep the last events and let go of what the run reserved."""
        request = self._request
        await asyncio.gather(*map(self._leave, sorted(self._state.hosts - {request.host})))
        close = CloseRun(run=request.run, repo=request.repo, store=self._state.store, events=self._ledger.unkept())
        await workflow.execute_activity(effects.close_run, close, **self._options(effects.STEP, "close the run"))

    async def _leave(self, host: str) -> None:
        """Let another host close what it has of the run; one that is away does so when it comes back."""
        there = exchange(self._request, self._state.store)
        close = CloseRun(run=self._request.run, repo="", store=there.key if there else "")
        options = effects.options(effects.STEP, queue=host_queue(host), summary=f"leave {host}", away=LEAVE)
        with suppress(ActivityError):
            await workflow.execute_activity(effects.close_run, close, **options)

    def _key(self) -> AttemptKey:
        return AttemptKey(run=self._request.run, iteration=self._state.ordinal, candidate=0, binding=0)

    def _options(self, config: ActivityConfig, summary: str) -> ActivityConfig:
        return effects.options(config, queue=host_queue(self._request.host), summary=summary)
