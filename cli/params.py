"""Parameters that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from .durations import parse_duration
from .sizes import parse_size

F = TypeVar("F", bound=Callable[..., Any])


class Duration(click.ParamType[float]):
    """A duration such as 90s, 10m or 2h, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds; numbers pass as they are."""
        if isinstance(value, int | float):
            return float(value)
        try:
            return parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


DURATION = Duration()


class Size(click.ParamType[int]):
    """An amount of data such as 512m or 20g, in bytes (units of 1024)."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes; numbers pass as they are."""
        if isinstance(value, int):
            return value
        try:
            return parse_size(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


SIZE = Size()


def run_argument(command: F) -> F:
    """The run's id."""
    return click.argument("run", metavar="ID")(command)


def json_option(command: F) -> F:
    """`--json`: data for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout, and nothing else there.")(
        command
    )
