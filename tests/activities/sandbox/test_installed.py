"""What a command names by its path is looked up once, and anew after a change."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orch.activities.sandbox import installed
from orch.activities.sandbox.installed import mentioned


def wrapper(path: Path, program: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nexec {program}\n")


def test_a_wrapper_that_is_added_later_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Path] = []
    leads = installed._leads

    def looking(entry: Path) -> Iterator[Path]:
        looked.append(entry)
        return leads(entry)

    monkeypatch.setattr(installed, "_leads", looking)
    home, hidden = tmp_path / "tool", frozenset({tmp_path})
    programs, one, other = home / "bin", tmp_path / "opt/one/run", tmp_path / "opt/other/run"
    for program in (one, other):
        program.parent.mkdir(parents=True)
        program.touch()
    wrapper(programs / "one", one)
    os.utime(programs, ns=(0, 0))  # else the next change may be in the same tick of the file system's clock
    command = (str(programs / "one"), "--fast")

    assert mentioned(command, hidden) == mentioned(command, hidden) == (home, one.parent)
    assert looked == [programs]
    wrapper(programs / "other", other)
    assert set(mentioned(command, hidden)) == {home, one.parent, other.parent}
