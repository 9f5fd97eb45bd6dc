"""Parameters that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from .durations import parse_duration

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


def run_argument(command: F) -> F:
    """The run's id."""
    return click.argument("run", metavar="ID")(command)


def json_option(command: F) -> F:
    """`--json`: data for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout, and nothing else there.")(
        command
    )
