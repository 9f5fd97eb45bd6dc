"""What a dialect is: requests in, documents, streams and errors out."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .conversation import Conversation
from .reply import NOTHING, Stop, Trouble, Usage
from .tools import Call

Document = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """A reply on its way: its actions are calls."""

    model: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    stop: Stop = Stop.DONE
    usage: Usage = NOTHING


class Dialect(Protocol):
    """A provider's way to say it; each is a module."""

    def read(self, body: Mapping[str, Any]) -> Conversation:
        """Return what a request holds."""
        ...

    def document(self, answer: Answer) -> Document:
        """Return the answer as one document."""
        ...

    def stream(self, document: Document) -> Iterator[str]:
        """Return the answer's document as frames of an event stream."""
        ...

    def error(self, trouble: Trouble) -> tuple[int, Document]:
        """Return the status and the body of what this provider answers instead."""
        ...


_numbers = itertools.count(1)


def new_id(prefix: str) -> str:
    """An id that nothing else has."""
    return f"{prefix}_{next(_numbers):024d}"


def frame(data: Document | str, event: str = "") -> str:
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data)
    return f"event: {event}\ndata: {text}\n\n" if event else f"data: {text}\n\n"
