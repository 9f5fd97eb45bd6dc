"""A project's own prompt template: what it may name, and that what is put in is never read as a placeholder."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.activities.prompt_template import NAMES, NEEDED, check, fill
from orch.workflows.errors import RefusedError

WHOLE = "Do {{goal}}\n{{ checks }}\n{{\tfeedback\n}}\n"


@pytest.mark.parametrize(
    "more", ["", "{{rules}} {{notes}} {{protected}} {{goal}}", "{ } {{ }", "}} {x}", "$GOAL %s {0}"]
)
def test_template_that_names_what_agents_need_is_taken(more: str) -> None:
    check(WHOLE + more, "prompt.md")


@pytest.mark.parametrize(
    ("template", "said", "hint"),
    [
        (f"{WHOLE}{{{{gaol}}}}", "unknown placeholder {{gaol}}", "did you mean {{goal}}?"),
        (f"{WHOLE}{{{{ feed back }}}}", "unknown placeholder {{feed back}}", "did you mean {{feedback}}?"),
        (f"{WHOLE}{{{{}}}}", "unknown placeholder {{}}", "known: goal, checks"),
        (f"{WHOLE}{{{{xyzzy}}}}", "unknown placeholder {{xyzzy}}", "known: goal, checks"),
        (f"{WHOLE}${{{{ matrix.python }}}}", "unknown placeholder {{matrix.python}}", "known: goal, checks"),
        ("{{goal}} {{checks}}", "leaves out {{feedback}}", "needs goal"),
        ("", "leaves out {{goal}}, {{checks}}, {{feedback}}", "needs goal"),
    ],
)
def test_template_that_leaves_agents_in_the_dark_is_refused(template: str, said: str, hint: str) -> None:
    with pytest.raises(RefusedError) as refused:
        check(template, "prompt.md")

    assert refused.value.message.startswith("prompt.md")
    assert said in refused.value.message
    assert hint in refused.value.hint


def test_sections_are_put_in_and_missing_ones_are_empty() -> None:
    assert fill("A {{goal}} B {{ checks }}{{notes}}.\n", {"goal": "g", "checks": "c"}) == "A g B c."


def test_what_is_put_in_is_never_a_placeholder() -> None:
    filled = fill("{{goal}}|{{checks}}", {"goal": r"{{checks}} \1 \g<0> {{goal}}", "checks": "secret"})

    assert filled == r"{{checks}} \1 \g<0> {{goal}}|secret"


@given(st.dictionaries(st.sampled_from(NAMES), st.text()))
def test_every_section_stands_whole_where_it_is_named(sections: dict[str, str]) -> None:
    template = "<" + "|".join(f"{{{{{name}}}}}" for name in NAMES) + ">"

    assert fill(template, sections) == "<" + "|".join(sections.get(name, "") for name in NAMES) + ">"


@pytest.mark.parametrize("endless", ["{{" + " " * 30_000, "{{" * 15_000, "{{ goal" * 4_000, "{" * 30_000])
def test_any_template_is_read_at_once(endless: str) -> None:
    begun = time.perf_counter()
    with pytest.raises(RefusedError):
        check(endless, "prompt.md")
    fill(endless, {})

    assert time.perf_counter() - begun < 5


def test_what_must_be_named_may_be_named() -> None:
    assert set(NEEDED) < set(NAMES)
