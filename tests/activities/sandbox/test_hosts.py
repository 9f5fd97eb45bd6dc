"""Launchers of boxes that are missing, too old, or keep nothing out; `cli/test_other_hosts.py` shows whole hosts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orch.activities import processes
from orch.activities.sandbox import Flaw, registry
from orch.workflows.errors import RefusedError


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Launchers are tried anew."""
    monkeypatch.setenv(registry.VARIABLE, "bwrap")
    registry._tried.cache_clear()
    yield
    registry._tried.cache_clear()


def test_without_bubblewrap_the_flaw_says_what_to_install(
    fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert registry.probe() == Flaw("bwrap is not installed", "install bubblewrap 0.4 or newer")


@pytest.mark.parametrize(
    ("version", "why"),
    [("bubblewrap 0.3.3", "bubblewrap 0.3.3 is too old"), ("", "bwrap does not tell its version")],
)
def test_a_bubblewrap_that_is_too_old_is_not_tried(
    fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, why: str
) -> None:
    (tmp_path / "bwrap").write_text(f'#!/bin/sh\n[ "$1" = --version ] || touch {tmp_path}/tried\necho "{version}"\n')
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    assert registry.probe() == Flaw(why, "install bubblewrap 0.4 or newer")
    assert not (tmp_path / "tried").exists()


def test_a_bubblewrap_that_does_not_keep_anything_out_is_no_sandbox(
    fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    version = '[ "$1" != --version ] || exec echo bubblewrap 0.8.0'
    (tmp_path / "bwrap").write_text(f'#!/bin/sh\n{version}\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    flaw = registry.probe()
    assert flaw is not None
    assert flaw.why == "writing outside is not refused (exit 1)"


def test_a_bubblewrap_that_took_too_long_is_tried_again(
    fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as busy:
        (tmp_path / "bwrap").write_text('#!/bin/sh\n[ "$1" = --version ] || exec sleep 60\necho bubblewrap 0.8.0\n')
        (tmp_path / "bwrap").chmod(0o755)
        busy.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        busy.setattr(processes, "ANSWER_S", 2.0)
        assert registry.probe() == Flaw("trying bwrap took longer than 2 s", "try again when the host is less busy")
    assert registry.probe() is None


def test_an_unknown_launcher_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.VARIABLE, "jail")
    with pytest.raises(RefusedError, match="'jail'"):
        registry.chosen()
