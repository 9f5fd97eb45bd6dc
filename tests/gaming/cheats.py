"""What a cheat is, the typed ends that one may come to, and the tables of all cheats (`checks.yaml`, `host.yaml`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import yaml


class End(StrEnum):
    """What became of a cheat, by typed facts alone."""

    RESTORED = "protected paths restored"
    UNMOVED = "the tree is the baseline's"
    RED = "rungs failed"
    TAMPERED = "protected paths changed while it ran"
    REFUSED = "the workspace is gone"
    LIMITED = "ended at a limit"


@dataclass(frozen=True)
class Cheat:
    """One scripted attempt.

    Attributes:
        name: what it tries.
        script: shell lines, run as the agent. `@PY@ @REPO@ @STATE@ @RUN@ @STORE@ @HOME@ @SIBLING@ @PORT@ @SOCKET@
            @DIGEST@` stand for the interpreter and for what must not be reached; a file `PWNED…` anywhere outside is a
            success, and so is a word CANARY-… in what is left.
        ends: the typed ends that are allowed.
        names: paths that must be named as restored.
    """

    name: str
    script: str
    ends: tuple[End, ...]
    names: tuple[str, ...] = ()


def load(table: str) -> dict[str, Cheat]:
    """The cheats of a table, by name."""
    rows = yaml.safe_load(Path(__file__).with_name(f"{table}.yaml").read_text(encoding="utf-8"))
    found = [
        Cheat(row["name"], row["script"], tuple(End[end.upper()] for end in row["ends"]), tuple(row.get("names", ())))
        for row in rows
    ]
    assert len({cheat.name for cheat in found}) == len(found)
    return {cheat.name: cheat for cheat in found}
