"""Tables of a YAML file: each key with its reader, so that every fault is refused at its line with the mend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..workflows.model.base import Value
from .nearest import nearest, offer
from .yaml_lines import Document, Place

V = TypeVar("V", bound=Value)

ITEMS = {"lanes": "lane", "entries": "entry", "devices": "device set"}
"""What an item of a list of tables is called."""


@dataclass(frozen=True)
class At:
    """A place in a document."""

    document: Document
    place: Place = ()

    def __getitem__(self, part: str | int) -> At:
        return At(self.document, (*self.place, part))

    @property
    def sound(self) -> bool:
        """Whether nothing is refused here or below."""
        return not any(place[: len(self.place)] == self.place for place in self.document.refused)

    @property
    def name(self) -> str:
        """What stands here, in words: `lane 2: `budget.wall``, `item 3 of `protected``."""
        told, keys, item = "", list[str](), ""
        for part in self.place:
            if isinstance(part, str):
                keys.append(part)
            elif keys[-1] in ITEMS:
                told, keys = f"{told}{ITEMS[keys.pop()]} {part + 1}: ", []
            else:
                item = f"item {part + 1} of "
        return f"{told}{item}`{'.'.join(keys)}`" if keys else told.removesuffix(": ")

    def refuse(self, fault: str, mend: str = "") -> None:
        """Refuse what stands here: its name and the fault."""
        self.document.refuse(self.place, f"{self.name} {fault}", mend)


Reader = Callable[[At, Any], Any]
"""Reads a value, or refuses it at its place and returns whatever."""


@dataclass(frozen=True)
class Key:
    """A key of a table.

    Attributes:
        read: its reader.
        wants: what is to be written there.
        field: its name in the model, where that is another one.
        needed: whether it must be there.
    """

    read: Reader
    wants: str
    field: str = ""
    needed: bool = False


Keys = Mapping[str, Key]


def table(at: At, value: Any, keys: Keys) -> dict[str, Any]:
    """The values of a table by the names of the model's fields; one that is refused is whatever its reader returned."""
    if not isinstance(value, dict):
        at.refuse("is no mapping", f"write {', '.join(f'`{key}:`' for key in keys)}")
        return {}
    fields: dict[str, Any] = {}
    for key, given in value.items():
        if key not in keys:
            at.document.refuse((*at.place, key), f"{_of(at)}unknown key `{key}`", offer(key, keys))
            at.document.refused.add((*at.place, nearest(key, keys)))
        elif given is None:
            at[key].refuse("is empty", f"write {keys[key].wants}, or leave the key out")
        else:
            fields[keys[key].field or key] = keys[key].read(at[key], given)
    for key, what in keys.items():
        if what.needed and key not in value and at[key].sound:
            at.document.refuse((*at.place, key), f"{at[key].name} is missing", f"write `{key}:` {what.wants}")
    return fields


def build(at: At, model: type[V], fields: Mapping[str, Any], keys: Keys) -> V | None:
    """The value that the fields make; None when anything here or below is refused."""
    try:
        made = model.model_validate(dict(fields))
    except ValidationError as error:
        for detail in error.errors():
            _refuse(at, detail["loc"], _told(detail), keys)
        return None
    return made if at.sound else None


def listed(read: Reader) -> Reader:
    """A reader of lists, whose items `read` reads; a refused one is whatever that returns, so that numbers hold."""

    def read_list(at: At, value: Any) -> list[Any]:
        if not isinstance(value, list):
            at.refuse("is no list", "write `[…]`, or an item a line after a dash")
            return []
        if not value:
            at.refuse("is an empty list", "write an item, or leave the key out")
        return [read(at[index], item) for index, item in enumerate(value)]

    return read_list


def _refuse(at: At, where: tuple[str | int, ...], message: str, keys: Keys) -> None:
    """Refuse what the model refused, unless that is told already: at its place, above or below."""
    said = message.removeprefix("Value error, ").removeprefix("Input ")
    key = next((key for key, what in keys.items() if where and (what.field or key) == where[0]), "")
    place = at[key] if key else at
    for part in where[1:]:
        place = place[part] if isinstance(part, int) else place
    if any(_along(place.place, known) for known in at.document.refused):
        return
    if key:
        place.refuse(said[:1].lower() + said[1:], f"write {keys[key].wants}")
    else:
        fault, _, mend = said.partition(": ")
        at.document.refuse(at.place, f"{_of(at)}{fault}", mend)


def _told(detail: ErrorDetails) -> str:
    """What the model refused; of a list with too many items without the model's own words for it."""
    if detail["type"] != "too_long":
        return detail["msg"]
    limits = detail.get("ctx", {})
    return f"has {limits.get('actual_length')} items, of {limits.get('max_length')} at most"


def _along(one: Place, other: Place) -> bool:
    """Whether one place is the other, or lies in it."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _of(at: At) -> str:
    return f"{at.name}: " if at.place else ""
