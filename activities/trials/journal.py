"""The journal of a measurement: a line for each pair that is over, written once, so that none is ever run again."""

from __future__ import annotations

import os
from pathlib import Path

from ...workflows.model.base import Value
from ...workflows.model.exit import Exit
from ...workflows.model.round.trial import Pair
from ...workflows.model.verdict import Excerpt

FILE = "pairs.jsonl"
"""In the measurement's folder."""


class Entry(Value):
    """A pair that is over: complete, or with a run that failed, after which nothing more is run.

    Attributes:
        pair: the raw samples; of a side that was not run any more there are fewer.
        kept: names the run of B whose output the validator still has to look at; empty when none has.
        flaw: why nothing more is run: a run that gave no value, or an output that was refused.
        side: whose fault that is.
        output: what the failing step printed.
        invalid: how the validator ended when it did not accept an output of this pair.
    """

    pair: Pair
    kept: str = ""
    flaw: str = ""
    side: str = ""
    output: Excerpt = Excerpt()
    invalid: Exit | None = None


def read(folder: Path) -> tuple[Entry, ...]:
    """The pairs that are over, in order. A line that was torn by a power cut never counted."""
    path = folder / FILE
    if not path.exists():
        return ()
    *whole, _ = path.read_bytes().split(b"\n")
    return tuple(map(Entry.model_validate_json, whole))


def append(folder: Path, entry: Entry) -> None:
    """Write a pair down; it is on the disk when this returns."""
    with (folder / FILE).open("r+b" if (folder / FILE).exists() else "w+b") as file:
        data = file.read()
        file.truncate(data.rfind(b"\n") + 1)  # what a power cut tore
        file.seek(0, os.SEEK_END)
        file.write(entry.model_dump_json().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
