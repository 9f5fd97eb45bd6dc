"""A campaign's YAML file read to a campaign: every refusal with its line and the mend."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..workflows.model.round.campaign import Campaign, CampaignEntry, NamedFile
from ..workflows.model.round.facts import EntryFacts
from ..workflows.model.round.plan import Command, Commands, Direction, EntryStatus, Gates, Metric
from ..workflows.rules.round_plan import entry_flaws
from .yaml_lines import Document, read_yaml
from .yaml_tables import At, Key, build, listed, table
from .yaml_values import (
    DURATION,
    NAME,
    SHARE,
    choice,
    digest,
    duration,
    integer,
    metric_name,
    name,
    number,
    path,
    revision,
    share,
    text,
)

_AND = re.compile(r"\s*(?:[,+&/;]|\band\b)\s*")

GATE_KEYS = {
    "pairs": Key(integer, "an even number from 4 to 256"),
    "repetitions": Key(integer, "a number from 1 to 64"),
    "sigmas": Key(number, "a number from 2 to 10"),
    "rollback": Key(share, SHARE),
    "noise": Key(share, SHARE),
}
"""The gates that are numbers."""

FILE_KEYS = {
    "path": Key(path, "a tracked file", needed=True),
    "sha256": Key(digest, "64 hexadecimal digits"),
}
"""The keys of a validator's file."""

COMMAND_KEYS = {
    "run": Key(text, "a shell line", needed=True),
    "timeout": Key(duration, DURATION, "timeout_s"),
}
"""The keys of a command that is more than a shell line."""

METRIC_KEYS = {
    "name": Key(metric_name, "the metric's key in the result file", needed=True),
    "direction": Key(choice(Direction), "lower or higher: which way is better", needed=True),
    "unit": Key(text, "the unit that stands beside each value", needed=True),
}
"""The keys of the metric."""


def named_file(at: At, value: Any) -> NamedFile | None:
    """A path, or a path with its hash."""
    fields = {"path": path(at, value)} if isinstance(value, str) else table(at, value, FILE_KEYS)
    return build(at, NamedFile, fields, FILE_KEYS)


def gates(at: At, value: Any) -> dict[str, Any]:
    """The gates that are given, by the names of the model, with the validator's files."""
    keys = {**GATE_KEYS, "validator": Key(listed(named_file), "a list of files")}
    return table(at, value, keys)


def _command(at: At, value: Any) -> Command | None:
    fields = {"run": text(at, value)} if isinstance(value, str) else table(at, value, COMMAND_KEYS)
    return build(at, Command, fields, COMMAND_KEYS)


_LINE = "a shell line, or {run: LINE, timeout: 10m}"

COMMANDS_KEYS = {
    "setup": Key(_command, _LINE),
    "probe": Key(_command, _LINE),
    "build": Key(_command, _LINE),
    "smoke": Key(_command, _LINE),
    "benchmark": Key(_command, _LINE, needed=True),
    "validate": Key(_command, _LINE, "validate_"),
}
"""The commands, in the order in which they run."""


def _commands(at: At, value: Any) -> Commands | None:
    return build(at, Commands, table(at, value, COMMANDS_KEYS), COMMANDS_KEYS)


def _metric(at: At, value: Any) -> Metric | None:
    return build(at, Metric, table(at, value, METRIC_KEYS), METRIC_KEYS)


def _planes(at: At, value: Any) -> list[str]:
    """The planes of an entry, of which there must be one; that is the rule's to say."""
    words = [part for part in _AND.split(value) if part] if isinstance(value, str) else value
    if not isinstance(words, list):
        at.refuse("is no text", "name the one plane that it changes")
        return []
    return words if len(words) != 1 else [name(at, words[0])]


ENTRY_KEYS = {
    "id": Key(name, NAME, needed=True),
    "plane": Key(_planes, "the one plane that it changes, such as algorithm, memory or io", needed=True),
    "hypothesis": Key(text, "what is expected to make it faster", needed=True),
    "stage": Key(text, "the stage or resource that it attacks"),
    "headroom": Key(share, "the share of the metric that it can win at most, such as 12%", needed=True),
    "status": Key(choice(EntryStatus), "planned, kept or rejected"),
}
"""The keys of an entry."""


def _entry(at: At, value: Any) -> dict[str, Any]:
    """An entry with all its planes; the rest is checked against the model."""
    fields = table(at, value, ENTRY_KEYS)
    build(at, CampaignEntry, {**fields, "plane": "x"}, ENTRY_KEYS)
    return fields


def protected_globs(at: At, value: Any) -> list[str]:
    """Globs; `auto`, which holds anyhow, is no glob."""
    return [] if value == "auto" else [glob for glob in listed(text)(at, value) if glob != "auto"]


CAMPAIGN_KEYS = {
    "campaign": Key(name, NAME, "id", needed=True),
    "incumbent": Key(revision, "the commit that the first round starts from: a branch, a tag or an id", needed=True),
    "metric": Key(_metric, "{name: …, direction: lower, unit: ms}", needed=True),
    "gates": Key(gates, "{pairs: 8, repetitions: 3, sigmas: 2, rollback: 1%, noise: 5%, validator: […]}"),
    "protected": Key(protected_globs, "a list of globs that belong to no lane"),
    "commands": Key(_commands, "{benchmark: LINE}, and any of setup, probe, build, smoke, validate", needed=True),
    "entries": Key(listed(_entry), "a list of {id: …, plane: …, hypothesis: …, headroom: …}", needed=True),
}
"""The keys of a campaign's file."""


def check_campaign(file: Path) -> tuple[Campaign | None, Document]:
    """The campaign (None when refused) and the document with its refusals; RefusedError when it cannot be read."""
    document = read_yaml(file)
    if document.refusals and document.data is None:
        return None, document
    at = At(document)
    if not isinstance(document.data, dict):
        document.refuse((), "a campaign is a mapping", f"write {', '.join(f'`{key}:`' for key in CAMPAIGN_KEYS)}")
        return None, document
    fields = table(at, document.data, CAMPAIGN_KEYS)
    _one_plane_each(at, fields.get("entries", []))
    campaign = _build(at, fields)
    return None if document.refusals else campaign, document


def _one_plane_each(at: At, entries: list[dict[str, Any]]) -> None:
    facts = [EntryFacts(id=entry.get("id", ""), planes=tuple(map(str, entry.get("plane", "x")))) for entry in entries]
    for flaw in entry_flaws(facts):
        at.document.refuse(flaw.where, flaw.message, flaw.mend)


def _build(at: At, fields: dict[str, Any]) -> Campaign | None:
    given = dict(fields.get("gates", {}))
    validator = tuple(file for file in given.pop("validator", ()) if file is not None)
    limits = build(at["gates"], Gates, given, GATE_KEYS)
    entries = [{**entry, "plane": next(iter(entry.get("plane", [])), "")} for entry in fields.get("entries", [])]
    whole = {**fields, "gates": limits or Gates(), "validator": validator, "entries": entries}
    return build(at, Campaign, whole, CAMPAIGN_KEYS)
