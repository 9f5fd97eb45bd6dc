"""The fold of what an agent said into an account of its run: outcome facts, session, answer, usage."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...workflows.model.outcome import Account
from ...workflows.model.usage import Usage
from .said import (
    Began,
    Complained,
    Denied,
    Ended,
    Failed,
    Recorded,
    Retrying,
    Said,
    SessionTotal,
    Text,
    Tool,
    Total,
    Turn,
    Unknown,
    Used,
)

WORDS = 500
"""Characters kept of a failure's words."""

ANSWER = 256 << 10
"""Characters kept of the answer, from its end: a reviewer's verdict is its last line."""

_DENIALS = 20


@dataclass
class Reading:
    """What has been said so far; `take` folds in the next.

    Attributes:
        before: what the session had used before this run, for agents that report a session's totals.
        session: the agent's id of its conversation.
        model: the model it named.
        answer: its last text.
        error: the failure it reported, or None.
        trouble: what it was retrying when it was last heard of, or what it complained of: the reason if it was cut off.
        failures: how often in a row it failed in the same way, with nothing done in between.
        turns: how often the model was asked, as far as that is said.
        session_used: what the session used altogether, where the agent counts like that.
    """

    before: Usage = field(default_factory=Usage)
    session: str = ""
    model: str = ""
    answer: str = ""
    error: Failed | None = None
    trouble: Failed | None = None
    stop: str = ""
    final: bool = False
    turns: int | None = None
    failures: int = 0
    denials: list[str] = field(default_factory=list)
    unknown: int = 0
    session_used: Usage | None = None
    _sum: Usage = field(default_factory=Usage)
    _total: Usage | None = None

    def take(self, said: Iterable[Said]) -> None:
        """Fold in what was said, in order."""
        for one in said:
            if isinstance(one, Text | Tool | Turn):
                self.trouble = None
            if isinstance(one, Text | Tool):
                self.failures = 0
            self._take(one)

    def _take(self, said: Said) -> None:  # noqa: C901, PLR0912 - one arm per word of the vocabulary
        match said:
            case Began():
                self.session, self.model = said.session[:WORDS] or self.session, said.model or self.model
            case Text():
                self.answer = said.text[-ANSWER:] if said.text.strip() or said.final else self.answer
            case Turn():  # whatever it said before, it was not its last word
                self.turns = (self.turns or 0) + 1
                self.error, self.final, self.stop = None, False, ""
            case Used():
                self._sum = self._sum + said.usage
                self._total = self._total and self._total + said.usage
            case Total() | SessionTotal() | Recorded() if said.usage == Usage():
                pass  # it tells nothing, so what is known stays
            case Total():
                self._total = said.usage
            case SessionTotal():
                self.session_used, self._total = said.usage, since(said.usage, self.before)
            case Recorded():
                self.session_used = said.usage
                self._total = self._total or since(said.usage, self.before)
            case Denied() if len(self.denials) < _DENIALS:
                self.denials.append(said.tool[:WORDS])
            case Retrying():
                self.trouble = Failed(said.kind, said.detail)
            case Failed():
                self.error, self.failures = said, self.failures + 1
            case Complained():
                self.trouble = self.trouble or Failed(said.kind, said.detail)
            case Ended():
                self.final, self.stop = True, said.stop or self.stop
            case Unknown():
                self.unknown += 1
            case _:
                pass

    @property
    def usage(self) -> Usage:
        """What this run used so far: the agent's own total and the steps after it, else the sum of its steps."""
        return self._total or self._sum

    def account(self) -> Account:
        """The facts in the form that is recorded."""
        error = self.error or (None if self.final else self.trouble)
        return Account(
            final=self.final,
            answered=bool(self.answer.strip()),
            stop=self.stop[:100],
            error=error.kind if error else None,
            detail=error.detail[:WORDS] if error else "",
            retry_at=error.retry_at if error and math.isfinite(error.retry_at or 0.0) else None,
            turns=self.turns,
            denials=tuple(self.denials),
            unknown_events=self.unknown,
        )


def since(total: Usage, before: Usage) -> Usage:
    """What was used on top of `before`; a smaller total is a new count, so it is taken whole."""
    names = ("tokens_in", "tokens_out", "tokens_cached", "usd")
    pairs = {name: (getattr(total, name), getattr(before, name) or 0) for name in names}
    grown = all(now is None or now >= then for now, then in pairs.values())
    if not grown:
        return total
    return Usage.model_validate(
        {name: None if now is None else round(now - then, 9) for name, (now, then) in pairs.items()}
    )
