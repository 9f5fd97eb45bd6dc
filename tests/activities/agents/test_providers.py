"""Where an agent that knows many providers gets its model, and which keys it sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from orch.activities.agents import providers
from orch.activities.agents.adapter import Launch
from orch.activities.agents.spec import Spec

URL = "http://127.0.0.1:1/v1"
BOTH = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}


def _launch(model: str, secrets: dict[str, str]) -> Launch:
    nowhere = Path("/nonexistent")
    return Launch(Spec("pi", model), nowhere, nowhere, nowhere, nowhere, secrets)


@pytest.mark.parametrize(
    ("model", "secrets", "server", "keys"),
    [
        ("m", BOTH | {"OPENAI_BASE_URL": URL}, URL, {"OPENAI_API_KEY"}),
        ("", BOTH | {"OPENAI_BASE_URL": URL}, URL, {"OPENAI_API_KEY"}),
        ("openai/m", BOTH | {"OPENAI_BASE_URL": URL}, URL, {"OPENAI_API_KEY"}),
        ("anthropic/m", BOTH | {"OPENAI_BASE_URL": URL}, "", {"ANTHROPIC_API_KEY"}),
        ("anthropic/m", {"OPENAI_API_KEY": "o", "OPENAI_BASE_URL": URL}, URL, {"OPENAI_API_KEY"}),
        ("anthropic/m", BOTH, "", {"ANTHROPIC_API_KEY"}),
        ("openai/m", BOTH, "", {"OPENAI_API_KEY"}),
        ("somebody/m", BOTH, "", {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}),
        ("", BOTH, "", {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}),
        ("", {}, "", set()),
    ],
)
def test_server_and_keys(model: str, secrets: dict[str, str], server: str, keys: set[str]) -> None:
    launch = _launch(model, secrets)

    assert providers.server(launch) == server
    assert set(providers.keys(launch)) == keys
