"""A YAML contract file read to a contract: every refusal with its line and the mend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..workflows.model.contract import Contract, Secret
from .derived_protection import AUTO
from .durations import parse_duration
from .nearest import nearest, offer
from .yaml_lines import Document, Place, read_yaml

KEYS = {
    "goal": "what the agents are asked to reach",
    "rungs": "a list of {name: NAME, run: COMMAND}",
    "protected": "a list of globs, or auto",
    "setup": "a shell line",
    "setup_timeout": "a duration such as 10m",
    "carry": "a list of globs",
    "secrets": "a mapping of NAME: env:VARIABLE, or NAME: {from: 'cmd:SHELL LINE', to: [agent, setup]}",
}
"""The keys of a contract file, and what each wants."""

RUNG_KEYS = {
    "name": "letters, digits, spaces, dots, dashes and underscores, at most 60",
    "run": "a shell line",
    "timeout": "a duration such as 10m",
    "network": "true or false",
}
"""The keys of a rung, and what each wants."""

_REFERENCE = "write `NAME: env:VARIABLE` or `NAME: cmd:SHELL LINE`, or {from: …, to: [agent, setup]}"

_FIELDS = {"timeout": "timeout_s", "setup_timeout": "setup_timeout_s"}
_KEY_OF = {field: key for key, field in _FIELDS.items()}


def load_contract(path: Path, *, goal: str = "") -> Contract:
    """The contract of a file; RefusedError with every refusal. `goal` stands in for the file's own."""
    contract, document = check_contract(path, goal=goal)
    if contract is None:
        raise document.error()
    return contract


def check_contract(path: Path, *, goal: str = "") -> tuple[Contract | None, Document]:
    """The contract (None when refused) and the document with its refusals."""
    document = read_yaml(path)
    if document.refusals and document.data is None:
        return None, document
    if not isinstance(document.data, dict):
        document.refuse((), "a contract is a mapping", f"write `rungs:`, and any of {', '.join(sorted(KEYS))}")
        return None, document
    fields = _translate(document.data, (), KEYS, document)
    if isinstance(fields.get("rungs"), list):
        fields["rungs"] = [_rung(rung, index, document) for index, rung in enumerate(fields["rungs"])]
    if "secrets" in fields:
        fields["secrets"] = _secrets(fields["secrets"], document)
    if fields.get("protected") == AUTO:
        fields["protected"] = [AUTO]
    elif fields.get("protected") == []:
        document.refuse(
            ("protected",), "`protected` is an empty list", 'leave it out: `auto` holds; `["!*"]` opens all'
        )
    if goal:
        fields["goal"] = goal
    return _compile(fields, document), document


def _rung(value: Any, index: int, document: Document) -> Any:
    return _translate(value, ("rungs", index), RUNG_KEYS, document) if isinstance(value, dict) else value


def _secrets(value: Any, document: Document) -> list[Any]:
    """The secrets of the file, each refused by its name; what stands there is never shown: it may be a value."""
    if not isinstance(value, dict):
        document.refuse(("secrets",), "`secrets` is no mapping", f"write {KEYS['secrets']}")
        return []
    found = []
    for name, source in value.items():
        whole = {"from": source} if isinstance(source, str) else source
        known = whole if isinstance(whole, dict) and whole.keys() <= {"from", "to"} else {}
        fields = {"name": name, "source": known.get("from"), **({"to": known["to"]} if "to" in known else {})}
        try:
            found.append(Secret.model_validate(fields))
        except ValidationError as error:
            document.refuse(("secrets", name), f"secret `{name}`: {_fault(error)}", _REFERENCE)
    return found


def _fault(error: ValidationError) -> str:
    (where, *_), said = error.errors()[0]["loc"], error.errors()[0]["msg"]
    if where == "name":
        return said.removeprefix("Value error, ").lower() if "not free" in said else "that is no name of a variable"
    return "`to` is not a list of agent and setup" if where == "to" else "it is no reference"


def _translate(values: dict[str, Any], place: Place, keys: dict[str, str], document: Document) -> dict[str, Any]:
    """Known keys under the model's names, durations as seconds; the rest refused."""
    fields: dict[str, Any] = {}
    for key, value in values.items():
        if key not in keys:
            document.refuse((*place, key), f"unknown key `{key}`", offer(key, keys))
            document.refused.add((*place, nearest(key, keys)))
        elif value is None:
            document.refuse((*place, key), f"`{key}` is empty", f"write {keys[key]}, or leave the key out")
        else:
            fields[_FIELDS.get(key, key)] = _seconds(value, (*place, key), document) if key in _FIELDS else value
    return fields


def _seconds(value: Any, place: Place, document: Document) -> Any:
    try:
        return parse_duration(str(value))
    except ValueError as error:
        document.refuse(place, str(error))
        return 1.0


def _compile(fields: dict[str, Any], document: Document) -> Contract | None:
    try:
        contract = Contract.model_validate(fields)
    except ValidationError as error:
        places = {detail["loc"] for detail in error.errors()}
        for detail in error.errors():
            if any(_inside(other, detail["loc"]) for other in places):
                continue  # a fault of the list because of a fault in the list
            place = tuple(_KEY_OF.get(str(part), part) for part in detail["loc"])
            message, mend = _explain(place, detail["type"], detail["msg"])
            if not any(place[: len(known)] == known for known in document.refused):
                document.refuse(place, message, mend)
        return None
    return None if document.refusals else contract


def _inside(inner: Place, outer: Place) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _explain(place: Place, kind: str, message: str) -> tuple[str, str]:
    """The refusal and its mend for one fault that the model found."""
    key = str(next((part for part in reversed(place) if isinstance(part, str)), ""))
    wanted = (RUNG_KEYS if len(place) > 2 and place[0] == "rungs" else KEYS).get(key, "")
    rung = f"rung {int(place[1]) + 1}" if len(place) > 1 and place[0] == "rungs" else ""
    item = f"item {int(place[1]) + 1} of " if len(place) > 1 and not rung and isinstance(place[1], int) else ""
    named = f"{rung}: `{key}`" if rung and len(place) > 2 else rung or f"{item}`{key}`"
    if not place:
        return message.removeprefix("Value error, "), "give every rung its own name"
    if kind == "missing":
        return f"{named} is missing", f"write `{key}:` {wanted}"
    if kind in {"too_short", "string_too_short"}:
        return f"{named} is empty", f"write {wanted}"
    return f"{named}: {message.removeprefix('Value error, ').removeprefix('Input ').lower()}", f"write {wanted}"
