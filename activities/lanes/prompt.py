"""What a lane's agent is told. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from ...workflows.model.round.plan import Direction, LanePlan, RoundPlan
from ..prompts import bullets, protected_bullets
from .desk import protected_globs

BETTER = {Direction.LOWER: "lower is better", Direction.HIGHER: "higher is better"}

OTHERS = """\
Other lanes work on the same goal, each on files of its own and in a folder of its own; what passes is combined, step
by step."""

HAND_OVER = """\
- `.orch/round submit` hands over your changed files as they are now and prints a ticket at once. The same files again
  are the same ticket. `out_of_scope` lists changes that were not handed over, because they are not yours to make.
- `.orch/round status TICKET --wait 100` waits at most so many seconds for news of a ticket: `submitted`, `queued`,
  `measuring`, then `measured` with a verdict and a gain, or `rejected` with the cause. Ask again, or work on meanwhile.
- Only tickets count. Each is built in a fresh copy and measured alternately with the files that you started from, with
  nothing else on its processors. What you time yourself decides nothing: this folder shares the machine with others.
- Submit early, and again after each real step: the best passing ticket of this lane is taken, whatever came after it.
  You need not commit. Do not push, and do not ask questions: nobody answers."""


def lane_prompt(plan: RoundPlan, lane: LanePlan, deadline: float) -> str:
    """Tell one lane what it is for, what it may touch, how it hands over, and what it may use.

    Args:
        plan: the round's frozen plan.
        lane: which lane of it.
        deadline: absolute Unix time.
    """
    metric = plan.metric
    aim = f"Improve `{metric.name}` ({metric.unit}, {BETTER[metric.direction]}) of this project.\n{OTHERS}"
    files = f"You may change, add and delete only what matches:\n\n{bullets(lane.globs)}"
    if protected := protected_globs(plan):
        files += f"\n\nNever these, even where they match:\n\n{protected_bullets(protected)}"
    sections = {
        "Goal": aim,
        f"This lane: `{lane.id}`": _hypothesis(lane),
        "Files": files,
        "Handing over": HAND_OVER,
        "What is run with a ticket, in a fresh copy": _commands(plan),
        "Limits": _limits(plan, lane, deadline),
    }
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())


def _hypothesis(lane: LanePlan) -> str:
    entry = lane.entry
    about = f"It changes one plane, `{entry.plane}`" + (f", at this stage: {entry.stage}." if entry.stage else ".")
    since = f" It was tried before; what has changed since: {lane.condition}." if lane.condition else ""
    return f"{entry.hypothesis}\n\n{about} At most {entry.headroom:.0%} can be won there.{since}"


def _commands(plan: RoundPlan) -> str:
    commands = plan.commands
    named = {
        "set-up": commands.setup,
        "build": commands.build,
        "smoke": commands.smoke,
        "benchmark": commands.benchmark,
        "validate": commands.validate_,
    }
    return bullets(f"{name}: `{command.run}`" for name, command in named.items() if command)


def _limits(plan: RoundPlan, lane: LanePlan, deadline: float) -> str:
    budget = lane.budget
    spend = [
        f"{budget.tokens:,} tokens" if budget.tokens is not None else "",
        f"${budget.usd:g}" if budget.usd is not None else "",
    ]
    turns = f", {budget.turns} turns" if budget.turns is not None else ""
    size = f"{plan.max_files:,} files and {plan.max_bytes / 2**20:g} MiB"
    lines = (
        f"{lane.submissions} different submissions, each of at most {size}.",
        f"{budget.attempts} launches of an agent, each at most {budget.wall_s:g} s{turns}.",
        f"{' and '.join(filter(None, spend))} for all launches together." if any(spend) else "",
        f"The deadline: {datetime.fromtimestamp(deadline, UTC):%Y-%m-%d %H:%M:%S} UTC. Nothing is taken in after it.",
    )
    return bullets(filter(None, lines))
