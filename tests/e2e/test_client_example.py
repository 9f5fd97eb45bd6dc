"""The documented example of the Python client runs as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orch.activities.home import Home

pytestmark = [pytest.mark.engine]

EXAMPLE = Path(__file__).parents[2] / "demo" / "client.py"


def test_example_of_the_client_runs_and_tells_who_won(engine_home: Home) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLE],
        env={**os.environ, "ORCH_STATE": str(engine_home.root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "run_ended" in done.stdout, done.stderr
    assert "candidate 1: 1/2 fewer_rungs" in done.stdout
    assert done.stdout.endswith("candidate 2: 2/2 won\nsucceeded: Hello!\n")
