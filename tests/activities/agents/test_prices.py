"""The price table: what it makes money of, and what it refuses."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.activities.agents.prices import EMPTY, FILE, Price, PriceTable, load_prices
from orch.workflows.errors import RefusedError
from orch.workflows.model.usage import Usage

TEXT = """\
dated = 2026-11-29
["gpt-5.5"]
input = 1.25
cached = 0.125
output = 10.0
["plain/model"]
input = 2
output = 4
"""
TABLE = PriceTable(
    dated=date(2026, 11, 29),
    models={"gpt-5.5": Price(input=1.25, cached=0.125, output=10.0), "plain/model": Price(input=2, output=4)},
)
M = 1_000_000


def table(folder: Path, text: str | bytes) -> PriceTable:
    (folder / FILE).write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_prices(folder)


def test_table_is_read(tmp_path: Path) -> None:
    assert table(tmp_path, TEXT) == TABLE


def test_without_a_file_nothing_has_a_price(tmp_path: Path) -> None:
    assert load_prices(tmp_path) == EMPTY
    assert EMPTY.priced(Usage(tokens_in=M), "gpt-5.5").usd is None


@pytest.mark.parametrize(
    ("model", "usage", "usd"),
    [
        ("gpt-5.5", Usage(tokens_in=M, tokens_cached=2 * M, tokens_out=M), 1.25 + 0.25 + 10),
        ("plain/model", Usage(tokens_in=M, tokens_cached=M, tokens_out=M), 2 + 2 + 4),
        ("gpt-5.5", Usage(tokens_in=1), 0.00000125),
        ("gpt-5.5", Usage(tokens_in=0), 0.0),
    ],
)
def test_tokens_become_money_with_the_date_of_the_prices(model: str, usage: Usage, usd: float) -> None:
    priced = TABLE.priced(usage, model)

    assert priced.usd == pytest.approx(usd)
    assert (priced.priced, priced.tokens) == ("2026-11-29", usage.tokens)


@pytest.mark.parametrize(
    ("model", "usage"),
    [
        ("gpt-5.5", Usage(tokens_in=M, usd=0.01)),
        ("gpt-5.5", Usage(tokens_in=M, usd=0.0)),
        ("gpt-5.5", Usage()),
        ("unheard-of", Usage(tokens_in=M)),
        ("", Usage(tokens_in=M)),
    ],
)
def test_money_the_agent_told_is_kept_and_unknown_stays_unknown(model: str, usage: Usage) -> None:
    assert TABLE.priced(usage, model) == usage


@given(st.builds(Usage, tokens_in=st.integers(0, 10**12), tokens_out=st.integers(0, 10**12)))
def test_pricing_twice_changes_nothing(usage: Usage) -> None:
    once = TABLE.priced(usage, "gpt-5.5")

    assert TABLE.priced(once, "gpt-5.5") == once


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dated = ", "Invalid value"),
        (b"\xff\xfe", "utf-8"),
        ('["m"]\ninput = 1\noutput = 1\n', "dated"),
        ("dated = 'soon'\n", "dated"),
        ('dated = 2026-11-29\n["m"]\ninput = -1\noutput = 1\n', "models.m.input"),
        ('dated = 2026-11-29\n["m"]\ninput = nan\noutput = 1\n', "models.m.input"),
        ('dated = 2026-11-29\n["m"]\ninput = 1\n', "models.m.output"),
        ('dated = 2026-11-29\n["m"]\ninput = 1\noutput = 1\nuotput = 2\n', "models.m.uotput"),
        ("dated = 2026-11-29\n[gpt-5.5]\ninput = 1\noutput = 1\n", "models.gpt-5.input"),
    ],
)
def test_broken_table_is_refused_with_the_place(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(RefusedError) as refused:
        table(tmp_path, text)

    assert str(tmp_path / FILE) in refused.value.message
    assert said in refused.value.message
    assert refused.value.hint


def test_table_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()

    with pytest.raises(RefusedError, match="cannot be read"):
        load_prices(tmp_path)
