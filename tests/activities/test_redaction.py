"""Secrets in output: no spelling of one reaches a file, however the output is cut; all else is left as it is."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from orch.activities.supervisor import Pump, Redactor

VALUE = 'sk-"quoted" 💧/+=word'
HIDDEN = {"API_KEY": VALUE}


@pytest.mark.parametrize(
    "spelt",
    [
        VALUE,
        json.dumps(VALUE)[1:-1],
        json.dumps(VALUE, ensure_ascii=False)[1:-1],
        quote(VALUE),
        quote(VALUE, safe=""),
        quote_plus(VALUE),
    ],
)
def test_value_is_replaced_by_its_name_in_every_spelling(spelt: str) -> None:
    assert Redactor(HIDDEN).text(f"<{spelt}>") == "<[API_KEY]>"


@pytest.mark.parametrize("before", ["", "u", "us", "user:"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_value_within_base64_cannot_be_read_back(before: str, encode: type[bytes]) -> None:
    encoded = encode(f"{before}{VALUE}, and more".encode()).decode()
    shown = Redactor(HIDDEN).text(f"Basic {encoded}")

    assert "[API_KEY]" in shown
    assert len(shown) < len(encoded)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_value_is_found_across_the_borders_of_chunks(size: int) -> None:
    data = f"sk- sk-sk {VALUE}{VALUE} sk-".encode()
    redactor = Redactor(HIDDEN)
    shown = b"".join(redactor.feed(data[at : at + size]) for at in range(0, len(data), size)) + redactor.end()

    assert shown == b"sk- sk-sk [API_KEY][API_KEY] sk-"


def test_each_line_of_a_key_file_is_a_secret() -> None:
    redactor = Redactor({"KEY": "-----BEGIN-----\nMIIEvQIBADANBg\n-----END-----"})

    assert redactor.text("it has MIIEvQIBADANBg in it") == "it has [KEY] in it"


def test_the_longer_of_two_secrets_wins_where_one_holds_the_other() -> None:
    assert Redactor({"A": "secret", "B": "secret-and-more"}).text("secret-and-more") == "[B]"


def test_short_values_hide_nothing() -> None:
    assert Redactor({"A": "true", "B": ""}).text("true is true") == "true is true"


def test_what_is_not_utf8_is_left_as_it_is() -> None:
    assert Redactor(HIDDEN).feed(b"\xff\xfe" + VALUE.encode() + b"\xc3") == b"\xff\xfe[API_KEY]\xc3"


def test_begun_value_is_held_back_no_longer_than_it_must_be(tmp_path: Path) -> None:
    pump = Pump(str(tmp_path / "out"), {"K": "abcdef"})
    for data, shown in ((b"line\nabc", "line\n"), (b"x", "line\nabcx"), (b"abcdef", "line\nabcx[K]"), (b"ab", None)):
        os.write(pump.inlet, data)
        pump.move()
        assert shown is None or (tmp_path / "out").read_text() == shown
    os.close(pump.inlet)
    pump.close()
    assert (tmp_path / "out").read_text() == "line\nabcx[K]ab"
