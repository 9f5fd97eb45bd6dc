from __future__ import annotations

import socket
from pathlib import Path

import pytest

from orch.activities.home import Home
from orch.worker import ports
from orch.workflows.errors import RefusedError


def test_a_directory_always_gets_the_same_port_and_another_one_gets_another(tmp_path: Path) -> None:
    here, there = Home(tmp_path / "here"), Home(tmp_path / "there")
    assert ports.pick(here) == ports.pick(here)
    assert ports.pick(here) != ports.pick(there)


def test_a_taken_port_is_passed_over(tmp_path: Path) -> None:
    first = ports.pick(Home(tmp_path))
    with socket.create_server(("127.0.0.1", first)):
        second = ports.pick(Home(tmp_path))
        assert second != first
        assert ports.pick(Home(tmp_path), but={second}) not in {first, second}
        with pytest.raises(RefusedError, match=f"port {first} "):
            ports.require_free(first)
    ports.require_free(first)


def test_a_port_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RefusedError, match="port 99999 "):
        ports.require_free(99999)
