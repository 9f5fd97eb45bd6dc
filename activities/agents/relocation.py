"""A session's record, carried over to another working copy.

The conversation names files by absolute paths. Left as they are, a model that goes on from memory would write into the
folder it worked in before, and nobody would see its work.
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any, BinaryIO


def head(record: Path, limit: int) -> str:
    """The beginning of a record; empty when it is no regular file."""
    source = _opened(record)
    if source is None:
        return ""
    with source:
        return source.read(limit).decode(errors="replace")


def relocate(record: Path, copy: Path, old: str, new: str) -> bool:
    """Copy a record, one JSON object a line, with paths below `old` moved below `new`; False when it is no file."""
    source = _opened(record)
    if source is None:
        return False
    with source:
        copy.parent.mkdir(parents=True, exist_ok=True)
        below = re.compile(rf"{re.escape(old)}(?![\w.-])") if old else None
        with copy.open("wb") as target:
            for line in source:
                target.write(_moved_line(line, below, new) if below and old.encode(errors="replace") in line else line)
    return True


def _opened(record: Path) -> BinaryIO | None:
    """Open a regular file. An agent may have put anything in its place: no link is followed, no pipe waited for."""
    try:
        number = os.open(record, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(number).st_mode):
        return os.fdopen(number, "rb")
    os.close(number)
    return None


def _moved_line(line: bytes, below: re.Pattern[str], new: str) -> bytes:
    try:
        return json.dumps(_moved(json.loads(line), below, new)).encode() + b"\n"
    except (ValueError, RecursionError):
        return line


def _moved(value: Any, below: re.Pattern[str], new: str) -> Any:
    """The value with its paths moved; what a provider signed stays as it is, or it would refuse it."""
    match value:
        case str():
            return below.sub(lambda _: new, value)
        case list():
            return [_moved(one, below, new) for one in value]
        case dict() if not any("signature" in key.lower() for key in value):
            return {_moved(key, below, new): _moved(one, below, new) for key, one in value.items()}
        case _:
            return value
