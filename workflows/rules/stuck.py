"""Stuck: a run that gets nowhere is ended with the reason, before it spends what is left."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..model.progress import IterationFacts
from ..model.reason import Datum, Reason, RunReason
from ..model.verdict import Excerpt, Verdict

CRASHES = 2
"""Iterations in a row in which every agent crashed."""
UNEVALUABLE = 2
"""Iterations in a row in which nothing could be measured."""
TIMEOUTS = 2
"""Iterations in a row in which every agent timed out and nothing changed."""
REPEATS = 3
"""Iterations in a row that end with the same failure."""
PERIODS = (2, 3, 4)
"""Lengths of a cycle of head trees."""

_EXCERPT = 200

_INVISIBLE = (
    re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"),  # operating system commands: titles, links
    re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]"),
    re.compile(r"\x1b[ -/]*[0-~]"),
    re.compile(r"[\x00-\x08\x0e-\x1b\x7f]"),
)

_DAY, _CLOCK = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?"
_VOLATILE = tuple(
    (re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])", re.IGNORECASE), placeholder)
    for pattern, placeholder in (
        (rf"{_DAY}(?:[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?)?", "<time>"),
        (r"\d{1,2}:\d\d:\d\d(?:[.,]\d+)?", "<time>"),
        (r"0x[0-9a-f]+", "<address>"),
        (r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<hex>"),
        (r"(?=[0-9]*[a-f])[0-9a-f]{7,}", "<hex>"),
        (r"i\d+-c\d+-b\d+", "<attempt>"),
        (r"==\d+==", "==<pid>=="),
        (r"(p?pid)\W{1,3}\d+", r"\1 <pid>"),
        (r"(seed)\W{1,3}\d+", r"\1 <seed>"),
        (r"(port)\W{1,3}\d+", r"\1 <port>"),
        (r"(localhost|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:]*\]):\d{1,5}", r"\1:<port>"),
        (r"(?:\d+\s?h\s?)?\d+\s?m(?:in)?\s?\d+(?:\.\d+)?\s?s", "<duration>"),
        (r"\d+(?:\.\d+)?\s?(?:ns|[uµμ]s|ms|s|secs?|seconds?|mins?|minutes?|hours?)", "<duration>"),
    )
)
_TEMPORARY = re.compile(
    r"(?<![\w./~-])(?:/private)?(?:/var/tmp|/var/folders|/tmp|/dev/shm)/[^\s'\"`:,;()<>\[\]{}]+"
    r"|[a-z]:\\[^\s'\"`:,;()<>]*\\temp\\[^\s'\"`:,;()<>]+",
    re.IGNORECASE,
)


def stuck(history: Sequence[IterationFacts]) -> Reason[RunReason] | None:
    """Why the run gets nowhere, or None; `history` holds every finished iteration, oldest first."""
    rules = (_crashed, _unevaluable, _timed_out, _no_diff, _oscillating, _repeating)
    return next((reason for rule in rules if (reason := rule(history))), None) if history else None


def normalize(text: str, roots: Sequence[str] = ()) -> str:
    """Replace what differs between two runs of the same failure by placeholders; plain counts are kept.

    Args:
        text: what a check printed.
        roots: absolute paths of the folders it ran in.
    """
    # A placeholder may end the word that hid another match, so this goes on until nothing changes; each change
    # takes away digits, slashes or control characters, of which no placeholder has any.
    while (replaced := _replaced(text, roots)) != text:
        text = replaced
    return text


def _replaced(text: str, roots: Sequence[str]) -> str:
    for pattern in _INVISIBLE:
        text = pattern.sub("", text)
    for root in sorted((root.rstrip("/") for root in roots if root.startswith("/")), key=len, reverse=True):
        text = re.sub(rf"{re.escape(root)}(?![\w.-])", "<root>", text) if root else text
    text = _TEMPORARY.sub("<temporary>", text)
    for volatile, placeholder in _VOLATILE:
        text = volatile.sub(placeholder, text)
    return " ".join(text.split())


def failure_text(verdict: Verdict | None) -> str:
    """What a tree's failing rungs said, for `IterationFacts`; empty when all that ran passed."""
    failing = verdict.failing if verdict else ()
    return "\n".join(f"{rung.name}: {rung.exit}\n{_whole(rung.stdout)}\n{_whole(rung.stderr)}" for rung in failing)


def _whole(excerpt: Excerpt) -> str:
    """An excerpt without the lines its limits cut: where that is varies with the length of a duration."""
    if not excerpt.tail:
        return excerpt.head
    return "\n".join((excerpt.head.rpartition("\n")[0], excerpt.tail.partition("\n")[2]))


def _crashed(history: Sequence[IterationFacts]) -> Reason[RunReason] | None:
    if _streak(history, lambda facts: facts.all_crashed) < CRASHES:
        return None
    return _reason(RunReason.STUCK_CRASHED, times=CRASHES)


def _unevaluable(history: Sequence[IterationFacts]) -> Reason[RunReason] | None:
    if _streak(history, lambda facts: facts.all_unevaluable) < UNEVALUABLE:
        return None
    return _reason(RunReason.STUCK_UNEVALUABLE, times=UNEVALUABLE)


def _timed_out(history: Sequence[IterationFacts]) -> Reason[RunReason] | None:
    if _streak(history, lambda facts: facts.all_timed_out and facts.still) < TIMEOUTS:
        return None
    return _reason(RunReason.STUCK_TIMEOUT, times=TIMEOUTS)


def _no_diff(history: Sequence[IterationFacts]) -> Reason[RunReason] | None:
    last = history[-1]
    cut_short = last.all_crashed or last.all_timed_out or last.all_cut_short
    # Only the first veto in a row excuses: a reviewer rewords, and every new wording would excuse once more.
    fresh_veto = last.vetoed and not (len(history) > 1 and history[-2].vetoed)
    if not last.still or cut_short or fresh_veto:
        return None
    return _reason(RunReason.STUCK_NO_DIFF, iteration=last.ordinal)


def _oscillating(history: Sequence[IterationFacts]) -> Reason[RunReason] | None:
    trees = [facts.tree for facts in history]
    period = next((p for p in PERIODS if _cycles(trees, p)), None)
    return _reason(RunReason.STUCK_OSCILLATION, period=period) if period else None


def _cycles(trees: Sequence[str], period: int) -> bool:
    block = trees[-period:]
    return len(set(block)) > 1 and trees[-2 * period : -period] == block


def _repeating(history: Sequence[IterationFacts]) -> Reason[RunReason] | None:
    failure = normalize(history[-1].failure_text)
    if not failure or _streak(history, lambda facts: normalize(facts.failure_text) == failure) < REPEATS:
        return None
    return _reason(RunReason.STUCK_REPEAT, times=REPEATS, failure=failure[:_EXCERPT])


def _streak(history: Sequence[IterationFacts], holds: Callable[[IterationFacts], bool]) -> int:
    """How many of the last iterations in a row it holds for."""
    return next((n for n, facts in enumerate(reversed(history)) if not holds(facts)), len(history))


def _reason(code: RunReason, **data: Datum) -> Reason[RunReason]:
    return Reason(code=code, data=data)
