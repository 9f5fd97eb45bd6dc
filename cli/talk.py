"""The door to the terminal: data on stdout, talk on stderr, no control characters of anybody else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import BaseModel

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def say(text: str = "") -> None:
    """Print talk for people: to stderr."""
    click.echo(text, err=True)


def out(text: str) -> None:
    """Print data: to stdout."""
    click.echo(text)


def out_json(value: BaseModel | Iterable[Any] | dict[str, Any]) -> None:
    """Print one JSON document on stdout."""
    from pydantic import TypeAdapter

    click.echo(TypeAdapter[Any](Any).dump_json(value, indent=2).decode())


def screen() -> tuple[int, int]:
    """Columns and lines of the terminal that data goes to; zeros when it goes elsewhere."""
    import shutil
    import sys

    columns, lines = shutil.get_terminal_size()
    return (columns, lines) if sys.stdout.isatty() else (0, 0)


def screen_width() -> int:
    """How wide the terminal is that data goes to; 0 when it goes elsewhere."""
    return screen()[0]


def clean(text: str) -> str:
    """Make foreign text safe to print: control and direction-changing characters become visible escapes."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def one_line(text: str, width: int = 0) -> str:
    """The text on one line, cut to `width` characters (0: not cut) with an ellipsis."""
    line = clean(" ".join(text.split()))
    return line[: width - 1] + "…" if width and len(line) > width else line


def plural(count: int, noun: str) -> str:
    """`1 path`, `2 paths`; nouns that end in y become -ies."""
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count:,} {noun if count == 1 else many}"


def size(count: float) -> str:
    """Bytes as people read them: `512 B`, `12 MiB`, `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
