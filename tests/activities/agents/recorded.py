"""Recorded streams of real agents: read one through its adapter and judge it, as a run would."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from orch.activities.agents.adapter import Adapter, Launch
from orch.activities.agents.reading import Reading
from orch.activities.agents.spec import Spec
from orch.activities.agents.stream import EventStream
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.outcome import Outcome, OutcomeKind
from orch.workflows.model.usage import Usage
from orch.workflows.rules.outcome import judge

STREAMS = Path(__file__).with_name("streams")
"""`NAME.jsonl` holds what an agent printed, `NAME.stderr` what it printed there; an empty one is left out."""

OK = Exit(kind=ExitKind.OK)
NOTHING = Usage()


class Row(NamedTuple):
    """What a recorded stream comes to.

    Attributes:
        stream: its base name.
        ended: how the process ended.
        kind: the outcome.
        tokens: input that was not cached, cached input, output.
        usd: US dollars.
        session: the first eight characters of the session's id.
        turns: how often the model was asked, as far as that is said.
    """

    stream: str
    ended: Exit
    kind: OutcomeKind
    tokens: tuple[int | None, int | None, int | None]
    usd: float | None
    session: str
    turns: int | None


def failed(number: int) -> Exit:
    """The agent ended with this exit status."""
    return Exit(kind=ExitKind.FAILED, number=number)


def signalled(number: int) -> Exit:
    """The agent died of a signal that somebody else sent."""
    return Exit(kind=ExitKind.SIGNALLED, number=number)


def names(prefix: str) -> list[str]:
    """The base names of the recorded streams that begin like this."""
    return sorted({path.stem for path in STREAMS.glob(f"{prefix}*")})


def read(
    adapter: Adapter, stream: str, *, ended: Exit = OK, chunk: int | None = None, before: Usage = NOTHING
) -> tuple[Outcome, Reading]:
    """Read a stream, cut into chunks of so many bytes, and its stderr; judge it together with the exit."""
    data, stderr = _bytes(f"{stream}.jsonl"), _bytes(f"{stream}.stderr")
    if not data and not stderr:
        raise FileNotFoundError(stream)
    return read_bytes(adapter, _cut(data, chunk), stderr, ended=ended, before=before)


def told(adapter: Adapter, row: Row) -> Row:
    """The row as the stream tells it."""
    outcome, reading = read(adapter, row.stream, ended=row.ended)
    usage = reading.usage
    return Row(
        row.stream,
        row.ended,
        outcome.kind,
        (usage.tokens_in, usage.tokens_cached, usage.tokens_out),
        None if usage.usd is None else round(usage.usd, 9),
        reading.session[:8],
        reading.turns,
    )


def read_bytes(
    adapter: Adapter, chunks: list[bytes], stderr: bytes = b"", *, ended: Exit = OK, before: Usage = NOTHING
) -> tuple[Outcome, Reading]:
    """The same for bytes at hand."""
    reading, stream, translator = Reading(before=before), EventStream(), adapter.translator()
    if translator is not None:
        for chunk in chunks:
            for event in stream.feed(chunk):
                reading.take(translator.read(event))
        for event in stream.close():
            reading.take(translator.read(event))
    reading.unknown += stream.unreadable
    reading.take(adapter.leftovers(launch(adapter), stderr.decode(errors="replace")))
    return judge(ended, reading.account() if translator is not None else None), reading


def launch(adapter: Adapter) -> Launch:
    """A launch whose folders do not exist."""
    nowhere = Path("/nonexistent")
    return Launch(Spec(adapter.name), nowhere / "home", nowhere / "private", nowhere / "tree", nowhere / "prompt.md")


def _cut(data: bytes, size: int | None) -> list[bytes]:
    return [data] if size is None else [data[start : start + size] for start in range(0, len(data), size)]


def _bytes(name: str) -> bytes:
    path = STREAMS / name
    return path.read_bytes() if path.exists() else b""
