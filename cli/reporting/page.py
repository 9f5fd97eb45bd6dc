"""The frame of a report: a head that forbids everything but its own style, and the sections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .markup import Child, Html, el, join
from .style import STYLE

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Nothing is loaded and nothing runs, whatever foreign text stands in the page."""


def page(title: str, header: Html, sections: Iterable[Html], footer: str) -> str:
    """The whole file."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        el("style", Html(STYLE)),
    )
    body = el("body", el("main", header, join(sections), el("footer", footer)))
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def section(title: str, *children: Child, note: str = "") -> Html:
    """A titled part; nothing at all when it would be empty."""
    inner = join(*children)
    if not inner:
        return Html("")
    return el("section", el("h2", title), el("p", note, class_="note") if note else None, inner)


def figure(drawing: Html, caption: Child = None) -> Html:
    """A drawing that may be wider than the page."""
    return el("figure", el("div", drawing, class_="scroll"), el("figcaption", caption) if caption else None)


def table(
    headings: Sequence[str], rows: Sequence[Sequence[Child]], numbers: Iterable[int] = (), *, narrow: bool = False
) -> Html:
    """A table; `numbers` are the columns that are aligned to the right. Nothing when there are no rows."""
    if not rows:
        return Html("")
    right = set(numbers)
    head = el("tr", [el("th", text, scope="col", class_=_side(n, right)) for n, text in enumerate(headings)])
    whole = el("table", el("thead", head), el("tbody", _rows(rows, right)), class_="narrow" if narrow else None)
    return el("div", whole, class_="scroll")


def grouped(
    headings: Sequence[str], groups: Iterable[tuple[str, Sequence[Sequence[Child]]]], numbers: Iterable[int]
) -> Html:
    """One table of several parts, each under its name; parts without rows are left out."""
    right = set(numbers)
    head = el("tr", [el("th", text, scope="col", class_=_side(n, right)) for n, text in enumerate(headings)])
    parts = [
        el(
            "tbody",
            el("tr", el("th", name, colspan=len(headings), scope="rowgroup", class_="group")),
            _rows(rows, right),
        )
        for name, rows in groups
        if rows
    ]
    return el("div", el("table", el("thead", head), parts), class_="scroll") if parts else Html("")


def _rows(rows: Sequence[Sequence[Child]], right: set[int]) -> list[Html]:
    return [el("tr", [el("td", cell, class_=_side(n, right)) for n, cell in enumerate(row)]) for row in rows]


def facts(pairs: Iterable[tuple[str, Child]]) -> Html:
    """Names with their values."""
    return el("dl", [el("div", el("dt", name), el("dd", value)) for name, value in pairs], class_="facts")


def tile(name: str, value: Child, below: Child = None) -> Html:
    """One figure that matters, with what it is made of."""
    return el("div", el("dt", name), el("dd", value), el("dd", below, class_="below") if below else None)


def mark(text: str, kind: str) -> Html:
    """A word that stands out: `good`, `bad`, `plain` or `open`."""
    return el("span", text, class_=f"mark {kind}")


def code(text: str) -> Html:
    """Text of a program."""
    return el("code", text)


def _side(column: int, right: set[int]) -> str | None:
    return "n" if column in right else None
