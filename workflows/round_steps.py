"""The steps of a round on its host, each one activity: prepare, build, measure, compose, promote, record, close."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

from temporalio import workflow
from temporalio.workflow import ActivityConfig

from . import effects
from .host import host_queue
from .ledger import Ledger
from .model.attempt import AttemptKey, CloseAttempt
from .model.base import Sha
from .model.goal import CloseRun, KeepEvents
from .model.promotion import Promote, Promotion
from .model.round.campaign import RecordRound, Revision, RoundRecord
from .model.round.composition import Pick
from .model.round.lane import BuildTrial, Built, Composed, ComposeStep, MeasurePairs, TrialStep, ValidateOutputs
from .model.round.request import PrepareRound, RoundPrepared, RoundRequest
from .model.round.trial import Measurement, Validated
from .model.round.view import RoundView
from .round_state import RoundState
from .stopping import raise_if_cancelled

LANES, MEASUREMENTS = 1, 2
"""The iteration in the keys of lanes and of measurements."""

RoundLedger = Ledger[RoundState, RoundView]
"""The ledger of a round."""


@dataclass(frozen=True)
class Subject:
    """What is measured.

    Attributes:
        key: names the measurement.
        base: the commit of side A.
        candidate: the commit of side B.
        what: both, in words.
    """

    key: AttemptKey
    base: Sha
    candidate: Sha
    what: str


class RoundSteps:
    """Calls the effects of one round with what its state says; records nothing and decides nothing."""

    def __init__(self, request: RoundRequest, ledger: RoundLedger) -> None:
        self._request = request
        self._ledger = ledger
        self._state = ledger.state
        self._ordinals = count(1)

    async def prepare(self) -> RoundPrepared:
        """Check the host, the repository and the plan."""
        request = self._request
        prepare = PrepareRound(
            run=request.run,
            repo=request.repo,
            plan=request.plan,
            sandbox=request.sandbox,
            promote=request.promote,
            path=request.path,
            host=request.host,
        )
        return await workflow.execute_activity(
            effects.prepare_round, prepare, **self.options(effects.STEP, "check plan and host")
        )

    def next_key(self) -> AttemptKey:
        """The key of a new measurement; its binding is the measurement's ordinal in the round."""
        ordinal = next(self._ordinals)
        return AttemptKey(run=self._request.run, iteration=MEASUREMENTS, candidate=ordinal, binding=ordinal)

    async def build(self, subject: Subject) -> Built:
        """Make fresh checkouts of both commits ready to be measured."""
        raise_if_cancelled()
        trial = BuildTrial(**self._trial(subject))
        options = self.options(effects.WAIT, f"build {subject.what}")
        return await workflow.execute_activity(effects.build_trial, trial, **options)

    async def measure(self, subject: Subject, device: str, *, deadline: float | None, patience_s: float) -> Measurement:
        """Run the pairs of what was built; a device that is busy for longer than `patience_s` is told as that."""
        raise_if_cancelled()
        trial = self._trial(subject)
        pairs = MeasurePairs(**trial, device=device, deadline=deadline, patience_s=patience_s)
        options = self.options(effects.WAIT, f"measure {subject.what} on {device}")
        return await workflow.execute_activity(effects.measure_pairs, pairs, **options)

    async def validate(self, subject: Subject) -> Validated:
        """Have the outputs of what was measured validated, and let go of its copies."""
        raise_if_cancelled()
        outputs = ValidateOutputs(**self._trial(subject))
        options = self.options(effects.WAIT, f"validate {subject.what}")
        return await workflow.execute_activity(effects.validate_outputs, outputs, **options)

    def _trial(self, subject: Subject) -> dict[str, Any]:
        """What all steps of a trial have in common."""
        step = TrialStep(
            attempt=subject.key,
            store=self._state.store,
            plan=self._request.plan.only(),
            base=subject.base,
            candidate=subject.candidate,
            sandbox=self._state.sandbox,
        )
        return dict(step)

    async def drop(self, key: AttemptKey) -> None:
        """Let go of a trial's copies."""
        drop = CloseAttempt(attempt=key, store=self._state.store)
        options = self.options(effects.STEP, f"drop measurement {key.binding}")
        await workflow.execute_activity(effects.close_attempt, drop, **options)

    async def compose(self, pick: Pick, head: Sha) -> Composed:
        """Lay a lane's files on a head."""
        raise_if_cancelled()
        step = ComposeStep(
            run=self._request.run,
            store=self._state.store,
            plan=self._request.plan.only(pick.lane),
            lane=pick.lane,
            ticket=pick.ticket,
            source=pick.commit,
            head=head,
        )
        options = self.options(effects.STEP, f"lay {pick.lane} on {head[:10]}")
        return await workflow.execute_activity(effects.compose_step, step, **options)

    async def promote(self, old: Sha, new: Sha) -> Promotion:
        """Bring the new incumbent to where the round was asked to."""
        raise_if_cancelled()
        request = self._request
        promote = Promote(
            run=request.run,
            repo=request.repo,
            store=self._state.store,
            old=old,
            new=new,
            target=request.promote,
            chain=True,
        )
        options = self.options(effects.STEP, f"promote to {request.promote}")
        return await workflow.execute_activity(effects.promote, promote, **options)

    async def record(self, revisions: tuple[Revision, ...], incumbent: Sha | None) -> RoundRecord:
        """Write the ledger document and advance the campaign; of the noise the largest of any device set."""
        while self._ledger.unkept():
            await self._keep()
        noise = max(self._state.noise.values(), key=lambda found: found.sigma, default=None)
        record = RecordRound(
            run=self._request.run,
            store=self._state.store,
            plan=self._request.plan,
            revisions=revisions,
            incumbent=incumbent,
            noise=noise,
        )
        options = self.options(effects.STEP, "record the round")
        return await workflow.execute_activity(effects.record_round, record, **options)

    async def _keep(self) -> None:
        """Have events written to disk, as many as fit into a step."""
        keep = KeepEvents(run=self._request.run, events=self._ledger.next_unkept())
        options = self.options(effects.STEP, f"keep {len(keep.events)} events")
        await workflow.execute_activity(effects.keep_events, keep, **options)
        self._ledger.kept(keep.events)

    async def close(self) -> None:
        """Keep the last events and let go of what the round reserved."""
        request = self._request
        while self._ledger.next_unkept() != self._ledger.unkept():
            await self._keep()
        close = CloseRun(run=request.run, repo=request.repo, store=self._state.store, events=self._ledger.unkept())
        await workflow.execute_activity(effects.close_run, close, **self.options(effects.STEP, "close the run"))

    def options(self, config: ActivityConfig, summary: str) -> ActivityConfig:
        """The limits of a step on the round's host."""
        return effects.options(config, queue=host_queue(self._request.host), summary=summary)
