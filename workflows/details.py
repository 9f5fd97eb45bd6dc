"""A run as Markdown for the Web UI: a table of candidates that answers who won and why. Pure."""

from __future__ import annotations

import re

from .markdown import cell, code, short, table
from .model.reason import Reason
from .model.view import CandidateView, IterationView, RunView

MAX_CHARS = 12_000
"""Temporal takes details up to about 20,000 bytes; older iterations fall off first."""

COLUMNS = ("candidate", "agent", "status", "rungs", "changed", "cost", "reason")

_PATH = re.compile(r"(?<![^\s:='\"])(?:~|\.{1,2})?/(?:[^\s/'\";|&]+/)*([^\s/'\";|&]+)")
"""A path at the start of a word: its folders, and its last part."""


def details(view: RunView) -> str:
    """Render a run: status, reason, warnings, and the newest iterations that fit."""
    lines = [f"**{view.status}**" + (f": {reason_text(view.reason)}" if view.reason else "")]
    lines += [f"contract `{view.contract_digest[:12]}`, rungs: {', '.join(view.rungs)}"] if view.contract_digest else []
    if view.baseline_rungs_passed is not None:
        lines.append(f"baseline passes {view.baseline_rungs_passed} of {len(view.rungs)} rungs")
    lines += [f"warning: {cell(warning, 200)}" for warning in view.warnings]
    if view.promoted:
        branch, refused = view.promoted.branch, view.promoted.refused
        where = f"branch {branch}" if branch else view.promoted.mode.value
        lines.append(f"not promoted to {where}: {reason_text(refused)}" if refused else f"promoted to {where}")
    text = "\n\n".join(lines)
    for iteration in reversed(view.iterations):
        block = _iteration(iteration)
        if len(text) + len(block) > MAX_CHARS:
            return f"{text}\n\n(earlier iterations: `orch show {view.id}`)"
        text += f"\n\n{block}"
    return text


def reason_text(reason: Reason) -> str:  # type: ignore[type-arg]  # any code: only its text is used
    """A reason in a few words: its code, with the facts behind it."""
    facts = ", ".join(
        f"{name.replace('_', ' ')} {_datum(value)}" for name, value in reason.data.items() if value not in {None, ""}
    )
    words = reason.code.value.replace("_", " ")
    return f"{words} ({cell(facts, 300)})" if facts else words


def agent_label(spec: str, limit: int = 40) -> str:
    """An agent's spec as a table shows it: one line, paths cut to their last part, at most `limit` characters."""
    return short(_PATH.sub(r"\1", spec), limit)


def _iteration(iteration: IterationView) -> str:
    title = f"### Iteration {iteration.ordinal}"
    if iteration.winner is not None:
        who = f"candidate {iteration.winner}" if iteration.winner else "the head stays"
        title += f": {who}, decided by {iteration.decided_by.replace('_', ' ')}"
    ranked = sorted(iteration.candidates, key=lambda candidate: (candidate.rank or 0, candidate.index))
    rows = (_cells(candidate, iteration.winner) for candidate in ranked)
    keys = [
        f"{key}: {cell(text, 500)}" for key, text in (("gate", iteration.gate), ("review", iteration.review)) if text
    ]
    return "\n\n".join([title, table(COLUMNS, rows), *keys])


def _cells(candidate: CandidateView, winner: int | None) -> tuple[str, ...]:
    star = "★ " if candidate.index == winner else ""
    passed = "-" if candidate.rungs_passed is None else f"`{candidate.rungs_passed}/{candidate.rungs_total}`"
    changed = {None: "-", True: "yes", False: "no"}[candidate.changed]
    facts = (candidate.status.value, passed, changed, _cost(candidate), cell(_why(candidate), 200))
    return (f"{star}{candidate.index}", code(agent_label(candidate.agent), 60), *facts)


def _why(candidate: CandidateView) -> str:
    why = reason_text(candidate.reason) if candidate.reason else candidate.failure
    told = candidate.outcome.replace("_", " ") if candidate.outcome not in {"", "done", "no_change"} else ""
    count = len(candidate.restored)
    restored = f"{count} protected path{'' if count == 1 else 's'} restored" if count else ""
    return "; ".join(part for part in (why, told, restored, *candidate.replaced) if part)


def _cost(candidate: CandidateView) -> str:
    usage = candidate.usage
    parts = [f"${usage.usd:.2f}"] if usage.usd is not None else []
    parts += [f"{usage.tokens} tokens"] if usage.tokens is not None else []
    return ", ".join([*parts, f"{usage.wall_s:.0f} s"])


def _datum(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
