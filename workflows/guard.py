"""The A/A guard: the incumbent measured against itself, at first and every k tickets; its noise judges every gain."""

from __future__ import annotations

from temporalio import workflow

from .model.reason import Reason, RunReason
from .model.round.event import GuardMeasured, QueuePaused, QueueResumed
from .model.round.trial import GuardResult
from .round_steps import RoundLedger
from .rules.noise import guard, pool
from .stopping import pause, together
from .trials import LONGEST_PAUSE_S, PAUSE_S, Trial, Trials

FIRST_TRIES = 3
"""A/A measurements before a round gives up on a host that is too noisy to begin."""

WHAT = "the incumbent against itself"


class Guard:
    """Keeps the noise of each device set up to date, and tells whether it can be trusted."""

    def __init__(self, ledger: RoundLedger, trials: Trials) -> None:
        self._ledger = ledger
        self._state = ledger.state
        self._trials = trials

    async def qualify(self) -> Reason[RunReason] | None:
        """Measure the incumbent against itself on every device set; why the round cannot begin, if so."""
        devices = [device.name for device in self._state.known_plan.devices]
        found = await together(*(self._first(device) for device in devices))
        return next((reason for reason in found if reason is not None), None)

    async def build(self) -> Trial:
        """Fresh checkouts of the incumbent, twice."""
        incumbent = self._state.known_incumbent[0]
        return await self._trials.build(incumbent, incumbent, WHAT)

    async def check(self, trial: Trial, device: str) -> None:
        """Measure until it passes, or the round's deadline has passed: nothing else is measured there meanwhile."""
        rest, paused = PAUSE_S, False
        while not (result := await self._measured(trial, device)).passed:
            left = self._state.deadline - workflow.now().timestamp()
            if left <= 0:
                return
            if not paused:
                self._ledger.record(QueuePaused, device=device, why=result.why)
                paused = True
            await pause(min(rest, left), f"{device}: {result.why}")
            rest, trial = min(2 * rest, LONGEST_PAUSE_S), await self.build()
        if paused:
            self._ledger.record(QueueResumed, device=device)

    async def _first(self, device: str) -> Reason[RunReason] | None:
        tries, rest = 1, PAUSE_S
        while not (result := await self._measured(await self.build(), device)).passed:
            facts = {"device": device, "why": result.why}
            if workflow.now().timestamp() >= self._state.deadline:
                return Reason(code=RunReason.DEADLINE, data=dict(facts))
            if result.noise is None:
                return Reason(code=RunReason.INCUMBENT_FAILS, data=dict(facts))
            if tries == FIRST_TRIES:
                return Reason(code=RunReason.TOO_NOISY, data=dict(facts))
            await pause(rest, f"{device}: {result.why}")
            tries, rest = tries + 1, 2 * rest
        return None

    async def _measured(self, trial: Trial, device: str) -> GuardResult:
        plan = self._state.known_plan
        found = await self._trials.measure(trial, device, deadline=self._state.deadline)
        known = self._state.noise.get(device)
        result = guard(found, plan.metric, plan.gates, known)
        noise = known
        if result.passed and result.noise is not None:
            noise = pool([one for one in (known, result.noise) if one is not None])
        self._ledger.record(GuardMeasured, measurement=found, result=result, noise=noise)
        return result
