"""The real engine is out of reach of a guarded command: by every port that it listens on."""

from __future__ import annotations

import json
import subprocess

import psutil
import pytest

from orch.activities.home import Home
from orch.activities.sandbox import guard
from orch.activities.sandbox.guard import engine_ports, guarded
from orch.activities.sandbox.registry import LAUNCHERS
from orch.worker.records import read_server, read_worker

pytestmark = [pytest.mark.engine]

REACHED = """
import json, socket, sys
def reached(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True
print(json.dumps([port for port in map(int, sys.argv[1:]) if reached(port)]))
"""


def test_no_port_of_the_engine_is_reached(engine_home: Home) -> None:
    server, worker = read_server(engine_home), read_worker(engine_home)
    assert server
    assert worker
    listening = {
        each.laddr.port
        for process in (server.pid, worker.pid)
        for each in psutil.Process(process).net_connections("inet")
        if each.status == psutil.CONN_LISTEN
    }
    assert listening > {server.port, server.ui_port}
    assert engine_ports(engine_home) == listening
    look = (guard.PYTHON, "-I", "-S", "-c", REACHED, *map(str, listening))

    def reached(argv: tuple[str, ...]) -> set[int]:
        return set(json.loads(subprocess.run(argv, check=True, capture_output=True).stdout))

    assert reached(look) == listening
    assert reached(guarded(look, engine_ports(engine_home), LAUNCHERS["bwrap"])) == set()
