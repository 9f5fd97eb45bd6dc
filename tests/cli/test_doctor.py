"""What `orch doctor` says of settings and places that cannot be used; all else is looked at, too."""

from __future__ import annotations

import pytest

from orch.cli.doctor import findings
from orch.worker.settings import load_settings


def test_settings_that_name_nothing_are_findings_and_the_rest_is_still_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"ORCH_SANDBOX": "nonsense", "ORCH_STATE": "/proc/none"}.items():
        monkeypatch.setenv(name, value)
    found = {finding.what: finding for finding in findings(load_settings())}

    assert found["sandbox"].grade == found["workspaces"].grade == "bad"
    assert "ORCH_SANDBOX is 'nonsense'" in found["sandbox"].said
    assert "/proc/none cannot be used" in found["workspaces"].said
    assert found["sandbox"].mend
    assert found["workspaces"].mend
    assert {"git", "disk", "engine"} <= found.keys()
