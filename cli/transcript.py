"""What an agent said to lines for people: its text as it is, tools, edits, waits, cost so far. Pure.

No control character of the agent's is in a line, and none is wider than it may be: text is wrapped, the rest is cut.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

from ..activities.agents import said as words
from ..activities.agents.reading import Reading
from ..activities.excerpts import clean
from ..workflows.model.outcome import Outcome, OutcomeKind
from ..workflows.model.view import UsageView
from .durations import show_duration
from .render import cost, cut
from .talk import plural

SHELLS = frozenset(
    {"bash", "shell", "sh", "command_execution", "exec_command", "execute_command", "run_command", "run_shell_command"}
)
"""What agents call their shell: its calls are shown as a prompt with the command."""

EDITORS = frozenset({"edit", "write", "multiedit", "edit_file", "write_file", "replace", "apply_patch", "file_change"})
"""What they call the tools that change a file: what `Edited` tells once more is not shown again."""

LONGEST = 1000
"""Characters of a line that is no text of the model's, also where nothing is cut to a terminal."""

MOST_KINDS = 50
"""Kinds of unknown events that are counted by name."""

_PIECE = 4096
_WRAPPER = re.compile(r"(?:/\S*/)?(?:ba|z|da)?sh -l?c ")


class Transcript:
    """One launch of an agent as lines; it remembers, so each launch has its own.

    Attributes:
        unknown: how often there was an event of each kind that is not known.
    """

    def __init__(self, *, width: int = 0, tree: str = "") -> None:
        """Lines at most `width` characters wide (0: as they are), paths in the working copy `tree` as seen from it."""
        self.unknown: Counter[str] = Counter()
        self._width = width
        self._tree = tree and f"{tree}/"
        self._reading = Reading()
        self._last = ""
        self._facts: dict[str, str] = {}
        self._announced: set[str] = set()
        self._cost = ""
        self._moved = True
        self._closing = ""
        self._over = False

    def lines(self, said: Iterable[words.Said]) -> Iterator[str]:
        """The lines for what one event said; the cost so far comes last, where anything came since it was told."""
        for one in said:
            self._reading.take((one,))
            for line in self._text(one) if isinstance(one, words.Text) else self._others(one):
                self._moved = True
                yield line
        used = self._used()
        if used != self._cost and self._moved and not self._over:
            self._cost, self._moved = used, False
            yield self._fit(f"so far {used}")

    def close(self, stopped: Outcome | None = None) -> Iterator[str]:
        """How the stream ended, where the agent did not say it: stopped at a limit by `orch`, or broken off."""
        if stopped is not None:
            yield self._fit(_because("stopped", stopped.kind, stopped.detail))
        elif not self._over and self._reading.error is None:
            yield self._fit("the stream ends here, without a last word of the agent")

    def _fit(self, line: str) -> str:
        return cut(line[:LONGEST], self._width)

    def _text(self, said: words.Text) -> Iterator[str]:
        text = plain(said.text).strip("\n")
        if not text.strip() or (said.final and text == self._last):
            return
        self._last = text
        for line in text.split("\n"):
            yield from wrapped(line, self._width)

    def _others(self, said: words.Said) -> Iterator[str]:
        if line := self._line(said):
            yield self._fit(line)

    def _line(self, said: words.Said) -> str:  # noqa: PLR0911 - one answer per word of the vocabulary
        match said:
            case words.Began():
                return self._began(said)
            case words.Tool():
                return self._tool(said)
            case words.Edited():
                return self._edited(self._short(said.path))
            case words.ToolEnded(ok=False):
                return f"  failed: {last_line(said.output) or 'no word why'}"
            case words.Retrying():
                waits = "tries again" if said.after_s is None else f"waits {show_duration(said.after_s)}"
                return _because(waits, said.kind, said.detail)
            case words.Denied():
                return f"denied: {one_line(said.tool)}"
            case words.Failed():
                return self._once(_because("failed", said.kind, said.detail))
            case words.Ended():
                return self._once(self._ended(said))
            case words.Unknown() if said.kind in self.unknown or len(self.unknown) < MOST_KINDS:
                self.unknown[said.kind] += 1
        return ""

    def _began(self, said: words.Began) -> str:
        facts = {"model": said.model, "version": said.version, "session": said.session}
        new = {name: one_line(fact) for name, fact in facts.items() if fact and fact != self._facts.get(name)}
        first = "" if self._facts else "began: "
        self._facts.update({name: facts[name] for name in new})
        return first + ", ".join(f"{name} {fact}" for name, fact in new.items()) if new else ""

    def _tool(self, said: words.Tool) -> str:
        name = one_line(said.name)
        if name.casefold() in SHELLS:
            return f"$ {self._short(_unwrapped(said.detail))}"
        if name.casefold() in EDITORS and said.detail:
            paths = self._short(said.detail)
            self._announced.update(paths.split(", "))
            return f"edit {paths}"
        return f"{name} {self._short(said.detail)}".rstrip()

    def _edited(self, path: str) -> str:
        if path in self._announced:
            self._announced.remove(path)
            return ""
        return f"edit {path}"

    def _short(self, text: str) -> str:
        """The first line, how many follow, and paths of the working copy as seen from it."""
        lines = [line for line in plain(text[:_PIECE]).split("\n") if line.strip()] or [""]
        more = f" … (+{plural(len(lines) - 1, 'line')})" if len(lines) > 1 else ""
        first = one_line(lines[0])
        return (first.replace(self._tree, "") if self._tree else first) + more

    def _used(self) -> str:
        usage = self._reading.usage
        if usage.tokens is None and usage.usd is None:
            return ""
        amount = cost(UsageView(tokens=usage.tokens, usd=usage.usd))
        return f"{amount} in this session" if self._reading.session_used else amount

    def _ended(self, said: words.Ended) -> str:
        self._over = True
        turns = plural(self._reading.turns, "turn") if self._reading.turns else ""
        stop = one_line(said.stop)
        return " · ".join(filter(None, (f"ended: {stop}" if stop else "ended", turns, self._used())))

    def _once(self, line: str) -> str:
        """The line; nothing when it is the closing line again."""
        line, self._closing = "" if line == self._closing else line, line
        return line


def plain(text: str) -> str:
    """Text without escape sequences and control characters."""
    if text.replace("\n", "").isprintable():
        return text
    return clean(text.encode("utf-8", "replace"))


def one_line(text: str) -> str:
    """Plain text on one line, at most `LONGEST` characters of it."""
    return " ".join(plain(text[:LONGEST]).split())


def last_line(text: str) -> str:
    """The last line that is not blank."""
    lines = plain(text[-LONGEST:]).split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def wrapped(line: str, width: int) -> Iterator[str]:
    """The line in pieces of at most `width` characters, broken between words; whole when `width` is 0."""
    if not width or (len(line) <= width and "\t" not in line):
        yield line
        return
    for start in range(0, len(line), _PIECE):  # a line of megabytes would be as many words in memory
        yield from textwrap.wrap(line[start : start + _PIECE], width)


def _unwrapped(command: str) -> str:
    """The line within `bash -lc '…'`, which some agents put round every command."""
    if not _WRAPPER.match(command):
        return command
    with suppress(ValueError):
        words = shlex.split(command)
        return words[2] if len(words) == 3 else command
    return command


def _because(what: str, kind: OutcomeKind, detail: str) -> str:
    why = kind.value.replace("_", " ")
    return f"{what}: {why}" + (f": {one_line(detail)}" if detail else "")
