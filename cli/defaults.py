"""`orch.yaml` at the root of a repository: the project's own defaults for the options of `start goal`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from .durations import parse_duration
from .nearest import offer
from .options import GoalOptions
from .yaml_lines import Document, read_yaml

NAME = "orch.yaml"
"""The file's name."""

_NEVER = {"goal", "repo", "ref", "id"}
_DURATIONS = {"deadline", "attempt-timeout", "rung-timeout"}
_PATHS = {"contract", "goal-file", "prompt-template"}
_EXCLUDES = {
    "verify": {"contract"},
    "contract": {"verify", "setup", "protect", "carry", "secret", "rung_timeout"},
    "candidates": {"best_of"},
    "best_of": {"candidates"},
    "goal": {"goal_file"},
}

KEYS = tuple(sorted(name.replace("_", "-") for name in GoalOptions.model_fields if name not in _NEVER))
"""What may stand in the file: the long option names."""


def with_defaults(options: GoalOptions, root: Path) -> GoalOptions:
    """The options, with what the project's `orch.yaml` says for those that were not given."""
    path = root / NAME
    if not path.is_file():
        return options
    document = read_yaml(path)
    values = _values(document, root)
    if document.refusals:
        raise document.error()
    given = options.given()
    hidden = given.union(*(_EXCLUDES.get(name, set()) for name in given))
    kept = {name: value for name, value in values.items() if name not in hidden}
    return options.model_copy(update=kept)


def _values(document: Document, root: Path) -> dict[str, Any]:
    if document.data is None:
        return {}
    if not isinstance(document.data, dict):
        document.refuse((), "defaults are a mapping", f"keys: {', '.join(KEYS)}")
        return {}
    found: dict[str, Any] = {}
    for key, value in document.data.items():
        if key not in KEYS:
            document.refuse((key,), f"unknown key `{key}`", offer(key, KEYS))
        else:
            found[key.replace("-", "_")] = _value(key, value, document, root)
    return _typed(found, document)


def _value(key: str, value: Any, document: Document, root: Path) -> Any:
    if key in _PATHS:
        return root / str(value)
    if key in _DURATIONS:
        try:
            return parse_duration(str(value))
        except ValueError as error:
            document.refuse((key,), str(error))
            return None
    wants_list = GoalOptions.model_fields[key.replace("-", "_")].default == ()
    return [value] if wants_list and isinstance(value, str) else value


def _typed(found: dict[str, Any], document: Document) -> dict[str, Any]:
    try:
        options = GoalOptions.model_validate(found)
    except ValidationError as error:
        for detail in error.errors():
            key = str(detail["loc"][0]).replace("_", "-")
            document.refuse(
                (key,), f"`{key}`: {detail['msg'].removeprefix('Input ').lower()}", "see `orch start goal --help`"
            )
        return {}
    return {name: getattr(options, name) for name in found}
