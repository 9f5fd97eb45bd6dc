"""What an attempt cost: tokens, money, time. Unknown is None, never zero."""

from __future__ import annotations

from pydantic import Field

from .base import Value


class Usage(Value):
    """Tokens, US dollars and wall seconds; None means nobody reported it.

    Attributes:
        tokens_in: input tokens that were not cached.
        tokens_out: output tokens.
        tokens_cached: input tokens read from a cache.
        usd: money in US dollars.
        wall_s: wall seconds of the agent process.
        priced: the date of the price table that turned tokens into `usd`; empty when the agent said so itself.
    """

    tokens_in: int | None = Field(default=None, ge=0)
    tokens_out: int | None = Field(default=None, ge=0)
    tokens_cached: int | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    wall_s: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    priced: str = ""

    @property
    def tokens(self) -> int | None:
        """All reported tokens together, or None when none was reported."""
        known = [n for n in (self.tokens_in, self.tokens_out, self.tokens_cached) if n is not None]
        return sum(known) if known else None

    def __add__(self, other: Usage) -> Usage:
        """Add two usages; a sum is known as soon as one part is."""
        return Usage(
            tokens_in=_sum(self.tokens_in, other.tokens_in),
            tokens_out=_sum(self.tokens_out, other.tokens_out),
            tokens_cached=_sum(self.tokens_cached, other.tokens_cached),
            usd=None if self.usd is None and other.usd is None else (self.usd or 0.0) + (other.usd or 0.0),
            wall_s=self.wall_s + other.wall_s,
            priced=max(self.priced, other.priced),
        )


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None and b is None else (a or 0) + (b or 0)
