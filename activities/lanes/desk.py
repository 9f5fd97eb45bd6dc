"""What a lane and the orchestrator exchange, where it lies, and what the lane's own program is told.

    <lane's folder>/
    ├── desk/outbox/   what the lane hands over; wrapper.py says in which form
    ├── desk/status/   what became of it
    └── taken/         what intake remembers of it, out of the lane's reach

In the lane's tree stand `.orch/round`, the program, and `.orch/lane.json`, its facts. Both are for fast feedback: who
edits them gains nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ...workflows.model.round.plan import LanePlan, RoundPlan
from ..protection import ADDABLE, matcher
from ..workspaces.removal import discard, sweep
from . import wrapper

DESK, OUTBOX, STATUS, TAKEN = "desk", "outbox", "status", "taken"

PROGRAM, FACTS = ".orch/round", ".orch/lane.json"
"""Where the wrapper (executable) and its facts stand in the lane's tree, kept out of git by the tree's own excludes."""


def make_desk(folder: Path) -> Path:
    """Make the desk in a lane's folder, if it is not there; return its path."""
    for name in (OUTBOX, STATUS):
        (folder / DESK / name).mkdir(parents=True, exist_ok=True)
    return folder / DESK


def clear_desk(folder: Path) -> None:
    """Remove the desk and what intake remembered, whatever the lane made of it; nothing to remove is no error."""
    for name in (DESK, TAKEN):
        discard(folder / name, folder)
    sweep(folder)


def program() -> bytes:
    """The wrapper's text."""
    return Path(wrapper.__file__).read_bytes()


def facts(plan: RoundPlan, lane: LanePlan, desk: Path, deadline: float) -> str:
    """The content of `lane.json`.

    Globs stand in it as they are, for people, and as the regular expressions that they mean, for the wrapper: each with
    whether it includes or, after a `!`, excludes. `closed` are the protected globs under which nothing may be added.
    """
    protected = protected_globs(plan)
    rules = {
        "own": lane.globs,
        "others": [glob for other in plan.lanes if other.id != lane.id for glob in other.globs],
        "protected": protected,
        "closed": [glob for glob in protected if not glob.startswith(ADDABLE)],
    }
    return json.dumps(
        {
            "round": plan.id,
            "lane": lane.id,
            "incumbent": plan.incumbent,
            "globs": list(lane.globs),
            "protected": protected,
            "submissions": lane.submissions,
            "max_files": plan.max_files,
            "max_bytes": plan.max_bytes,
            "deadline": deadline,
            "desk": str(desk),
            "rules": {name: _expressions(globs) for name, globs in rules.items()},
        },
        indent=1,
    )


def protected_globs(plan: RoundPlan) -> list[str]:
    """The globs that belong to no lane, the validator's files among them."""
    return [*plan.protected, *(_literal(file.path) for file in plan.gates.validator)]


def _literal(path: str) -> str:
    """The glob that matches one path alone."""
    return "/" + "".join(f"\\{char}" if char in "\\*?[ " else char for char in path)


def _expressions(globs: Sequence[str]) -> list[tuple[bool, str]]:
    return [(bool(each.include), each.regex.pattern) for each in matcher(globs).patterns if each.regex is not None]
