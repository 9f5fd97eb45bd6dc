"""YAML with line numbers: plain data, the line of every value, and refusals instead of exceptions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..workflows.errors import RefusedError

MAX_BYTES = 1 << 20
"""A larger file is no contract."""

_SCALARS = yaml.SafeLoader("")

MAX_DEPTH = 20
"""No contract nests deeper."""

Place = tuple[str | int, ...]
"""Where a value stands: keys and indexes from the root."""


@dataclass(frozen=True, order=True)
class Refusal:
    """One thing a file must not say, and the mend."""

    line: int
    message: str
    mend: str = ""


@dataclass
class Document:
    """A parsed YAML file.

    Attributes:
        name: the file, as it is named in messages.
        data: its content as plain data; None when it could not be parsed.
        lines: the line of each value, from 1.
        refusals: what is wrong with it so far.
        warnings: what it had better not say.
        refused: where those refusals stand, so that one fault is told once.
        seen: the values read so far, by the identity of their nodes.
    """

    name: str
    data: Any = None
    lines: dict[Place, int] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    warnings: list[Refusal] = field(default_factory=list)
    refused: set[Place] = field(default_factory=set)
    seen: dict[int, Any] = field(default_factory=dict)

    def line(self, place: Place) -> int:
        """The line of a value, or of the nearest value round it."""
        while place not in self.lines and place:
            place = place[:-1]
        return self.lines.get(place, 1)

    def refuse(self, place: Place, message: str, mend: str = "") -> None:
        """Note a refusal at a value."""
        self.refused.add(place)
        self.refusals.append(Refusal(self.line(place), message, mend))

    def warn(self, place: Place, message: str, mend: str = "") -> None:
        """Note a warning at a value."""
        self.warnings.append(Refusal(self.line(place), message, mend))

    def said(self, told: list[Refusal]) -> list[str]:
        """Refusals or warnings in the order of the file, a line each: `FILE:LINE: what is wrong (the mend)`."""
        return [f"{self.name}:{r.line}: {r.message}" + (f" ({r.mend})" if r.mend else "") for r in sorted(set(told))]

    def error(self) -> RefusedError:
        """All refusals as one error."""
        lines = self.said(self.refusals)
        return RefusedError("\n".join(lines), hint=f"`orch check {self.name}` lists every refusal of the file")


def read_yaml(path: Path) -> Document:
    """Read a file; a missing or unreadable one is a RefusedError, bad YAML a refusal in the document."""
    document = Document(str(path))
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise RefusedError(
            f"{path}: {(error.strerror or str(error)).lower()}", hint="name a readable YAML file"
        ) from None
    if len(raw) > MAX_BYTES:
        raise RefusedError(f"{path}: {len(raw):,} bytes are no contract", hint="name the YAML file itself")
    try:
        parse_yaml(raw.decode(), document)
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        document.refusals.append(Refusal(line, f"byte {raw[error.start]:#04x} is not UTF-8", "save the file as UTF-8"))
    return document


def parse_yaml(text: str, document: Document) -> None:
    """Parse `text` into the document."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        document.refusals.append(Refusal(line, "a control character is not valid YAML", "remove it"))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(part for part in (error.problem, error.context) if part)
        document.refusals.append(
            Refusal(mark.line + 1 if mark else 1, f"not valid YAML: {said}", "see the column before")
        )
    else:
        if node is not None:
            document.data = _plain(node, (), document, ())


def _plain(node: yaml.Node, place: Place, document: Document, above: tuple[int, ...]) -> Any:
    document.lines.setdefault(place, node.start_mark.line + 1)  # a value's line is that of its key
    if id(node) in above or len(above) > MAX_DEPTH:
        document.refuse(place, "the value holds itself or is nested too deep", "write it out flat")
        return None
    if id(node) not in document.seen:  # an alias is read once, or a few lines could mean billions of values
        document.seen[id(node)] = _read(node, place, document, (*above, id(node)))
    return document.seen[id(node)]


def _read(node: yaml.Node, place: Place, document: Document, inside: tuple[int, ...]) -> Any:
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, place, document, inside)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*place, index), document, inside) for index, item in enumerate(node.value)]
    return _scalar(node, place, document)


def _mapping(node: yaml.MappingNode, place: Place, document: Document, inside: tuple[int, ...]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "(not a word)"
        document.lines.setdefault((*place, key), key_node.start_mark.line + 1)
        if key in values:
            first = document.lines[(*place, key)]
            twice = Refusal(
                key_node.start_mark.line + 1, f"`{key}` stands twice, first on line {first}", "keep one of them"
            )
            document.refusals.append(twice)
            continue
        values[key] = _plain(value_node, (*place, key), document, inside)
    return values


def _scalar(node: yaml.Node, place: Place, document: Document) -> Any:
    try:
        return _SCALARS.construct_object(node, deep=True)
    except (yaml.YAMLError, ValueError) as error:
        document.refuse(place, f"`{node.value}` cannot be read: {str(error).splitlines()[0]}", "put it in quotes")
        return None
