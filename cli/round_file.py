"""A round plan's YAML file read to a draft: what it says by itself, each fault with its line and the mend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from ..workflows.errors import RefusedError
from ..workflows.model.round.plan import Composition, DeviceSet, LaneBudget, LanePlan, RoundPlan
from .campaign_file import gates, protected_globs
from .yaml_lines import Document, read_yaml
from .yaml_tables import At, Key, build, listed, table
from .yaml_values import (
    COMMIT,
    DURATION,
    NAME,
    SIZE,
    choice,
    commit,
    duration,
    integer,
    name,
    number,
    numbers,
    size,
    text,
)


@dataclass(frozen=True)
class RoundDraft:
    """A round plan's file, its own faults aside.

    Attributes:
        campaign: the campaign's file; None when it is not named.
        fields: what goes into the plan as it stands, by the names of its fields.
        lanes: the lanes, by the names of a lane's fields; `entry` is the entry's id.
        gates: the gates that it gives, by name; `validator` besides.
        incumbent: the commit that it expects to start from; empty when it does not say.
    """

    campaign: Path | None
    fields: Mapping[str, Any] = field(default_factory=dict)
    lanes: tuple[Mapping[str, Any], ...] = ()
    gates: Mapping[str, Any] = field(default_factory=dict)
    incumbent: str = ""

    @property
    def devices(self) -> tuple[DeviceSet, ...]:
        """The device sets that could be read."""
        return tuple(device for device in self.fields.get("devices", ()) if device is not None)


DEVICE_KEYS = {
    "name": Key(name, NAME, needed=True),
    "cpus": Key(numbers, 'processors: [2, 3], or "2-3,6"'),
    "cuda": Key(numbers, "indexes of NVIDIA devices: [0]"),
    "load": Key(number, "the largest one-minute load that is quiet enough, such as 0.5"),
    "governor": Key(text, "a frequency governor, such as performance"),
}
"""The keys of a device set."""

BUDGET_KEYS = {
    "attempts": Key(integer, "a number from 1 to 20"),
    "wall": Key(duration, DURATION, "wall_s"),
    "turns": Key(integer, "a number above 0"),
    "tokens": Key(integer, "a number above 0"),
    "usd": Key(number, "US dollars, above 0"),
}
"""The keys of a lane's budget."""


def _device(at: At, value: Any) -> DeviceSet | None:
    return build(at, DeviceSet, table(at, value, DEVICE_KEYS), DEVICE_KEYS)


def _budget(at: At, value: Any) -> LaneBudget | None:
    return build(at, LaneBudget, table(at, value, BUDGET_KEYS), BUDGET_KEYS)


def _agent(at: At, value: Any) -> str:
    """An agent's spec, looked up."""
    from ..activities.agents.registry import resolve

    spec = text(at, value)
    if at.sound:
        try:
            resolve(spec)
        except RefusedError as error:
            at.refuse(f"cannot be used: {error.message}", error.hint)
    return spec


LANE_KEYS = {
    "id": Key(name, NAME, needed=True),
    "entry": Key(name, "the id of an entry of the campaign", needed=True),
    "globs": Key(listed(text), "a list of globs of the files that it may write", needed=True),
    "agent": Key(_agent, "an agent's spec, such as claude:sonnet or 'cmd:./agent.sh'", needed=True),
    "budget": Key(_budget, "{attempts: 1, wall: 1h, turns: 40, tokens: 200000, usd: 3}"),
    "submissions": Key(integer, "a number from 1 to 50"),
    "deadline": Key(duration, f"{DURATION}, from the start of the round", "deadline_s"),
    "condition": Key(text, "what changed since the entry was rejected"),
}
"""The keys of a lane."""

_NO_ENTRY = {"id": "x", "plane": "x", "hypothesis": "x", "headroom": 0.5}


def _lane(at: At, value: Any) -> dict[str, Any]:
    """A lane whose entry is looked up later; the rest is checked against the model."""
    fields = table(at, value, LANE_KEYS)
    build(at, LanePlan, {**fields, "entry": _NO_ENTRY}, LANE_KEYS)
    return fields


ROUND_KEYS = {
    "round": Key(name, NAME, "id", needed=True),
    "campaign": Key(text, "the campaign's file, as seen from this one's folder", needed=True),
    "incumbent": Key(commit, COMMIT),
    "devices": Key(listed(_device), "a list of {name: …, cpus: …}", needed=True),
    "lanes": Key(listed(_lane), "a list of {id: …, entry: …, globs: […], agent: …}", needed=True),
    "gates": Key(gates, "gates that are tighter than the campaign's: {pairs: 12}"),
    "protected": Key(protected_globs, "a list of globs that belong to no lane, besides the campaign's"),
    "composition": Key(choice(get_args(Composition)), "stepwise or strict"),
    "deadline": Key(duration, f"{DURATION}, at most 72h", "deadline_s"),
    "aa_every": Key(integer, "a number from 1 to 100"),
    "max_size": Key(size, SIZE, "max_bytes"),
    "max_files": Key(integer, "a number above 0"),
}
"""The keys of a round plan's file."""


def read_round(file: Path) -> tuple[RoundDraft, Document]:
    """The draft, of whatever could be read, and the document with its refusals; RefusedError without a file."""
    document = read_yaml(file)
    if document.refusals and document.data is None:
        return RoundDraft(None), document
    if not isinstance(document.data, dict):
        document.refuse((), "a round plan is a mapping", f"write {', '.join(f'`{key}:`' for key in ROUND_KEYS)}")
        return RoundDraft(None), document
    fields = table(At(document), document.data, ROUND_KEYS)
    named = fields.pop("campaign", "")
    _check_limits(At(document), fields)
    draft = RoundDraft(
        campaign=file.parent / named if named else None,
        lanes=tuple(fields.pop("lanes", ())),
        gates=fields.pop("gates", {}),
        incumbent=fields.pop("incumbent", ""),
        fields=fields,
    )
    return draft, document


def _check_limits(at: At, fields: Mapping[str, Any]) -> None:
    """Check all that needs no campaign against the model; in place of the rest stands something."""
    lane = {"id": "x", "entry": _NO_ENTRY, "globs": ["x"], "agent": "cmd:x"}
    stub = {
        "id": "x",
        "campaign": "x",
        "campaign_digest": "0" * 64,
        "incumbent": "0" * 40,
        "metric": {"name": "x", "direction": "lower", "unit": "x"},
        "gates": {},
        "commands": {"benchmark": {"run": "x"}},
    }
    own = {key: value for key, value in fields.items() if key not in {"gates", "incumbent"}}
    build(at, RoundPlan, {**stub, **own, "lanes": [lane] * len(fields.get("lanes", [lane]))}, ROUND_KEYS)
