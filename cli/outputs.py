"""Files of output, read bit by bit while they grow: as they are, as plain text, or as an agent's transcript."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..activities.agents.following import stopped_for
from ..activities.agents.stream import EventStream
from ..activities.supervisor import END
from .talk import one_line, plural, say
from .transcript import Transcript, plain

if TYPE_CHECKING:
    from ..activities.agents.adapter import Translator

CHUNK = 1 << 16
"""Bytes read at once."""

LONGEST = 1 << 16
"""Characters of a begun line that are held back for the rest of it."""


class Form:
    """How a file's bytes are printed; this one as they are."""

    def feed(self, data: bytes) -> bytes:
        """What can be printed of the next bytes, a chunk of any size."""
        return data

    def end(self, *, over: bool) -> bytes:  # noqa: ARG002 - nothing is held back
        """What was held back; `over` when nothing more can come."""
        return b""

    def notes(self, *, debug: bool) -> Iterator[str]:  # noqa: ARG002 - nothing is left out
        """What is to be told of what was not printed."""
        return iter(())


class Plain(Form):
    """Text for a terminal: nothing in it moves the cursor or sets a title or a colour."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._begun = ""

    def feed(self, data: bytes) -> bytes:
        """The lines that are whole: in a begun one a sequence may be cut."""
        whole, newline, self._begun = (self._begun + self._decode(data)).rpartition("\n")
        if len(self._begun) > LONGEST:
            whole, newline, self._begun = f"{whole}{newline}{self._begun}", "", ""
        return (plain(whole) + newline).encode()

    def end(self, *, over: bool) -> bytes:  # noqa: ARG002 - a begun line is shown all the same
        """The begun line."""
        begun, self._begun = self._begun + self._decode(b"", True), ""  # noqa: FBT003 - it takes no keyword
        return plain(begun).encode()


class Told(Form):
    """An agent's event stream, as a transcript."""

    def __init__(self, job: Path, translator: Translator, transcript: Transcript) -> None:
        self._job = job
        self._translator = translator
        self._transcript = transcript
        self._stream = EventStream()

    def feed(self, data: bytes) -> bytes:
        """The lines of the events that are whole."""
        return self._told(self._stream.feed(data))

    def end(self, *, over: bool) -> bytes:
        """The lines of the last event, and how it ended."""
        told = self._told(self._stream.close())
        return told + _joined(self._transcript.close(stopped_for(self._job))) if over else told

    def notes(self, *, debug: bool) -> Iterator[str]:
        """Lines that are no events may be an error of the agent's; unknown events are for whoever mends adapters."""
        if unreadable := self._stream.unreadable:
            yield f"{plural(unreadable, 'line')} of it could not be read as events: --raw shows all"
        if debug and (unknown := self._transcript.unknown):
            kinds = ", ".join(f"{one_line(kind, 60)!r} {count}" for kind, count in unknown.most_common())
            yield f"{plural(unknown.total(), 'event')} of unknown kinds: {kinds}"

    def _told(self, events: Iterable[dict[str, object]]) -> bytes:
        return _joined(line for event in events for line in self._transcript.lines(self._translator.read(event)))


def _joined(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


@dataclass
class Output:
    """One file, and how far it was printed.

    Attributes:
        path: the file; it may come later.
        title: what it holds.
        form: how it is printed.
        read: bytes that were read.
        ended: whether its end was printed, too.
    """

    path: Path
    title: str
    form: Form = field(default_factory=Form)
    read: int = 0
    ended: bool = False


class Printer:
    """Prints outputs on stdout, with a title on stderr where another begins; an empty one has none."""

    def __init__(self, *, debug: bool = False) -> None:
        self._debug = debug
        self._title = ""

    def more(self, output: Output) -> bool:
        """Print the next chunk of an output; False when there is none now."""
        if not output.path.exists():
            return False
        with output.path.open("rb") as file:
            file.seek(output.read)
            data = file.read(CHUNK)
        output.read += len(data)
        self._print(output, output.form.feed(data))
        return bool(data)

    def end_if_over(self, output: Output) -> None:
        """Print the rest of an output whose job has ended."""
        if _over(output):
            self.end(output)

    def end(self, output: Output) -> None:
        """Print the rest of an output, once, and what is to be told of it."""
        if output.ended:
            return
        over = _over(output)
        while self.more(output):
            pass
        output.ended = True
        if output.read:
            self._print(output, output.form.end(over=over))
            for note in output.form.notes(debug=self._debug):
                say(f"({note})")

    def _print(self, output: Output, data: bytes) -> None:
        if not data:
            return
        if output.title != self._title:
            self._title = output.title
            say(f"--- {output.title}")
        click.echo(data, nl=False)


def _over(output: Output) -> bool:
    return (output.path.parent / END).exists()
