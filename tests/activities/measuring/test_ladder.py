"""The ladder: progress reports are believed only when they are sound."""

from __future__ import annotations

from pathlib import Path

import pytest

from orch.activities.measuring.ladder import read_progress


@pytest.mark.parametrize(
    ("text", "progress"),
    [
        ('{"passed": 3, "total": 10}', (3, 10)),
        ('{"passed": 0, "total": 0}', (0, 0)),
        ('{"passed": 11, "total": 10}', None),
        ('{"passed": -1, "total": 10}', None),
        ('{"passed": true, "total": 10}', None),
        ('{"passed": 1.5, "total": 10}', None),
        ('{"passed": 3}', None),
        ("[3, 10]", None),
        ("", None),
    ],
)
def test_progress_report(tmp_path: Path, text: str, progress: tuple[int, int] | None) -> None:
    (tmp_path / "progress.json").write_text(text)

    assert read_progress(tmp_path / "progress.json") == progress


def test_no_report_is_no_progress(tmp_path: Path) -> None:
    assert read_progress(tmp_path / "progress.json") is None
