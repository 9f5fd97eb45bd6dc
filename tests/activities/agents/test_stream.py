"""The event stream: bytes in chunks of any size become the same events, and no line fills the memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.activities.agents.stream import MAX_LINE, EventStream, parsed

MB = 1 << 20

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
values = texts | st.none() | st.integers() | st.lists(texts, max_size=2) | st.dictionaries(texts, texts, max_size=2)
lines = st.dictionaries(texts, values, max_size=3).map(lambda event: json.dumps(event).encode())
noise = st.binary(max_size=20) | st.sampled_from([b"", b"  ", b"[1]", b"null", b'{"half": ', b"\xff{}", b"\r", b"\x0b"])


def read(chunks: Iterable[bytes]) -> tuple[list[dict[str, object]], int]:
    stream = EventStream()
    events = [event for chunk in chunks for event in stream.feed(chunk)]
    return [*events, *stream.close()], stream.unreadable


@given(st.lists(lines), st.booleans())
def test_every_line_is_an_event(written: list[bytes], ends: bool) -> None:
    data = b"\n".join(written) + b"\n" * ends

    assert read([data]) == ([json.loads(line) for line in written], 0)


@given(st.lists(lines | noise), st.lists(st.integers(0, 300)))
def test_any_split_gives_the_same_events(written: list[bytes], cuts: list[int]) -> None:
    data = b"\n".join(written)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in pairwise(edges)]

    whole = read([data])

    assert read(pieces) == whole
    assert read(data[index : index + 1] for index in range(len(data))) == whole


@pytest.mark.parametrize(
    ("data", "events", "unreadable"),
    [
        (b"", [], 0),
        (b"\n\r\n  \n", [], 0),
        (b"\x0b\n{}\x0c\n\x0b{}\n\x0b", [], 4),
        (b'{"a": 1}', [{"a": 1}], 0),
        (b'{"a": 1}\r\n{"a": 2}\r\n', [{"a": 1}, {"a": 2}], 0),
        (b'{"a": 1}\n{"a": ', [{"a": 1}], 1),
        (b'{"a": 1}{"a": 2}\n', [], 1),
        (b'[1]\n"x"\nnull\n7\n{}\n', [{}], 4),
        (b"npm warn old\n{}\nTraceback\n", [{}], 2),
        (b'{"a": "\xff\xfe"}\n', [{"a": "\ufffd\ufffd"}], 0),
        ('{"a": "\u2028"}\n'.encode(), [{"a": "\u2028"}], 0),
        (b'{"a": "x\0y"}\n{"a": "x\\u0000y"}\n', [{"a": "x\0y"}], 1),
        (b'{"a": ' + b"9" * 5000 + b"}\n{}\n", [{}], 1),
        (b'{"a": 1, "a": 2}\n', [{"a": 2}], 0),
    ],
)
def test_what_is_no_object_is_counted_and_passed_over(
    data: bytes, events: list[dict[str, object]], unreadable: int
) -> None:
    assert read([data]) == (events, unreadable)


@pytest.mark.parametrize("deep", [b"[" * 200_000, b'{"a":' * 200_000, b"[" * 200_000 + b"]" * 200_000])
def test_deep_nesting_is_no_event_and_no_error(deep: bytes) -> None:
    assert read([deep + b'\n{"a": 1}\n']) == ([{"a": 1}], 1)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (r'{"a": "cut \ud83d"}', "cut ?"),
        (r'{"a": "\uDE00 tail"}', "? tail"),
        (r'{"a": "\ud83d\ude00"}', "\U0001f600"),
        (r'{"a": "\\ud83d"}', r"\ud83d"),
        (r'{"a": "\u00e9"}', "\u00e9"),
    ],
)
def test_half_a_character_never_gets_further(line: str, text: str) -> None:
    (event,), _ = read([line.encode()])

    assert event == {"a": text}
    assert json.dumps(event, ensure_ascii=False).encode()


@pytest.mark.parametrize("text", ["", "{", "nan", "[" * 200_000, "1" * 5000])
def test_text_that_is_no_json_is_none(text: str) -> None:
    assert parsed(text) is None


def test_line_of_100_mb_is_one_unreadable_line_and_keeps_memory_bounded() -> None:
    chunk, before, after = b"x" * MB, b'{"n": 1}\n{"text": "', b'"}\n{"n": 2}\n'
    tracemalloc.start()
    try:
        events, unreadable = read([before, *([chunk] * 100), after])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (events, unreadable) == ([{"n": 1}, {"n": 2}], 1)
    assert peak < MAX_LINE + 4 * MB


def test_longest_line_is_read_and_one_byte_more_is_not() -> None:
    frame = len(b'{"t": ""}')
    longest, longer = (b'{"t": "' + b"x" * (MAX_LINE - frame + more) + b'"}' for more in (0, 1))

    assert len(read([longest, b"\n", b"{}"])[0]) == 2
    assert read([longer, b"\n", b"{}"]) == ([{}], 1)
