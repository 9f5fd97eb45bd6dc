"""Elements and axes of reports."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orch.cli.reporting.axes import Axis
from orch.cli.reporting.markup import Html, el, join


class Tags(HTMLParser):
    """The elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)


@given(text=st.text(), value=st.text())
def test_elements_escape_whatever_they_are_given(text: str, value: str) -> None:
    assert Tags(el("p", text, title=value)).seen == ["p"]
    assert "<" not in re.sub(r"^<p[^<>]*>|</p>$", "", el("p", text))


def test_markup_is_not_escaped_twice() -> None:
    assert el("p", el("b", "a & b"), join(" <", Html("<i></i>"))) == "<p><b>a &amp; b</b> &lt;<i></i></p>"
    assert el("circle", cx=1.5, cy=2.0, class_="x", text_anchor=None) == '<circle cx="1.5" cy="2" class="x"/>'


@given(low=st.floats(-1e6, 1e6), span=st.floats(1e-6, 1e6))
@example(low=879609.9999999999, span=1e-6)
@settings(deadline=None)
def test_an_axis_holds_its_values_between_few_round_ticks(low: float, span: float) -> None:
    high = low + max(span, abs(low) / 1e6)  # of what lies closer together, a float's last digit is more than is asked
    axis = Axis.over(low, high, 0.0, 100.0)

    assert axis.at(low) >= -1e-6
    assert axis.at(high) <= 100 + 1e-6
    assert 2 <= len(axis.ticks) <= 12


@pytest.mark.parametrize(
    ("seconds", "step"),
    [(0.5, 1.0), (8, 1.0), (80, 10.0), (500, 60.0), (3000, 600.0), (7200, 900.0), (500_000, 57_600.0)],
)
def test_a_time_axis_counts_in_times_of_people(seconds: float, step: float) -> None:
    axis = Axis.of_time(seconds, 0.0, 100.0)

    assert axis.step == step
    assert 1 <= len(axis.ticks) <= 10
