"""Composition step by step: the lanes' best tickets on one another, each measured, then the head measured again."""

from __future__ import annotations

from .model.base import Sha
from .model.round.composition import Pick, Rerun, Step, StepResult
from .model.round.event import HeadRerun, PicksMade, RoundDecided, StepComposed
from .model.round.trial import Evaluation, Judgement, Measurement
from .round_steps import RoundLedger, RoundSteps
from .rules.composition import fallback, picks, result_of
from .rules.interaction import interaction
from .rules.paired import evaluate
from .trials import Trials


async def land(ledger: RoundLedger, steps: RoundSteps, trials: Trials) -> None:
    """Select, order, compose, rerun, fall back at most once, and record what the new incumbent is."""
    state = ledger.state
    ledger.record(PicksMade, picks=picks(state.passed))
    for pick in state.order:
        await _lay(ledger, steps, trials, pick)
    head, lanes, _ = state.head
    if lanes:
        await _rerun(ledger, trials, head, lanes, fallen_back=False)
    single = fallback(state.order, state.reruns, state.known_plan.composition)
    if single is not None:
        await _rerun(ledger, trials, state.steps[0].commit, (single.lane,), fallen_back=True)
    _decide(ledger)


async def _lay(ledger: RoundLedger, steps: RoundSteps, trials: Trials, pick: Pick) -> None:
    state = ledger.state
    head, lanes, _ = state.head
    composed = await steps.compose(pick, head)
    if composed.clash:
        evaluation = Evaluation(verdict=Judgement.UNEVALUABLE, why=composed.clash)
        step = _step(pick, head, head, StepResult.SKIPPED, evaluation)
        ledger.record(StepComposed, step=step, tree=composed.tree)
        return
    if not lanes:
        step = _step(pick, head, composed.commit, StepResult.FIRST, pick.evaluation)
        ledger.record(StepComposed, step=step, tree=composed.tree)
        return
    found, evaluation = await _measured(ledger, trials, head, composed.commit, f"{pick.lane} on {', '.join(lanes)}")
    step = _step(pick, head, composed.commit, result_of(evaluation), evaluation)
    ratio = interaction(evaluation, pick.evaluation)
    step = step.model_copy(update={"interaction": ratio.unit, "interaction_log": ratio.log})
    ledger.record(StepComposed, step=step, tree=composed.tree, measurement=found)


async def _rerun(
    ledger: RoundLedger, trials: Trials, commit: Sha, lanes: tuple[str, ...], *, fallen_back: bool
) -> None:
    base = ledger.state.known_incumbent[0]
    found, evaluation = await _measured(ledger, trials, base, commit, f"rerun of {', '.join(lanes)}")
    rerun = Rerun(commit=commit, lanes=lanes, fallback=fallen_back, evaluation=evaluation)
    ledger.record(HeadRerun, rerun=rerun, measurement=found)


async def _measured(
    ledger: RoundLedger, trials: Trials, base: Sha, candidate: Sha, what: str
) -> tuple[Measurement, Evaluation]:
    """From fresh checkouts, on the first of the plan's device sets that is free, and by its noise."""
    plan = ledger.state.known_plan
    trial = await trials.build(base, candidate, what)
    found = await trials.measure_on_any(trial, [device.name for device in plan.devices])
    return found, evaluate(found, plan.metric, plan.gates, ledger.state.noise[found.device])


def _step(pick: Pick, base: Sha, commit: Sha, result: StepResult, evaluation: Evaluation) -> Step:
    return Step(lane=pick.lane, ticket=pick.ticket, base=base, commit=commit, result=result, evaluation=evaluation)


def _decide(ledger: RoundLedger) -> None:
    """The last rerun has the last word: what it measured is the new incumbent if it passed."""
    state = ledger.state
    last = state.reruns[-1] if state.reruns else None
    if last is None or not last.evaluation.passed:
        ledger.record(RoundDecided, incumbent=None, tree=None)
        return
    chain = tuple(step.commit for step in state.steps if step.lane in last.lanes)
    ledger.record(RoundDecided, incumbent=last.commit, tree=state.trees.get(last.commit), lanes=last.lanes, chain=chain)
