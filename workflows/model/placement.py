"""Where the attempts of a run may go, and through which artifact store hosts exchange what they need."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from .base import Value

LABEL = r"[a-z0-9][a-z0-9_.-]{0,31}"

Label = Annotated[str, StringConstraints(pattern=f"^{LABEL}$")]
"""What a host has or an attempt needs, for example `gpu`."""

MAX_LABELS = 4
"""A host serves one queue for each set of its labels."""


class Placement(Value):
    """Where a run's attempts may go.

    Attributes:
        exchange: URL of the artifact store; empty: every attempt stays on the host that holds the repository.
        needs: labels that a host must have to be given an attempt.
        away_s: seconds for which a step waits for its host before the host counts as lost.
        replacements: how often one candidate is started anew elsewhere after its host was lost.
    """

    exchange: str = ""
    needs: tuple[Label, ...] = Field(default=(), max_length=MAX_LABELS)
    away_s: float = Field(default=300.0, gt=0)
    replacements: int = Field(default=2, ge=0)


class Exchange(Value):
    """An artifact store, and the part of it that belongs to one repository.

    Attributes:
        url: where it is, as fsspec reads it: `file:///shared/folder`, `s3://bucket/prefix`.
        key: names the repository's objects there, and its store on hosts that do not hold the repository.
    """

    url: str
    key: str
