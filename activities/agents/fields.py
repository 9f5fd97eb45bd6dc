"""Values out of what an agent printed, which nobody has checked: the right kind, or nothing; never an error."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_FAR_MS = 1 << 50
_MOST = 1 << 53
_COMPLAINT = re.compile(r"(?:[A-Z]\w*)?Error: |E[A-Z]{3,}: |No [a-zA-Z]+ ")


def mapping(value: Any) -> Mapping[str, Any]:
    """An object, or an empty one."""
    return value if isinstance(value, dict) else {}


def text(value: Any) -> str:
    """A text, or an empty one."""
    return value if isinstance(value, str) else ""


def count(value: Any) -> int | None:
    """A whole number that is not negative, or None; also for one larger than anything that is counted here."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else None


def money(value: Any) -> float | None:
    """US dollars, or None; zero is what agents say of a model whose price they do not know, so it is None, too."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if real and math.isfinite(value) and value > 0 else None


def seconds(value: Any) -> float | None:
    """Milliseconds in seconds, or None; also for more of them than can be meant."""
    number = count(value)
    return number / 1000 if number is not None and number < _FAR_MS else None


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list, or none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def loaded(line: str) -> Mapping[str, Any]:
    """The object that a line of JSON holds, or an empty one."""
    try:
        return mapping(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def complaint(stderr: str) -> str:
    """The first line that says what went wrong, without colours; nothing when none does."""
    lines = (line.strip() for line in _COLOURS.sub("", stderr).splitlines())
    return next((line for line in lines if _COMPLAINT.match(line)), "")


def tail(path: Path, limit: int) -> str:
    """The end of a regular file, or nothing; an agent may have put anything in its place."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            state = os.fstat(file.fileno())
            file.seek(max(0, state.st_size - limit))
            return file.read(limit).decode(errors="replace") if stat.S_ISREG(state.st_mode) else ""
    except OSError:
        return ""
