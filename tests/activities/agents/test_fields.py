"""Unchecked values: the right kind, or nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from orch.activities.agents.fields import complaint, count, loaded, mapping, money, objects, seconds, tail, text

WRONG: list[Any] = [None, True, "x", [], -1, float("nan"), float("inf"), -0.5]


def test_right_kinds_are_kept() -> None:
    assert mapping({"a": 1}) == {"a": 1}
    assert text("a") == "a"
    assert count(0) == 0
    assert money(0.5) == 0.5
    assert seconds(2500) == 2.5
    assert objects([{"a": 1}, 2]) == [{"a": 1}]
    assert loaded('{"a": 1}') == {"a": 1}


@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_wrong_kinds_are_nothing(value: Any) -> None:
    assert mapping(value) == {}
    assert count(value) is None
    assert money(value) is None
    assert seconds(value) is None
    assert objects(value) == []


@pytest.mark.parametrize("value", [None, 1, [], {}], ids=repr)
def test_what_is_no_text_is_an_empty_one(value: Any) -> None:
    assert text(value) == ""


def test_money_of_zero_is_unknown() -> None:
    assert money(0) is None


def test_time_beyond_all_that_is_meant_is_none() -> None:
    assert seconds(10**400) is None


@pytest.mark.parametrize("line", ["", "{", "[1]", "[" * 100_000, "NaN"])
def test_line_that_is_no_object_is_an_empty_one(line: str) -> None:
    assert loaded(line) == {}


@pytest.mark.parametrize(
    ("stderr", "words"),
    [
        ("WARNING: x\nError: no rollout found\n", "Error: no rollout found"),
        ("\x1b[91m\x1b[1mError: \x1b[0mSession not found\n", "Error: Session not found"),
        ("TypeError: x is not a function\n    at y\n", "TypeError: x is not a function"),
        ("EROFS: read-only file system\n\nBun\n", "EROFS: read-only file system"),
        ("No API key found for x.\n\nUse /login\n", "No API key found for x."),
        ("2026-11-30 ERROR cache miss\nnode:fs:1386\n", ""),
        ("", ""),
    ],
)
def test_complaint_is_the_first_line_that_says_what_went_wrong(stderr: str, words: str) -> None:
    assert complaint(stderr) == words


def test_tail_is_the_end_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"abc\xff")

    assert tail(file, 2) == "c\N{REPLACEMENT CHARACTER}"
    assert tail(file, 9) == "abc\N{REPLACEMENT CHARACTER}"


def test_tail_of_what_is_no_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "link").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")

    assert [tail(tmp_path / name, 9) for name in ("link", "pipe", "none", ".")] == ["", "", "", ""]
