"""A path that two globs of a .gitignore would both match, found without any tree: a search over both at once. Pure.

Each glob is read as a small automaton over characters, and the product of both is searched breadth first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Chars:
    """The characters that a step takes: those in `some`, or all but those."""

    some: frozenset[str]
    negated: bool = False

    def __contains__(self, char: str) -> bool:
        return (char in self.some) != self.negated


_NAME = Chars(frozenset("/"), negated=True)
_ANY = Chars(frozenset(), negated=True)
_SLASH = Chars(frozenset("/"))
_USUAL = "xyzabcdefghijklmnopqrstuvw0123456789_"
"""What is tried where anything would do."""


@dataclass
class Automaton:
    """States by number, from 0; a step with no characters costs none.

    Attributes:
        steps: from each state, what it takes and where it leads.
        accepting: the states in which a path may end.
    """

    steps: list[list[tuple[Chars | None, int]]] = field(default_factory=lambda: [[]])
    accepting: set[int] = field(default_factory=set)

    @property
    def last(self) -> int:
        """The newest state."""
        return len(self.steps) - 1

    def add(self, chars: Chars | None) -> None:
        """A new state behind the newest one."""
        self.steps[-1].append((chars, len(self.steps)))
        self.steps.append([])

    def loop(self, chars: Chars) -> None:
        """The newest state may be left and come back to."""
        self.steps[-1].append((chars, self.last))

    def closure(self, state: int) -> Iterator[int]:
        """The state and all that it leads to for nothing."""
        yield state
        for chars, after in self.steps[state]:
            if chars is None:
                yield from self.closure(after)


def common_path(one: str, other: str) -> str | None:
    """The first path found that both globs match; None when there is none. Neither may begin with `!`.

    What ends like a file (`tok.py`) is taken for no folder's name: git would let it be one.
    """
    left, right = _automaton(one), _automaton(other)
    waiting = deque([(0, 0, "")])
    seen = {(0, 0)}
    while waiting:
        a, b, path = waiting.popleft()
        if not path.endswith("/") and _ends(left, a) and _ends(right, b):
            return path
        for taken, after_a in _steps(left, a):
            for also, after_b in _steps(right, b):
                char = _shared(taken, also)
                if char is not None and (after_a, after_b) not in seen:
                    seen.add((after_a, after_b))
                    waiting.append((after_a, after_b, path + char))
    return None


def _ends(automaton: Automaton, state: int) -> bool:
    return not automaton.accepting.isdisjoint(automaton.closure(state))


def _steps(automaton: Automaton, state: int) -> Iterator[tuple[Chars, int]]:
    for here in automaton.closure(state):
        yield from ((chars, after) for chars, after in automaton.steps[here] if chars is not None)


def _shared(one: Chars, other: Chars) -> str | None:
    plain = next((chars for chars in (one, other) if not chars.negated), None)
    tried = sorted(plain.some) if plain else [*_USUAL, "/"]
    return next((char for char in tried if char in one and char in other), None)


def _automaton(glob: str) -> Automaton:
    made = Automaton()
    parts = glob.strip("/").split("/")
    if "/" not in glob.rstrip("/") and parts[0] != "**":
        _folders(made)
    for index, part in enumerate(parts):
        if part == "**" and index == len(parts) - 1:
            made.add(_NAME)
            made.loop(_ANY)
        elif part == "**":
            _folders(made)
        else:
            _name(made, part)
            if index < len(parts) - 1:
                made.add(_SLASH)
    if not glob.endswith("/"):
        made.accepting.add(made.last)
    if glob.endswith("/") or "." not in parts[-1][1:]:  # a folder, and all that is in it
        made.add(_SLASH)
        made.add(_NAME)
        made.loop(_ANY)
        made.accepting.add(made.last)
    return made


def _folders(made: Automaton) -> None:
    """Any number of folders, with their slashes."""
    start = made.last
    made.add(_NAME)
    made.loop(_NAME)
    made.steps[made.last].append((_SLASH, start))
    made.steps[start].append((None, len(made.steps)))
    made.steps.append([])


def _name(made: Automaton, part: str) -> None:
    if part == "*":  # no name is empty
        made.add(_NAME)
        made.loop(_NAME)
        return
    at = 0
    while at < len(part):
        char = part[at]
        end = part.find("]", at + 2) if char == "[" else -1
        if char == "*":
            made.add(None)
            made.loop(_NAME)
        elif char == "?":
            made.add(_NAME)
        elif end > 0:
            made.add(_class(part[at + 1 : end]))
            at = end
        else:
            at += char == "\\" and at + 1 < len(part)
            made.add(Chars(frozenset(part[at])))
        at += 1


def _class(body: str) -> Chars:
    negated = body[0] in "!^"
    body = body[1:] if negated else body
    found = set[str]()
    while body:
        if len(body) > 2 and body[1] == "-":
            found |= {chr(code) for code in range(ord(body[0]), min(ord(body[2]), ord(body[0]) + 255) + 1)}
            body = body[3:]
        else:
            found.add(body[0])
            body = body[1:]
    return Chars(frozenset(found | {"/"} if negated else found - {"/"}), negated)
