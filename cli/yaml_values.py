"""Readers of single YAML values: text, numbers, durations, sizes, shares, names, each strict about its type."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from .durations import parse_duration
from .nearest import offer
from .sizes import parse_size
from .yaml_tables import At, Reader

NAME = "lower-case letters, digits, dashes and underscores, at most 40, a letter or digit first"
SHARE = "a share such as 5% or 0.05"
DURATION = "a duration such as 10m"
SIZE = "an amount of data such as 64m"
COMMIT = "a full commit id, of 40 or 64 digits"

_METRIC = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,59}")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_REVISION = re.compile(r"[^\s\x00-\x1f\x7f~^:?*\[\\-][^\s\x00-\x1f\x7f~^:?*\[\\]{0,199}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")


def text(at: At, value: Any) -> str:
    """A text that is not blank."""
    if not isinstance(value, str):
        at.refuse("is no text", "put it in quotes")
        return ""
    if not value.strip() or "\0" in value:
        at.refuse("is empty" if not value.strip() else "holds a NUL", "write something, or leave the key out")
    return value.strip()


def name(at: At, value: Any) -> str:
    """An id."""
    return _matching(at, value, _NAME, "is no name", NAME)


def metric_name(at: At, value: Any) -> str:
    """The key of a metric in a result file."""
    return _matching(at, value, _METRIC, "is no name of a metric", "letters, digits, `_`, `.` and `-`, at most 60")


def commit(at: At, value: Any) -> str:
    """A full commit id."""
    return _matching(at, value, _COMMIT, "is no full commit id", "`git rev-parse NAME` tells it")


def revision(at: At, value: Any) -> str:
    """The name of a commit: a branch, a tag or an id."""
    return _matching(at, value, _REVISION, "names no commit", "write a branch, a tag or an id")


def digest(at: At, value: Any) -> str:
    """A SHA-256."""
    return _matching(at, value, _DIGEST, "is no SHA-256", "64 hexadecimal digits, as `sha256sum FILE` prints")


def path(at: At, value: Any) -> str:
    """A path below the top of the repository."""
    found = text(at, value)
    if found.startswith(("/", "~")) or ".." in found.split("/"):
        at.refuse("leaves the repository", "write a path from its top")
    return "/".join(part for part in found.split("/") if part not in {"", "."})


def integer(at: At, value: Any) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        at.refuse("is no whole number", "write digits alone, without quotes")
        return 0
    return value


def number(at: At, value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        at.refuse("is no number", "write a finite number, without quotes or unit")
        return 0.0
    return float(value)


def share(at: At, value: Any) -> float:
    """A fraction, written as such or in percent."""
    if isinstance(value, str) and (found := re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", value.strip())):
        return float(f"{found[1]}e-2")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        at.refuse("is no share", f"write {SHARE}")
        return 0.0
    return float(value)


def duration(at: At, value: Any) -> float:
    """Seconds."""
    return float(_parsed(at, value, parse_duration, 1.0))


def size(at: At, value: Any) -> int:
    """Bytes."""
    return int(_parsed(at, value, parse_size, 1))


def numbers(at: At, value: Any) -> tuple[int, ...]:
    """Distinct numbers from 0: a list, one number, or a text such as `0-3,6`."""
    parts = [str(part) for part in value] if isinstance(value, list) else str(value).replace(" ", "").split(",")
    ranges = [_RANGE.fullmatch(part) for part in parts]
    found = [n for one in ranges if one for n in range(int(one[1]), int(one[2] or one[1]) + 1)]
    if not all(ranges) or not found or len(set(found)) < len(found) or isinstance(value, bool):
        at.refuse("is no set of numbers", 'write each once: [0, 1], or "0-3,6"')
    return tuple(sorted(found))


def choice(words: Iterable[str]) -> Reader:
    """One of some words."""
    known = sorted(words)

    def read(at: At, value: Any) -> str:
        if value not in known:
            at.refuse(f"is {str(value)[:40]!r}", offer(str(value), known))
        return str(value)

    return read


def _matching(at: At, value: Any, pattern: re.Pattern[str], fault: str, wants: str) -> str:
    if not isinstance(value, str):
        at.refuse("is no text", "put it in quotes")
        return ""
    if not pattern.fullmatch(value):
        at.refuse(f"{fault}: {value[:80]!r}", wants)
    return value


def _parsed(at: At, value: Any, parse: Callable[[str], float], otherwise: float) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        at.refuse("is neither text nor a number", "write it as in 10m or 512m")
        return otherwise
    try:
        return parse(str(value))
    except ValueError as error:
        fault, _, mend = str(error).rpartition(": ")
        at.refuse(fault, mend)
        return otherwise
