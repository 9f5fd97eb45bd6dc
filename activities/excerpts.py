"""Excerpts of output: head and tail, fit to be shown, read without the middle."""

from __future__ import annotations

import re
from pathlib import Path

from ..workflows.model.verdict import Excerpt

SHOWN = 1024
"""Bytes of head and of tail at most, in UTF-8."""

WINDOW = 16 * SHOWN
"""Bytes read from either end: more than shown, because escape sequences and progress bars take room."""

_ESCAPES = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC: titles, links
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\|\x9c)?"  # DCS, SOS, PM, APC
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # the last two turn text round


def excerpt(path: Path, *, run_folder: Path) -> Excerpt:
    """The head and tail of a file of output; empty when there is no such file."""
    name = str(path.relative_to(run_folder)) if path.is_relative_to(run_folder) else str(path)
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return Excerpt(path=name)
    with file:
        size = file.seek(0, 2)
        file.seek(0)
        first = file.read(WINDOW)
        file.seek(max(len(first), size - WINDOW))
        last = file.read(WINDOW)
    if len(first) + len(last) < size:
        return Excerpt(head=_first(clean(first)), tail=_last(clean(last)), size=size, path=name)
    whole = clean(first + last)
    head = _first(whole)
    return Excerpt(head=head, tail=_last(whole[len(head) :]), size=size, path=name)


def clean(data: bytes) -> str:
    """Output as plain text: no escape sequences, no control characters, overwritten lines in their last state."""
    text = _ESCAPES.sub("", data.decode("utf-8", "replace"))
    return _CONTROLS.sub("", "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")))


def _first(text: str) -> str:
    return text.encode()[:SHOWN].decode(errors="ignore")


def _last(text: str) -> str:
    return text.encode()[-SHOWN:].decode(errors="ignore")
