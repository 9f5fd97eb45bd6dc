"""The result file of a benchmark: one finite number in the planned unit, or a flaw in words."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from orch.activities.trials.results import MAX_BYTES, Result, parse_result, read_result
from orch.workflows.model.round.plan import Direction, Metric

METRIC = Metric(name="wall", direction=Direction.LOWER, unit="ms")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"wall": {"value": 12.5, "unit": "ms"}}', 12.5),
        ('{"wall": {"value": 3, "unit": "ms", "runs": 7}, "more": [1]}', 3.0),
        ('{"wall": {"value": -0.0, "unit": "ms"}}', 0.0),
        ('{"wall": {"value": 1e-300, "unit": "ms"}}', 1e-300),
        (' {"wall":{"unit":"ms","value":-4}}\n', -4.0),
    ],
)
def test_a_sound_result_is_its_number(text: str, value: float) -> None:
    assert parse_result(text.encode(), METRIC) == Result(value)


@pytest.mark.parametrize(
    ("data", "flaw"),
    [
        (b"", "the result file is empty"),
        (b" \n", "the result file is empty"),
        (b"12.5", "the result is no JSON object"),
        (b"[]", "the result is no JSON object"),
        (b"{", "is no JSON"),
        (b"{} {}", "is no JSON: Extra data"),
        (b'{"wall": {"value": 1, "unit": "ms"},}', "is no JSON"),
        (b"[" * 60_000, "is no JSON"),
        (b'{"wall": {"value": ' + b"9" * 5000 + b', "unit": "ms"}}', "is no JSON"),
        (b'\xef\xbb\xbf{"wall": {"value": 1, "unit": "ms"}}', "is no JSON: Unexpected UTF-8 BOM"),
        ('{"wall": {"value": 1, "unit": "ms"}}'.encode("utf-16"), "the result file is no UTF-8"),
        (b'{"wall": {"value": 1, "unit": "ms", "note": "\xff"}}', "the result file is no UTF-8"),
        (b"{}", "the result has no metric 'wall'"),
        (b'{"Wall": {"value": 1, "unit": "ms"}}', "the result has no metric 'wall'"),
        (b'{"wall": 1}', "no object with `value` and `unit`"),
        (b'{"wall": {"value": 1}}', "no object with `value` and `unit`"),
        (b'{"wall": {"value": 1, "unit": "s"}}', "the unit of 'wall' is 's', not 'ms'"),
        (b'{"wall": {"value": 1, "unit": null}}', "the unit of 'wall' is 'None', not 'ms'"),
        (b'{"wall": {"value": NaN, "unit": "ms"}}', "holds NaN"),
        (b'{"wall": {"value": 1, "unit": "ms"}, "x": Infinity}', "holds Infinity"),
        (b'{"wall": {"value": -Infinity, "unit": "ms"}}', "holds -Infinity"),
        (b'{"wall": {"value": 1e999, "unit": "ms"}}', "the value of 'wall' is not finite"),
        (b'{"wall": {"value": ' + b"9" * 400 + b', "unit": "ms"}}', "the value of 'wall' is not finite"),
        (b'{"wall": {"value": true, "unit": "ms"}}', "'True', no number"),
        (b'{"wall": {"value": "1", "unit": "ms"}}', "'1', no number"),
        (b'{"wall": {"value": null, "unit": "ms"}}', "'None', no number"),
        (b'{"wall": {"value": 1, "unit": "ms"}, "wall": {"value": 2, "unit": "ms"}}', "the key 'wall' stands in"),
        (b'{"wall": {"value": 1, "value": 2, "unit": "ms"}}', "the key 'value' stands in"),
        (b'{"x": {"\\ud800": 1, "\\ud800": 2}}', "the key '\\ud800' stands in"),
    ],
)
def test_anything_else_is_a_flaw_and_no_value(data: bytes, flaw: str) -> None:
    found = parse_result(data, METRIC)
    assert found.value is None
    assert flaw in found.flaw
    found.flaw.encode()


def _link(path: Path) -> None:
    (path.parent / "good.json").write_text('{"wall": {"value": 1, "unit": "ms"}}')
    path.symlink_to("good.json")


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2 << 30)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize(
    ("make", "flaw"),
    [
        (lambda _: None, "the result file is missing"),
        (_link, "the result file cannot be opened: Too many levels of symbolic links"),
        (os.mkfifo, "the result is no regular file"),
        (Path.mkdir, "the result is no regular file"),
        (_socket, "the result file cannot be opened"),
        (_sparse, f"more than {MAX_BYTES:,} bytes"),
    ],
    ids=["missing", "link", "fifo", "folder", "socket", "2 GiB"],
)
def test_what_stands_in_the_place_of_the_file_is_neither_followed_nor_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: object, flaw: str
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    make(Path("result.json"))  # type: ignore[operator]
    found = read_result(Path("result.json"), METRIC)
    assert found.value is None
    assert flaw in found.flaw
