"""Plans of rounds, and what their lanes submit, for tests without any file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from orch.workflows.model.round.plan import (
    Command,
    Commands,
    DeviceSet,
    Direction,
    Entry,
    Gates,
    LanePlan,
    Metric,
    RoundPlan,
)
from orch.workflows.model.round.ticket import Submission

INCUMBENT = "0" * 40


def sha(text: str) -> str:
    """The commit that a text stands for."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def ticket(lane: str, name: str) -> str:
    """The ticket of a lane's files, which a name stands for."""
    return f"r1-{lane}-{hashlib.sha256(f'{lane} {name}'.encode()).hexdigest()[:8]}"


def submission(lane: str, name: str, **facts: Any) -> Submission:
    """What intake makes of them."""
    digest = hashlib.sha256(f"{lane} {name}".encode()).hexdigest()
    given: dict[str, Any] = {
        "digest": digest,
        "commit": sha(f"{lane} {name}"),
        "tree": sha(name),
        "paths": (f"{lane}/x.py",),
        "files": 1,
        "bytes": 9,
    }
    return Submission(ticket=ticket(lane, name), lane=lane, **{**given, **facts})


def plan(
    *lanes: str, devices: tuple[str, ...] = ("cpu",), more: Mapping[str, Any] | None = None, **facts: Any
) -> RoundPlan:
    """A plan of these lanes; `more` are further fields of each lane."""
    given: dict[str, Any] = {
        "metric": Metric(name="time", direction=Direction.LOWER, unit="ms"),
        "gates": Gates(pairs=4, repetitions=1),
        "devices": tuple(DeviceSet(name=name) for name in devices),
        "commands": Commands(benchmark=Command(run="true")),
        "lanes": tuple(
            LanePlan(
                id=name,
                entry=Entry(id=name, plane="algorithm", hypothesis=f"{name} is slow", headroom=0.5),
                globs=(f"{name}/**",),
                agent="cmd:true",
                **(more or {}),
            )
            for name in lanes
        ),
        "deadline_s": 60.0,
        "aa_every": 50,
    }
    ids = {"id": "r1", "campaign": "c", "campaign_digest": "a" * 64, "incumbent": INCUMBENT}
    return RoundPlan(**ids, **{**given, **facts})
