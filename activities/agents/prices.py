"""The price table: tokens to money, for agents that report no money themselves.

`prices.toml` in the state directory is the user's own; there is no built-in table, because a wrong price is worse
than an unknown one:

    dated = 2026-11-29
    ["gpt-5.5"]                       # US dollars per million tokens
    input = 1.25
    cached = 0.125
    output = 10.0
"""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path

from pydantic import Field, ValidationError

from ...workflows.errors import RefusedError
from ...workflows.model.base import Value
from ...workflows.model.usage import Usage

FILE = "prices.toml"

_MILLION = 1_000_000


class Price(Value):
    """US dollars per million tokens of one model; without `cached`, cached tokens cost as much as others."""

    input: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)


class PriceTable(Value):
    """Prices by model, as of a date."""

    dated: date
    models: dict[str, Price] = Field(default_factory=dict)

    def priced(self, usage: Usage, model: str) -> Usage:
        """The usage with its money, where the agent told none and tokens and price are known."""
        price = self.models.get(model)
        if usage.usd is not None or price is None or usage.tokens is None:
            return usage
        cached = price.input if price.cached is None else price.cached
        dollars = (
            (usage.tokens_in or 0) * price.input
            + (usage.tokens_cached or 0) * cached
            + (usage.tokens_out or 0) * price.output
        )
        return usage.model_copy(update={"usd": round(dollars / _MILLION, 9), "priced": self.dated.isoformat()})


EMPTY = PriceTable(dated=date.min)


def load_prices(state: Path) -> PriceTable:
    """Read the table in a state directory; without a file nothing has a price. A broken one is refused."""
    path = state / FILE
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        dated = data.pop("dated", None)
        return PriceTable.model_validate({"dated": dated, "models": data})
    except FileNotFoundError:
        return EMPTY
    except (OSError, ValueError) as error:
        said = error.errors()[0] if isinstance(error, ValidationError) else None
        why = f"{'.'.join(map(str, said['loc']))}: {said['msg'].lower()}" if said else str(error)
        raise RefusedError(
            f"the price table {path} cannot be read: {why}", hint="mend the file, or remove it"
        ) from None
