"""Names and changes as git prints them: NUL-separated bytes in, small values out."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

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


def write_changes(path: Path, changes: Iterable[Change]) -> None:
    """Keep changes in a file, as git prints them; it is there whole or not at all."""
    raw = (f":{c.old_mode} {c.mode} {c.old_id} {c.id} M".encode() + b"\0" + c.name + b"\0" for c in changes)
    aside = path.with_name(f".{path.name}")
    aside.write_bytes(b"".join(raw))
    aside.replace(path)


def read_changes(path: Path) -> list[Change]:
    """Read what `write_changes` kept; a missing file holds none."""
    return parse_raw(record for record in path.read_bytes().split(b"\0") if record) if path.exists() else []


def joined(names: Iterable[bytes]) -> bytes:
    """Names for a command that reads `-z` from its standard input."""
    return b"".join(name + b"\0" for name in names)


def display(name: bytes | str | os.PathLike[str]) -> str:
    """A name for people: printable, on one line, odd bytes and characters escaped."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
