"""The report of a goal run: who competed, who won and why."""

from __future__ import annotations

from collections.abc import Iterator

from ...workflows.details import agent_label
from ...workflows.model.view import CandidateStatus, CandidateView, IterationView, RunStatus, RunView
from ..durations import show_duration
from ..reasons import sentence
from ..render import candidate_words, cost, decision_words
from ..talk import plural
from .markup import Child, Html, el, join
from .page import code, facts, mark, page, section, table, tile

KINDS = {CandidateStatus.PASSED: "good", CandidateStatus.RED: "bad", CandidateStatus.FAILED: "bad"}
ENDS = {RunStatus.SUCCEEDED: "good", RunStatus.RUNNING: "open", RunStatus.WAITING: "open"}


def goal_page(view: RunView) -> str:
    """The whole file."""
    told = f"run {view.id}, {'ended ' + view.ended_at if view.ended_at else 'as far as it has come'}"
    return page(view.id, _header(view), _sections(view), f"{told} · made by orch")


def _header(view: RunView) -> Html:
    why = sentence(view.reason) if view.reason else "the run goes on"
    return el(
        "header",
        el("p", "Goal run", class_="kicker"),
        el("h1", view.goal),
        el("p", f"{view.status.value}: {why}", class_=f"verdict {ENDS.get(view.status, 'plain')}"),
        [el("p", f"warning: {warning}", class_="warning") for warning in view.warnings],
        el("dl", list(_tiles(view)), class_="tiles"),
    )


def _tiles(view: RunView) -> Iterator[Html]:
    candidates = sum(len(iteration.candidates) for iteration in view.iterations)
    yield tile("Candidates", str(candidates), plural(len(view.iterations), "iteration"))
    green = view.baseline_rungs_passed
    yield tile("Ladder", plural(len(view.rungs), "rung"), "" if green is None else f"{green} green before")
    yield tile("Cost", cost(view.usage), f"{show_duration(view.usage.wall_s)} of agents")


def _sections(view: RunView) -> Iterator[Html]:
    for iteration in view.iterations:
        yield section(f"Iteration {iteration.ordinal}", _candidates(iteration), note=decision_words(iteration))
    yield section(
        "Contract",
        facts(
            [
                ("rungs", ", ".join(view.rungs) or "-"),
                ("protected", ", ".join(view.protected) or "nothing"),
                ("digest", code(view.contract_digest or "-")),
                ("baseline", code(view.baseline or "-")),
                ("head", code(view.head or "-")),
                ("sandbox", {True: "on", False: "off", None: "-"}[view.sandbox]),
            ]
        ),
    )


def _candidates(iteration: IterationView) -> Html:
    ranked = sorted(iteration.candidates, key=lambda one: (one.rank or len(iteration.candidates) + 1, one.index))
    rows = [_row(candidate, won=candidate.index == iteration.winner) for candidate in ranked]
    headings = ("rank", "candidate", "agent", "status", "rungs", "paths", "cost", "time", "why")
    return table(headings, rows, (0, 1, 4, 5, 7))


def _row(candidate: CandidateView, *, won: bool) -> tuple[Child, ...]:
    passed = "-" if candidate.rungs_passed is None else f"{candidate.rungs_passed}/{candidate.rungs_total}"
    return (
        str(candidate.rank or "-"),
        el("b", str(candidate.index)) if won else str(candidate.index),
        code(agent_label(candidate.agent)),
        join(
            mark(candidate.status.value, KINDS.get(candidate.status, "plain")),
            join(" ", mark("won", "good")) if won else None,
        ),
        passed,
        "-" if candidate.changed is None else str(len(candidate.paths)),
        cost(candidate.usage) if candidate.usage.wall_s else "-",
        show_duration(candidate.usage.wall_s) if candidate.usage.wall_s else "-",
        candidate_words(candidate),
    )
