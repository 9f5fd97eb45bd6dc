"""What agents say, in one vocabulary: each adapter translates its own events into these."""

from __future__ import annotations

from dataclasses import dataclass

from ...workflows.model.outcome import OutcomeKind
from ...workflows.model.usage import Usage


@dataclass(frozen=True)
class Began:
    """The agent named its session and, perhaps, its model and version."""

    session: str = ""
    model: str = ""
    version: str = ""


@dataclass(frozen=True)
class Text:
    """The model spoke; `final` marks text that the agent presents as its closing answer."""

    text: str
    final: bool = False


@dataclass(frozen=True)
class Tool:
    """The model used a tool: its name, and the command, path or arguments in short."""

    name: str
    detail: str = ""


@dataclass(frozen=True)
class Edited:
    """A file was written or changed; `path` as the agent gave it."""

    path: str


@dataclass(frozen=True)
class ToolEnded:
    """A tool came back."""

    ok: bool
    output: str = ""


@dataclass(frozen=True)
class Turn:
    """The model was asked once more."""


@dataclass(frozen=True)
class Used:
    """What was used since the last time."""

    usage: Usage


@dataclass(frozen=True)
class Total:
    """What this run used altogether, by the agent's own reckoning: it replaces the sum of `Used`."""

    usage: Usage


@dataclass(frozen=True)
class SessionTotal:
    """What the session used altogether, runs before this one included; `Reading` takes those off."""

    usage: Usage


@dataclass(frozen=True)
class Recorded:
    """What the session used altogether, by its record on disk: it counts when the stream told no total."""

    usage: Usage


@dataclass(frozen=True)
class Retrying:
    """The agent waits and tries again by itself: no failure yet."""

    kind: OutcomeKind
    detail: str = ""
    after_s: float | None = None


@dataclass(frozen=True)
class Denied:
    """A tool was not allowed."""

    tool: str


@dataclass(frozen=True)
class Failed:
    """The agent reports that its run failed, and as what."""

    kind: OutcomeKind
    detail: str = ""
    retry_at: float | None = None


@dataclass(frozen=True)
class Complained:
    """Words beside the stream, such as the end of stderr: they explain an end without a last word, and only that."""

    kind: OutcomeKind
    detail: str = ""


@dataclass(frozen=True)
class Ended:
    """The agent's last word: without it, it was cut off."""

    stop: str = ""


@dataclass(frozen=True)
class Unknown:
    """An event of a kind never seen before."""

    kind: str


Said = (
    Began
    | Text
    | Tool
    | Edited
    | ToolEnded
    | Turn
    | Used
    | Total
    | SessionTotal
    | Recorded
    | Retrying
    | Denied
    | Failed
    | Complained
    | Ended
    | Unknown
)
