"""`orch agents`: which agents this host can run, and how a spec names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from .params import json_option
from .talk import clean, one_line, out, out_json

if TYPE_CHECKING:
    from ..activities.agents.adapter import Traits
    from ..activities.agents.survey import Surveyed

HEADINGS = ("agent", "version", "here", "limits by itself", "can")

MOST_KEYS = 3
"""Variables that a hint names."""

SPEC = (
    "spec: NAME[:MODEL][,KEY=VALUE…], e.g. --agent claude:opus,max-turns=40 --agent codex",
    "      or any command that edits files, taken as it is: --agent 'cmd:./agent.sh'",
)


@click.command()
@json_option
def agents(*, as_json: bool) -> None:
    """List the agents: version, usable here or why not, what each can, its settings. Changes nothing."""
    from ..activities.agents.spec import COMMON
    from ..activities.agents.survey import survey

    found = survey()
    if as_json:
        out_json({"agents": [_document(one) for one in found], "settings": dict(COMMON)})
    else:
        out("\n".join([*table(found), "", *settings(found), "", *SPEC]))


def table(found: Sequence[Surveyed]) -> Iterator[str]:
    """A row for each agent, and below it the mend where it cannot be used."""
    from .render import columns

    rows = columns([HEADINGS, *(_row(one) for one in found)])
    yield rows[0]
    for one, row in zip(found, rows[1:], strict=True):
        yield row
        if mend := hint(one):
            yield f"      hint: {mend}"


def _row(one: Surveyed) -> tuple[str, ...]:
    limits, can = (", ".join(_limits(one.traits)), ", ".join(_can(one.traits))) if one.traits else ("", "")
    here = one.flaw.value.replace("_", " ") if one.flaw else "yes"
    return one_line(one.name, 24), one.version or "-", here, limits or "-", can or "-"


def _limits(traits: Traits) -> list[str]:
    return sorted(traits.limits)


def _can(traits: Traits) -> Iterator[str]:
    if traits.resumes:
        yield "resume"
    if traits.forks:
        yield "fork"
    if traits.streams:
        yield "show its steps"
    if traits.prices:
        yield "tell its cost"


def hint(one: Surveyed) -> str:
    """Why the agent cannot be used here, and the mend; empty when it can."""
    from ..activities.agents.survey import Flaw

    if one.traits is None:
        return f"its adapter cannot be loaded: {one_line(one.detail, 200)}; mend or remove the package that brings it"
    program = one.traits.program
    match one.flaw:
        case None:
            return ""
        case Flaw.NOT_FOUND:
            return f"there is no {program!r} on PATH: install it, or name it: --agent {one.name},bin=/PATH/TO/{program}"
        case Flaw.TOO_OLD:
            return f"{clean(one.path)} is too old: install {'.'.join(map(str, one.traits.oldest))} or newer"
        case Flaw.NO_LOGIN:
            return f"no login: {_logins(one.traits)}"
        case _:
            return f"{clean(one.path)} does not work: {one_line(one.detail, 200)}; run it by hand"


def _logins(traits: Traits) -> str:
    from ..activities.agents.survey import keys

    ways = []
    if wanted := keys(traits):
        others = f", or another of its {len(wanted)} keys (--json tells all)" if len(wanted) > MOST_KEYS else ""
        ways.append(f"set {' or '.join(wanted[:MOST_KEYS])}{others}")
    if traits.login:
        files = " or ".join(f"~/{file}" for file in traits.login)
        ways.append(f"log in by {traits.program!r}, so that {files} is there")
    return "; or ".join(ways)


def settings(found: Sequence[Surveyed]) -> Iterator[str]:
    """The keys that specs take: those of every agent, then each agent's own."""
    from ..activities.agents.spec import COMMON
    from .render import columns

    own = [(one.name, one.traits.settings) for one in found if one.traits and one.traits.settings]
    for title, keys in [("every agent but cmd", COMMON), *own]:
        yield f"settings of {title}:"
        yield from (f"  {line}" for line in columns([(key, text) for key, text in keys.items()]))


def _document(one: Surveyed) -> dict[str, Any]:
    return {
        "name": one.name,
        "usable": one.flaw is None,
        "why_not": one.flaw,
        "hint": hint(one),
        "path": one.path,
        "version": one.version,
        **(_known(one.traits) if one.traits else {}),
    }


def _known(traits: Traits) -> dict[str, Any]:
    from ..activities.agents.survey import keys

    return {
        "program": traits.program,
        "oldest": ".".join(map(str, traits.oldest)),
        "limits": _limits(traits),
        "resumes": traits.resumes,
        "forks": traits.forks,
        "streams": traits.streams,
        "prices": traits.prices,
        "keys": keys(traits),
        "login": traits.login,
        "settings": dict(traits.settings),
    }
