"""A lane's limits in its agent's spec: every one is kept, and none is loosened."""

from __future__ import annotations

import pytest

from orch.activities.agents.registry import resolve
from orch.workflows.rules.agent_limits import limited


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("claude", "claude,max-turns=40,max-tokens=1000,max-usd=0.5"),
        ("claude:sonnet", "claude:sonnet,max-turns=40,max-tokens=1000,max-usd=0.5"),
        ("claude:sonnet,max-turns=7", "claude:sonnet,max-turns=7,max-tokens=1000,max-usd=0.5"),
        ("claude:sonnet,max-turns=70", "claude:sonnet,max-turns=40,max-tokens=1000,max-usd=0.5"),
        ("claude, max-usd = 0.1 ,idle=60", "claude, max-usd = 0.1 ,idle=60,max-turns=40,max-tokens=1000"),
        ("cmd:./agent.sh --x=1,max-turns=3", "cmd:./agent.sh --x=1,max-turns=3"),
    ],
)
def test_the_stricter_limit_stands(spec: str, expected: str) -> None:
    assert limited(spec, turns=40, tokens=1000, usd=0.5) == expected
    assert resolve(expected).spec.name in {"claude", "cmd"}


def test_without_caps_the_spec_is_as_it_was() -> None:
    assert limited("claude:opus,max-usd=3", turns=None, tokens=None, usd=None) == "claude:opus,max-usd=3"


@pytest.mark.parametrize("usd", [1e-7, 0.30000000000000004, 12345678.9])
def test_an_amount_is_read_as_it_was_meant(usd: float) -> None:
    assert resolve(limited("claude", turns=None, tokens=None, usd=usd)).spec.limit("max-usd") == usd


def test_what_is_no_number_is_left_to_its_host() -> None:
    assert limited("claude,max-usd=much", turns=None, tokens=None, usd=1.0) == "claude,max-usd=much"
