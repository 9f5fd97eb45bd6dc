"""What words can be found in the engine's database: as they are, and in whatever zlib stream lies there."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

MOST_BYTES = 1 << 20
HEADERS = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
"""How a zlib stream begins, by its level."""


def found(engine: Path, words: Iterable[str]) -> set[str]:
    """The words that the database's files, its values and the server's log hold, in plain text or compressed."""
    wanted = {word: word.encode() for word in words}
    texts = (text for value in _values(engine) for text in (value, *unpacked(value)))
    seen = set()
    for text in texts:
        seen |= {word for word, bytes_ in wanted.items() if bytes_ in text}
    return seen


def unpacked(value: bytes) -> Iterator[bytes]:
    """Every zlib stream in the value, as far as it can be unpacked."""
    for header in HEADERS:
        at = value.find(header)
        while at >= 0:
            with suppress(zlib.error):
                yield zlib.decompressobj().decompress(value[at:], MOST_BYTES)
            at = value.find(header, at + 1)


def _values(engine: Path) -> Iterator[bytes]:
    """The files whole, and every text and blob: the pages of a long one lie apart in the file."""
    for name in ("temporal.db", "temporal.db-wal", "server.log"):
        yield (engine / name).read_bytes()
    with closing(sqlite3.connect(f"{(engine / 'temporal.db').as_uri()}?mode=ro", uri=True)) as database:
        for (table,) in database.execute("select name from sqlite_master where type = 'table'").fetchall():
            for row in database.execute(f'select * from "{table}"'):
                yield from (value.encode() if isinstance(value, str) else value for value in row if _is_text(value))


def _is_text(value: object) -> bool:
    return isinstance(value, str | bytes)
