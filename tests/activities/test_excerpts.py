"""Excerpts: head and tail of output, fit to be shown."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from orch.activities.excerpts import SHOWN, excerpt
from orch.workflows.model.verdict import Excerpt


def of(folder: Path, data: bytes) -> Excerpt:
    path = folder / "attempts" / "out"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return excerpt(path, run_folder=folder)


def test_short_output_is_all_head(tmp_path: Path) -> None:
    assert of(tmp_path, b"a\n\tb\n") == Excerpt(head="a\n\tb\n", tail="", size=5, path="attempts/out")


def test_longer_output_has_a_tail_that_does_not_repeat_the_head(tmp_path: Path) -> None:
    data = b"".join(b"%04d\n" % n for n in range(300))
    found = of(tmp_path, data)
    assert found.head == data[:SHOWN].decode()
    assert found.tail == data[SHOWN:].decode()
    data = b"".join(b"%05d\n" % n for n in range(1000))
    found = of(tmp_path, data)
    assert (found.head.encode(), found.tail.encode()) == (data[:SHOWN], data[-SHOWN:])


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("wb") as file:
        file.write(b"first\n")
        file.seek(1 << 40)
        file.write(b"\nscore: 0.93\n")
    begun = time.monotonic()
    found = excerpt(path, run_folder=tmp_path)
    assert time.monotonic() - begun < 20
    assert found.head == "first\n"
    assert found.tail == "\nscore: 0.93\n"
    assert found.size == (1 << 40) + 13


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x1b[32mscore: 0.93\x1b[0m\n", "score: 0.93\n"),
        (b"\x1b]0;title\x07ok\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "oklink\n"),
        (b"\x1b]52;c;aGk=\x07x\x1bP1$q\x1b\\y\x1b(Bz\x1bcw", "xyzw"),
        (b" 10%\r 50%\r100%\ndone\r\n", "100%\ndone\n"),
        (b"working\r", "working"),
        (b"a\x00b\x07c\x08d\x7fe", "abcde"),
        ("a\u202eb\u2066c\x9b31md".encode(), "abcd"),
        (b"\xff\xf0\x9f ok", "�� ok"),
        (b"open \x1b[", "open "),
    ],
)
def test_only_text_is_left(tmp_path: Path, data: bytes, text: str) -> None:
    assert of(tmp_path, data).head == text


def test_a_cut_never_splits_a_character(tmp_path: Path) -> None:
    found = of(tmp_path, "€".encode() * 20_000)
    assert set(found.head) == set(found.tail) == {"€"}
    assert SHOWN - 3 < len(found.head.encode()) <= SHOWN
    assert SHOWN - 3 < len(found.tail.encode()) <= SHOWN


def test_a_progress_bar_leaves_room_for_the_result(tmp_path: Path) -> None:
    bar = b"".join(b"%3d%% done\r" % (n % 100) for n in range(100_000))
    assert of(tmp_path, b"start\n" + bar + b"score: 1\n").tail.endswith("score: 1\n")


def test_missing_output_is_empty(tmp_path: Path) -> None:
    assert excerpt(tmp_path / "none", run_folder=tmp_path) == Excerpt(path="none")
