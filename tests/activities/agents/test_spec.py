"""Specs: how a text is split, and what of its form is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.activities.agents.spec import COMMON, Spec, parse
from orch.workflows.errors import RefusedError

words = st.text("abcxyz0123456789.-_/", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("codex", Spec("codex")),
        ("codex:", Spec("codex")),
        ("codex:gpt-5.5", Spec("codex", "gpt-5.5")),
        (" codex : gpt-5.5 , effort = high ", Spec("codex", "gpt-5.5", {"effort": "high"})),
        ("pi:openai/gpt-5.5:free", Spec("pi", "openai/gpt-5.5:free")),
        ("codex,max-turns=5", Spec("codex", "", {"max-turns": "5"})),
        ("codex,bin=/opt/a:b/codex", Spec("codex", "", {"bin": "/opt/a:b/codex"})),
        ("codex:m,bin=/opt/x=y,idle=2.5", Spec("codex", "m", {"bin": "/opt/x=y", "idle": "2.5"})),
        ("cmd:sh -c 'a,b=c; exit 3'", Spec("cmd", "sh -c 'a,b=c; exit 3'")),
        (" cmd : a,b=c ", Spec("cmd", "a,b=c")),
        ("cmd:x:y", Spec("cmd", "x:y")),
        ("cmd", Spec("cmd")),
        ("", Spec("")),
    ],
)
def test_spec_is_name_model_and_settings(text: str, spec: Spec) -> None:
    assert parse(text) == spec


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("codex:m,fast", "'fast' is no setting", "KEY=VALUE"),
        ("codex:m,", "'' is no setting", "KEY=VALUE"),
        ("codex,idle=3,", "'' is no setting", "KEY=VALUE"),
        ("codex:m,=3", "'=3' is no setting", "KEY=VALUE"),
        ("codex:m,idle= ,effort=low", "'idle= ' is no setting", "KEY=VALUE"),
        ("codex:m,idle=1,effort=low,idle=1", "idle is set twice", "once"),
        *(
            (f"codex:m,{key}={value}", f"{key}={value} is no positive number", COMMON[key])
            for key in ("max-turns", "max-tokens", "max-usd", "idle")
            for value in ("0", "-1", "many", "nan", "inf", "1e999", "5m")
        ),
    ],
)
def test_fault_of_form_is_refused_with_the_mend(text: str, said: str, hint: str) -> None:
    with pytest.raises(RefusedError) as refused:
        parse(text)

    assert said in refused.value.message
    assert hint in refused.value.hint


def test_numbers_and_program_are_read_from_the_settings() -> None:
    spec = parse("codex:m,max-usd=0.5,bin=/opt/codex")

    assert (spec.limit("max-usd"), spec.limit("max-turns")) == (0.5, None)
    assert (spec.program("codex"), Spec("codex").program("codex")) == ("/opt/codex", "codex")


@given(name=words, model=words | st.just(""), settings=st.dictionaries(words, words, max_size=4))
def test_what_is_written_is_read(name: str, model: str, settings: dict[str, str]) -> None:
    pairs = "".join(f",{key}={value}" for key, value in settings.items())

    assert parse(f"{name}:{model}{pairs}") == Spec(name, model, settings)


@given(st.text())
def test_any_text_is_a_spec_or_refused(text: str) -> None:
    try:
        spec: Spec | None = parse(text)
    except RefusedError:
        spec = None

    assert spec is None or spec.name == spec.name.strip()
