"""The result file of a benchmark, `{"NAME": {"value": 12.5, "unit": "ms"}}`: a value, or a flaw in words.

What wrote it may be a candidate's code, so nothing about the file is believed: it is never followed, never waited for,
never read past its bound, and anything but one finite number in the planned unit is no value.
"""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

from ...workflows.model.round.plan import Metric

MAX_BYTES = 64 << 10
"""A result is a few numbers; more than this is no result."""


class Result(NamedTuple):
    """What a result file holds: the metric's value in its unit, or why there is none."""

    value: float | None
    flaw: str = ""


class _FlawError(Exception):
    """What is wrong with a result, in words."""


def read_result(path: Path, metric: Metric) -> Result:
    """Read a result file that nobody writes any more; its folder must be one that no candidate could replace."""
    try:
        return Result(_value(_loaded(_content(path)), metric))
    except _FlawError as error:
        return Result(None, str(error))


def parse_result(data: bytes, metric: Metric) -> Result:
    """What the bytes of a result file say."""
    try:
        return Result(_value(_loaded(data), metric))
    except _FlawError as error:
        return Result(None, str(error))


def _content(path: Path) -> bytes:
    """The bytes of a regular file; O_NONBLOCK because a FIFO in its place would block even the opening."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _FlawError("the result file is missing") from None
    except OSError as error:
        raise _FlawError(f"the result file cannot be opened: {error.strerror}") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _FlawError("the result is no regular file")
        if found.st_size > MAX_BYTES:
            raise _FlawError(f"the result file holds more than {MAX_BYTES:,} bytes")
        return os.read(descriptor, MAX_BYTES)
    finally:
        os.close(descriptor)


def _loaded(data: bytes) -> Any:
    if not data.strip():
        raise _FlawError("the result file is empty")
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_without_duplicates, parse_constant=_refused)
    except UnicodeDecodeError:
        raise _FlawError("the result file is no UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise _FlawError(f"the result file is no JSON: {str(error)[:120]}") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _FlawError(f"the key {twice[:60]!a} stands in the result file twice")
    return found


def _refused(name: str) -> Any:
    raise _FlawError(f"the result file holds {name}, which is no number of JSON")


def _value(loaded: Any, metric: Metric) -> float:
    if not isinstance(loaded, dict):
        raise _FlawError("the result is no JSON object")
    if metric.name not in loaded:
        raise _FlawError(f"the result has no metric {metric.name!r}")
    found = loaded[metric.name]
    if not isinstance(found, dict) or not {"value", "unit"} <= found.keys():
        raise _FlawError(f"the metric {metric.name!r} is no object with `value` and `unit`")
    if found["unit"] != metric.unit:
        raise _FlawError(f"the unit of {metric.name!r} is {str(found['unit'])[:40]!a}, not {metric.unit!a}")
    return _number(found["value"], metric.name)


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _FlawError(f"the value of {name!r} is {str(value)[:40]!a}, no number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _FlawError(f"the value of {name!r} is not finite")
    return number
