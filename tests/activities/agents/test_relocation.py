"""A session's record moves to another working copy: its paths do, what is signed or not meant does not."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from orch.activities.agents.relocation import head, relocate

OLD, NEW = "/w/old (1)", "/w/new"


def _moved(folder: Path, value: Any, old: str = OLD) -> Any:
    record = folder / "record.jsonl"
    record.write_text(json.dumps(value) + "\n")
    assert relocate(record, folder / "deep" / "copy.jsonl", old, NEW)
    return json.loads((folder / "deep" / "copy.jsonl").read_text())


@pytest.mark.parametrize(
    ("value", "moved"),
    [
        ({"cwd": OLD}, {"cwd": NEW}),
        ({"files": [f"{OLD}/a.py", {f"{OLD}/b.py": 1}]}, {"files": [f"{NEW}/a.py", {f"{NEW}/b.py": 1}]}),
        (f"cd {OLD} && cat '{OLD}/é'", f"cd {NEW} && cat '{NEW}/é'"),
        (f"{OLD}2 {OLD}.bak {OLD}-x {OLD}_y", f"{OLD}2 {OLD}.bak {OLD}-x {OLD}_y"),
        ({"thinking": OLD, "signature": "s"}, {"thinking": OLD, "signature": "s"}),
        ({"text": OLD, "thoughtSignature": "s"}, {"text": OLD, "thoughtSignature": "s"}),
        ([None, 1, 2.5, True], [None, 1, 2.5, True]),
    ],
)
def test_paths_below_the_old_folder_are_moved(tmp_path: Path, value: Any, moved: Any) -> None:
    assert _moved(tmp_path, value) == moved


@pytest.mark.parametrize("old", ["", "\ud800", "/elsewhere"])
def test_without_the_old_folder_nothing_is_moved(tmp_path: Path, old: str) -> None:
    assert _moved(tmp_path, {"cwd": OLD}, old=old) == {"cwd": OLD}


def test_line_that_is_no_json_and_line_cut_off_are_kept(tmp_path: Path) -> None:
    record, copy = tmp_path / "record", tmp_path / "copy"
    broken = f"not json {OLD}\n".encode() + b'\xff\n{"a": 1}\n' + f'{{"cut": "{OLD}'.encode()
    record.write_bytes(broken)

    assert relocate(record, copy, OLD, NEW)

    assert copy.read_bytes() == broken


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    record, link, pipe = tmp_path / "record", tmp_path / "link", tmp_path / "pipe"
    record.write_text("{}")
    link.symlink_to(record)
    os.mkfifo(pipe)

    for path in (link, pipe, tmp_path, tmp_path / "missing"):
        assert not relocate(path, tmp_path / "copy", OLD, NEW)
        assert head(path, 10) == ""
    assert head(record, 10) == "{}"
    assert not (tmp_path / "copy").exists()
