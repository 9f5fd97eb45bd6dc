"""A run's view to lines of text: pure, plain, no meaning by colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..workflows.details import agent_label
from ..workflows.model.view import CandidateView, IterationView, PromotedView, RungView, RunView, UsageView
from .durations import show_duration
from .reasons import DECIDED_BY, next_step, outcome_words, sentence
from .talk import clean, one_line, plural

HEADINGS = ("rank", "candidate", "agent", "rungs", "paths", "cost", "time", "reason")
"""The columns of the table that answers who won and why."""


def run_lines(view: RunView, *, link: str = "") -> list[str]:
    """The whole run: head, one table per iteration, result, and one `next:` line."""
    lines = [*_head(view, link), ""]
    for iteration in view.iterations:
        lines += [*iteration_lines(iteration), ""]
    lines += _result(view)
    step = next_step(view)
    return [*lines, f"next: {step}"] if step else lines


def iteration_lines(iteration: IterationView, width: int = 0) -> list[str]:
    """One iteration: its candidates, the winner starred, and which key decided."""
    ranked = sorted(iteration.candidates, key=lambda candidate: (candidate.rank or 0, candidate.index))
    rows = [HEADINGS, *(_row(candidate, iteration.winner) for candidate in ranked)]
    return [
        f"iteration {iteration.ordinal}: {decision_words(iteration)}",
        *(cut(line, width) for line in columns(rows)),
    ]


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as aligned text; the last column is not padded."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def fitted(rows: Sequence[Sequence[str]], width: int, spare: Sequence[str], last: int) -> list[str]:
    """Rows as aligned text; columns by these headings go, the first one first, as long as the last one has no room.

    `width` is how wide the text may be, 0 keeps all columns; `last` is what the last column, its words, needs of it.
    """
    table = [tuple(row) for row in rows]
    for heading in spare:
        if not width or max(map(len, columns([(*row[:-1], "") for row in table]))) + last <= width:
            break
        place = table[0].index(heading)
        table = [(*row[:place], *row[place + 1 :]) for row in table]
    return columns(table)


def cut(line: str, width: int) -> str:
    """The line, at most `width` characters long (0: as it is)."""
    return line[: width - 1] + "…" if width and len(line) > width else line


def summary_line(view: RunView) -> str:
    """The closing line: what became of the run, in words and counts."""
    candidates = sum(len(iteration.candidates) for iteration in view.iterations)
    counts = (
        f"{plural(candidates, 'candidate')} in {plural(len(view.iterations), 'iteration')}, cost {cost(view.usage)}"
    )
    why = f": {sentence(view.reason)}" if view.reason else ""
    return f"{view.status.value}{why} · {counts}"


def cost(usage: UsageView) -> str:
    """Money and tokens as far as they are known."""
    parts = []
    if usage.usd is not None:
        money = f"{usage.usd:.2f}" if usage.usd >= 0.01 or usage.usd == 0 else f"{usage.usd:.4f}"
        parts.append(f"{'about ' if usage.priced else ''}${money}")
    if usage.tokens is not None:
        parts.append(f"{usage.tokens:,} tok")
    return " ".join(parts) or "unknown"


def agent_name(spec: str, width: int = 24) -> str:
    """An agent's spec short enough for a column."""
    return one_line(agent_label(spec, width).removeprefix("cmd:"), width)


def _head(view: RunView, link: str) -> Iterator[str]:
    yield f"{view.id}  {view.status.value}"
    yield f"goal: {one_line(view.goal, 100)}"
    dirty = ", uncommitted edits included" if view.baseline_dirty else ""
    yield f"tree: {clean(view.repo)}" + (f" at {view.baseline[:12]}{dirty}" if view.baseline else "")
    if view.rungs:
        green = view.baseline_rungs_passed
        before = "" if green is None else f" ({green} of {len(view.rungs)} green before)"
        yield f"ladder: {', '.join(one_line(rung) for rung in view.rungs)}{before}"
    if view.protected:
        yield f"protected: {one_line(_protected(view.protected), 400)}"
    if link:
        yield f"web: {link}"
    for warning in view.warnings:
        yield f"warning: {one_line(warning)}"
    for note in view.notes:
        yield f"note: {one_line(note, 100)}"


def _protected(globs: tuple[str, ...]) -> str:
    """The globs, those that let candidates add told apart; a long list is cut by the caller."""
    closed = [glob for glob in globs if not glob.startswith("=")]
    existing = [glob.removeprefix("=") for glob in globs if glob.startswith("=")]
    return ", ".join(closed) + (f"; existing {', '.join(existing)}" if existing else "")


def decision_words(iteration: IterationView) -> str:
    """How an iteration was decided, and what gate and reviewer said."""
    parts = []
    if iteration.winner is None:
        parts.append("not decided")
    elif iteration.winner == 0:
        parts.append("the head stays: no candidate is better")
    else:
        key = DECIDED_BY.get(iteration.decided_by, iteration.decided_by)
        parts.append(f"candidate {iteration.winner} won: {key}")
    parts += [f"gate {iteration.gate}"] if iteration.gate else []
    parts += [f"review {one_line(iteration.review, 80)}"] if iteration.review else []
    return " · ".join(parts)


def _row(candidate: CandidateView, winner: int | None) -> tuple[str, ...]:
    passed = "-" if candidate.rungs_passed is None else f"{candidate.rungs_passed}/{candidate.rungs_total}"
    return (
        f"{'★' if winner == candidate.index else ' '} {candidate.rank or ''}".rstrip(),
        str(candidate.index),
        agent_name(candidate.agent),
        passed,
        "-" if candidate.changed is None else _paths(candidate),
        cost(candidate.usage) if candidate.usage.wall_s else "-",
        show_duration(candidate.usage.wall_s) if candidate.usage.wall_s else "-",
        candidate_words(candidate),
    )


def _paths(candidate: CandidateView) -> str:
    return f"{len(candidate.paths)}{'+' if len(candidate.paths) >= 20 else ''}"


def candidate_words(candidate: CandidateView) -> str:
    """Why a candidate stands where it does, and what is worth telling of it."""
    parts = [sentence(candidate.reason)] if candidate.reason else []
    if candidate.failure:
        step, _, detail = candidate.failure.partition(": ")
        words = step.replace("_", " ")
        parts.append(words if detail in {"", words} else one_line(f"{words}: {detail}", 120))
    elif words := outcome_words(candidate):
        parts.append(words)
    failing = [_red(rung) for rung in candidate.rungs if rung.result != "ok"]
    parts += [f"red: {', '.join(failing)}"] if failing else []
    parts += [f"{plural(len(candidate.restored), 'protected path')} restored"] if candidate.restored else []
    parts += [f"denied: {', '.join(map(one_line, candidate.denials[:3]))}"] if candidate.denials else []
    parts += [f"session {one_line(candidate.origin, 80)}"] if candidate.origin not in {"", "fresh"} else []
    return "; ".join(parts) or candidate.status.value


def _red(rung: RungView) -> str:
    """A rung that did not pass; what ended it, unless it was its own verdict."""
    return rung.name if rung.result.startswith("exit ") else one_line(f"{rung.name} {rung.result}", 120)


def _result(view: RunView) -> Iterator[str]:
    yield summary_line(view)
    yield from promotion_lines(view.promoted)


def promotion_lines(promoted: PromotedView | None) -> Iterator[str]:
    """Where the result stands, or why it does not."""
    if promoted is None:
        return
    where = f"branch {clean(promoted.branch)}" if promoted.branch else promoted.mode.value
    if promoted.refused is not None:
        yield f"not promoted to {where}: {sentence(promoted.refused)}"
    elif promoted.tree:
        yield f"promoted to {where}: {plural(promoted.paths, 'path')}, tree {promoted.tree[:12]}"
