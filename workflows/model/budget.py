"""Caps and the ledger of attempt bindings that spends them."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from .base import Value
from .usage import Usage

MAX_CANDIDATES = 64
"""More competing attempts than this are refused."""


class Caps(Value):
    """What a run may use; None is no cap.

    Attributes:
        max_iterations: iterations before the run ends without success.
        candidates: competing attempts per iteration.
        tokens: all tokens of all attempts together.
        usd: US dollars of all attempts together.
        deadline_s: seconds from the run's start.
        attempt_s: seconds for one agent process.
    """

    max_iterations: int = Field(default=10, ge=1, le=1000)
    candidates: int = Field(default=1, ge=1, le=MAX_CANDIDATES)
    tokens: int | None = Field(default=None, ge=1)
    usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    deadline_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    attempt_s: float = Field(default=3600.0, gt=0, le=604_800)


class BindingState(StrEnum):
    """The life of a binding: reserve, claim, settle; cancel only before claim."""

    RESERVED = "reserved"
    CLAIMED = "claimed"
    SETTLED = "settled"
    CANCELLED = "cancelled"


class Binding(Value):
    """One attempt's right to spend.

    Attributes:
        ordinal: from 1, never reused.
        state: where it is in its life.
        usage: what it used; known once settled.
    """

    ordinal: int
    state: BindingState = BindingState.RESERVED
    usage: Usage = Usage()


class BudgetLedger(Value):
    """All bindings of a run, in order."""

    bindings: tuple[Binding, ...] = ()
