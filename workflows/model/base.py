"""The base of every value: frozen, closed, compared by content."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

Sha = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
"""A git object id: SHA-1 or SHA-256, lower-case hexadecimal."""

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256 over canonical JSON."""

RunId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,99}$")]
"""A run's id: also its workflow id and the name of its folder."""


class Value(BaseModel):
    """A frozen value; an unknown field is an error, never silently dropped."""

    model_config = ConfigDict(frozen=True, extra="forbid")
