"""A pilot's YAML file and the round plan that it names, compiled to one frozen pilot: every refusal at its line."""

from __future__ import annotations

from pathlib import Path

from ..activities.home import Home
from ..activities.repository import Repository
from ..workflows.errors import RefusedError
from ..workflows.model.round.pilot import Arm, PilotPlan, PilotRule, PilotTerms
from ..workflows.model.round.plan import Direction
from .checked import CheckedPilot
from .pilot_plans import copy_of
from .round_plan import check_round
from .talk import plural
from .yaml_lines import read_yaml
from .yaml_tables import At, Key, build, table
from .yaml_values import NAME, SHARE, integer, name, number, share, text

MAX_NAME = 40
"""The longest id of a campaign."""

PILOT_KEYS = {
    "pilot": Key(name, NAME, "id", needed=True),
    "plan": Key(text, "the round plan's file, as seen from this one's folder", needed=True),
    "repetitions": Key(integer, "runs of each arm, from 1 to 20; fewer than 3 decide nothing"),
    "target": Key(share, f"the reference gain G*: {SHARE}", needed=True),
    "fraction": Key(share, f"f, of the target: {SHARE}"),
    "threshold": Key(number, "the median time ratio that the faster arm must be below, such as 0.8"),
    "sigmas": Key(number, "how many standard errors make a gain lower, such as 2"),
}
"""The keys of a pilot's file."""

_RULE = frozenset({"target", "fraction", "threshold", "sigmas"})


def check_pilot(file: Path, repository: Repository, home: Home, *, sandbox: bool = True) -> CheckedPilot:
    """Read, check and compile; what is refused stands in the documents. RefusedError without a file."""
    document = read_yaml(file)
    checked, at = CheckedPilot(document), At(document)
    if document.refusals and document.data is None:
        return checked
    if not isinstance(document.data, dict):
        document.refuse((), "a pilot is a mapping", f"write {', '.join(f'`{key}:`' for key in PILOT_KEYS)}")
        return checked
    fields = table(at, document.data, PILOT_KEYS)
    rule = build(at, PilotRule, {key: value for key, value in fields.items() if key in _RULE}, PILOT_KEYS)
    terms = {key: value for key, value in fields.items() if key not in _RULE | {"plan"}}
    build(at, PilotTerms, terms, PILOT_KEYS)  # what is wrong here is told whatever the round plan is like
    try:
        named = fields.get("plan")
        checked.round = check_round(file.parent / named, repository, home, sandbox=sandbox) if named else None
    except RefusedError as error:
        at["plan"].refuse(f"cannot be read: {error.message}", error.hint)
    if rule is not None and checked.round is not None and checked.round.plan is not None:
        pilot = build(at, PilotPlan, {**terms, "rule": rule, "round": checked.round.plan}, PILOT_KEYS)
        _freeze(checked, pilot)
    return checked


def _freeze(checked: CheckedPilot, pilot: PilotPlan | None) -> None:
    """Take the pilot when nothing speaks against it."""
    if pilot is not None:
        _refuse_what_cannot_be(At(checked.document), pilot)
    if pilot is None or checked.round is None or checked.document.refusals:
        return
    checked.plan, checked.digest = pilot, pilot.digest
    checked.protected, checked.facts = checked.round.protected, checked.round.facts
    checked.summary = f"pilot {pilot.id} of {checked.round.summary}, {plural(pilot.repetitions, 'repetition')}"


def _refuse_what_cannot_be(at: At, pilot: PilotPlan) -> None:
    """A target that leaves nothing, a single lane, and ids that grow too long."""
    share = pilot.rule.fraction * pilot.rule.target
    if pilot.round.metric.direction is Direction.LOWER and share >= 1:
        at["target"].refuse("cannot be reached", "a metric that improves downwards can lose less than 100%")
    if len(pilot.round.lanes) < 2:
        at["plan"].refuse("has one lane", "with two or more lanes the arms differ")
    copies = [copy_of(pilot, arm, pilot.repetitions - 1) for arm in Arm]
    if longest := next((copy for copy in copies if len(copy) > MAX_NAME), ""):
        at["pilot"].refuse(f"makes the campaign's copies too long: {longest}", f"{MAX_NAME} characters at most")
