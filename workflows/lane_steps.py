"""The steps of a lane on its host, each one activity."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio import workflow
from temporalio.workflow import ActivityConfig

from . import effects
from .details import agent_label
from .host import host_queue
from .model.attempt import AgentReport, AttemptKey, CloseAttempt, RunAgent, YieldSlot
from .model.contract import Contract, Rung
from .model.outcome import Session
from .model.round.lane import LaneBinding, LaneOpened, OpenLane, TakeIn, TakenIn
from .model.round.plan import LanePlan, RoundPlan
from .rules.agent_limits import limited


@dataclass(frozen=True)
class LaneSteps:
    """Calls the effects of one lane; records nothing and decides nothing.

    Attributes:
        plan: the round's frozen plan.
        lane: the lane in it.
        attempt: names the lane's folder.
        host: where it runs.
        store: the store's key.
        sandbox: whether commands run in the sandbox.
        deadline: absolute Unix time of the lane, no later than the round's.
    """

    plan: RoundPlan
    lane: LanePlan
    attempt: AttemptKey
    host: str
    store: str
    sandbox: bool
    deadline: float

    async def open(self) -> LaneOpened:
        """Have a slot and the workspace; what is there already is found again."""
        request = OpenLane(
            attempt=self.attempt,
            store=self.store,
            plan=self.plan,
            lane=self.lane,
            contract=lane_contract(self.plan, self.lane),
            sandbox=self.sandbox,
            deadline=self.deadline,
        )
        options = self._options(effects.WAIT, "waiting for a slot and opening the workspace")
        return await workflow.execute_activity(effects.open_lane, request, **options)

    async def run_agent(self, binding: LaneBinding, prompt: str, session: Session | None) -> AgentReport:
        """Launch the agent for a binding; it is stopped at the end of its own time, or at the lane's deadline."""
        budget = self.lane.budget
        request = RunAgent(
            attempt=self.attempt,
            agent=limited(self.lane.agent, turns=budget.turns, tokens=binding.tokens, usd=binding.usd),
            store=self.store,
            contract=lane_contract(self.plan, self.lane),
            deadline=self.deadline,
            limit_s=budget.wall_s,  # from the launch on: a worker that is away then costs nothing of it
            sandbox=self.sandbox,
            launch=binding.ordinal,
            session=session,
            prompt=prompt,
        )
        step = f"agent {agent_label(self.lane.agent)}, attempt {binding.ordinal}"
        return await workflow.execute_activity(effects.run_agent, request, **self._options(effects.WAIT, step))

    async def take_in(self, *, once: bool) -> TakenIn:
        """Take in what the lane submits, until this is cancelled; or once what is there."""
        request = TakeIn(
            attempt=self.attempt,
            store=self.store,
            plan=self.plan,
            lane=self.lane.id,
            deadline=self.deadline,
            once=once,
        )
        step = "take in what is left" if once else "take in what is submitted"
        return await workflow.execute_activity(effects.take_in, request, **self._options(effects.WAIT, step))

    async def yield_slot(self) -> None:
        """Let others work while the lane rests."""
        request, options = YieldSlot(attempt=self.attempt), self._options(effects.STEP, "give the slot back")
        await workflow.execute_activity(effects.yield_slot, request, **options)

    async def close(self) -> None:
        """End what still runs, and give everything back."""
        request = CloseAttempt(attempt=self.attempt, store=self.store)
        await workflow.execute_activity(effects.close_attempt, request, **self._options(effects.STEP, "close"))

    def _options(self, config: ActivityConfig, step: str) -> ActivityConfig:
        return effects.options(config, queue=host_queue(self.host), summary=f"lane {self.lane.id}: {step}")


def lane_contract(plan: RoundPlan, lane: LanePlan) -> Contract:
    """A lane's set-up and protected paths, as an attempt has them; its one rung is never run."""
    setup = plan.commands.setup
    return Contract(
        goal=lane.entry.hypothesis,
        rungs=(Rung(name="benchmark", run=plan.commands.benchmark.run),),
        protected=plan.protected,
        **({"setup": setup.run, "setup_timeout_s": setup.timeout_s} if setup else {}),
    )
