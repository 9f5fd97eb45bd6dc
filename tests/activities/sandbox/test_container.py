"""Boxes by a container engine: the same values become the engine's options."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from orch.activities.sandbox import Access, Box, Flaw, Mount
from orch.activities.sandbox.container import IMAGE, Container

HERE = Path(__file__).parent
BOX = Box(
    (
        Mount.of(HERE, Access.HIDDEN),
        Mount.of(Path(__file__), Access.HIDDEN),
        Mount.of(HERE / "scratch", Access.SCRATCH),
        Mount.of(HERE, Access.READ),
        Mount.of(Path("/seen"), Access.WRITE, HERE),
        Mount.of(Path("/named"), Access.LINK, HERE),
        Mount.of(Path("/absent"), Access.READ),
    ),
    network=False,
)


def test_podman_takes_the_hosts_own_files_as_its_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(IMAGE, raising=False)
    words = Container("podman").wrap(("make", "-j"), BOX)
    assert words[-4:] == ("--rootfs", "/:O", "make", "-j")
    assert {"--network=none", "--cap-drop=ALL", "--read-only"} <= set(words)
    mounts = [pair for pair in itertools.pairwise(words) if pair[0] in {"--volume", "--tmpfs"}]
    assert mounts == [
        ("--tmpfs", f"{HERE}:ro,notmpcopyup"),
        ("--volume", f"/dev/null:{__file__}:ro"),
        ("--tmpfs", f"{HERE}/scratch:rw,notmpcopyup"),
        ("--volume", f"{HERE}:{HERE}:ro"),
        ("--volume", f"{HERE}:/seen"),
        ("--volume", f"{HERE}:/named"),
    ]


def test_docker_needs_an_image(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(IMAGE, raising=False)
    assert Container("docker").flaw() == Flaw(
        "docker has no image", f"name one in {IMAGE} that has the project's programs"
    )

    monkeypatch.setenv(IMAGE, "python:3.12")
    assert Container("docker").flaw() is None
    words = Container("docker").wrap(("true",), Box((), network=True))
    assert (words[-2:], "--network=host" in words) == (("python:3.12", "true"), True)


def test_an_engine_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Container("podman").flaw() == Flaw("podman is not installed", "install podman")


def test_values_of_the_environment_stand_in_no_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess

    (tmp_path / "podman").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "podman").chmod(0o755)
    words = Container("podman").wrap(("true",), BOX)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "KEY": "secret value", "MORE": "a\nb=c"}
    done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert {"--env=KEY", "--env=MORE", "--workdir", str(tmp_path)} <= set(done.stdout.splitlines())
    assert "secret" not in done.stdout
