"""Golden files of rounds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a text with a file of `golden/`; `ORCH_UPDATE_GOLDEN=1` writes it instead."""

    def compare(name: str, text: str) -> None:
        path = Path(__file__).with_name("golden") / name
        if os.environ.get("ORCH_UPDATE_GOLDEN"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare
