"""Durations as people write them: `90s`, `10m`, `1h30m`, `2d`, or plain seconds."""

from __future__ import annotations

import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[smhdw])")
_WHOLE = re.compile(rf"(?:{_PART.pattern}\s*)+")


def parse_duration(text: str) -> float:
    """Seconds; ValueError names the forms that are understood."""
    words = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", words):
        seconds = float(words)
    elif _WHOLE.fullmatch(words):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(words))
    else:
        raise ValueError(f"{text!r} is not a duration: write 90s, 10m, 1h30m or 2d")
    if seconds <= 0:
        raise ValueError(f"{text!r} is no time at all: write a duration above zero")
    return seconds


def show_duration(seconds: float) -> str:
    """The short form for tables: `0.4s`, `12s`, `3m05s`, `2h00m`, `3d04h`."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86_400}d{whole % 86_400 // 3600:02d}h"
