"""The rounds of one campaign, one after the other: read from a view, or from the document that a round left. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ..workflows.model.round.plan import Metric
from ..workflows.model.round.trial import Evaluation
from ..workflows.model.round.view import RoundView
from ..workflows.rules.round_document import SCHEMA
from .round_words import round_sentence


@dataclass(frozen=True)
class ChainRound:
    """What a chain shows of a round.

    Attributes:
        run: its run.
        name: its id in the campaign.
        started_at: ISO 8601 UTC.
        incumbent: where it started from.
        new_incumbent: what took its place; None when it stayed.
        confirmed: what that showed when it was measured anew.
        kept: the lanes in it, in the order of composition.
        metric: what was measured.
        why: how it ended, in words.
    """

    run: str
    name: str
    started_at: str
    incumbent: str
    new_incumbent: str | None
    confirmed: Evaluation | None
    kept: tuple[str, ...]
    metric: Metric | None
    why: str


def of_view(view: RoundView) -> ChainRound:
    """A round as it stands now."""
    return ChainRound(
        run=view.id,
        name=view.round,
        started_at=view.started_at,
        incumbent=view.incumbent or "",
        new_incumbent=view.new_incumbent,
        confirmed=view.confirmed,
        kept=view.composed,
        metric=view.metric,
        why=round_sentence(view.reason) if view.reason else view.phase.value,
    )


def of_document(document: Mapping[str, Any]) -> ChainRound | None:
    """A round as its `round-ledger.json` tells it; None for one that this program does not understand."""
    try:
        if document["schema"] != SCHEMA:
            return None
        new, reruns = document["new_incumbent"], document["composition"]["reruns"]
        kept = {str(lane["id"]) for lane in document["lanes"] if lane["kept"]}
        return ChainRound(
            run=str(document["run"]),
            name=str(document["round"]),
            started_at=str(document["started_at"]),
            incumbent=str(document["incumbent"]),
            new_incumbent=str(new) if new else None,
            confirmed=Evaluation.model_validate(reruns[-1]["evaluation"]) if new and reruns else None,
            kept=tuple(name for step in document["composition"]["steps"] if (name := str(step["lane"])) in kept),
            metric=Metric.model_validate(document["plan"]["metric"]),
            why="a new incumbent" if new else "the incumbent stays",
        )
    except (KeyError, TypeError, ValidationError):
        return None


def in_order(view: RoundView, documents: Iterable[Mapping[str, Any]]) -> list[ChainRound]:
    """This round among the recorded ones of its campaign, in the order in which they began."""
    found = {one.run: one for one in map(of_document, documents) if one is not None}
    found[view.id] = of_view(view)
    return sorted(found.values(), key=lambda one: one.started_at)
