"""The name of an attempt."""

from __future__ import annotations

from pydantic import Field

from .base import RunId, Value


class AttemptKey(Value):
    """What makes an attempt unique: never reused, whatever crashes.

    Attributes:
        run: the run it belongs to.
        iteration: the monotone ordinal of its iteration, from 1.
        candidate: its index in the iteration, from 1 (0 is the incumbent).
        binding: the ordinal of its budget binding in the run, from 1; a new binding is a new attempt.
    """

    run: RunId
    iteration: int = Field(ge=0)
    candidate: int = Field(ge=0)
    binding: int = Field(ge=0)

    @property
    def name(self) -> str:
        """A name for folders, refs and tables, unique in the run."""
        return f"i{self.iteration}-c{self.candidate}-b{self.binding}"
