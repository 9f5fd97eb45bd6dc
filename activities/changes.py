"""Names and changes as git prints them: NUL-separated bytes in, small values out."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

GITLINK = "160000"
"""The mode of a submodule's entry."""

NOTHING = "000000"
"""The mode of an entry that is not there."""


@dataclass(frozen=True)
class Change:
    """One path that differs between two trees, as `--raw -z --no-renames` prints it.

    Attributes:
        old_mode: octal mode before; NOTHING when it was not there.
        mode: octal mode after; NOTHING when it is gone.
        old_id: object id before.
        id: object id after; zeros when git did not compute it.
        name: the path, as bytes.
    """

    old_mode: str
    mode: str
    old_id: str
    id: str
    name: bytes


def parse_raw(records: Iterable[bytes]) -> list[Change]:
    """Read the records of a `--raw -z --no-renames` output (facts and names take turns)."""
    turns = iter(records)
    changes = []
    for facts, name in zip(turns, turns, strict=True):
        old_mode, mode, old_id, new_id, _ = facts.decode().lstrip(":").split(" ")
        changes.append(Change(old_mode, mode, old_id, new_id, name))
    return changes


def joined(names: Iterable[bytes]) -> bytes:
    """Names for a command that reads `-z` from its standard input."""
    return b"".join(name + b"\0" for name in names)


def display(name: bytes | str | os.PathLike[str]) -> str:
    """A name for people: printable, on one line, odd bytes and characters escaped."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
