"""The engine's ports, closed to boxes that have the network: by no address and no protocol, and no others are."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orch.activities import processes
from orch.activities.home import Home
from orch.activities.jobs import Job, Step, run_job
from orch.activities.runs import sandbox_of
from orch.activities.sandbox import closed_ports, guard
from orch.activities.sandbox.bubblewrap import Bubblewrap
from orch.activities.sandbox.container import Container
from orch.activities.sandbox.guard import engine_ports, guarded
from orch.activities.sandbox.registry import LAUNCHERS
from orch.activities.sandbox.view import Needs, box
from orch.cli import doctor
from orch.workflows.model.goal import SandboxMode

BWRAP = LAUNCHERS["bwrap"]
TRY = """
import json, socket, sys
port, found, fast_open, mptcp, smc = int(sys.argv[1]), [], 1 << 29, 262, 43
hosts = [(2, "127.0.0.1"), (2, "127.0.0.2"), (2, "0.0.0.0"), (10, "::1"), (10, "::ffff:127.0.0.1")]
def attempt(name, family, protocol, act):
    try:
        with socket.socket(family, socket.SOCK_STREAM, protocol) as client:
            act(client)
            found.append(name)
    except OSError:
        pass
for family, host in hosts:
    attempt(host, family, 0, lambda client: client.connect((host, port)))
    attempt(f"fast {host}", family, 0, lambda client: client.sendto(b"x", fast_open, (host, port)))
    attempt(f"message {host}", family, 0, lambda client: client.sendmsg([b"x"], [], fast_open, (host, port)))
    attempt(f"multipath {host}", family, mptcp, lambda client: client.connect((host, port)))
def late(client):
    client.setsockopt(socket.IPPROTO_TCP, 30, 1)
    client.connect(("127.0.0.1", port))
attempt("fast, by an option", 2, 0, late)
attempt("listen", 2, 0, lambda server: server.bind(("127.0.0.3", port)))
print(json.dumps(found))
"""


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a server on all addresses."""
    with socket.create_server(("", 0), family=socket.AF_INET6, backlog=128, dualstack_ipv6=True) as listening:
        yield listening.getsockname()[1]


def boxed(folder: Path, argv: tuple[str, ...], closed: frozenset[int]) -> str:
    """What a command prints in a box with the network, its working copy being `folder`."""
    program = guarded(argv, closed, BWRAP)
    needs = Needs(program, os.environ["PATH"], folder / "state", tmp=folder, tree=folder, expose=(folder,))
    command = processes.Command(
        BWRAP.wrap(program, box(needs, network=True)), folder, processes.scrubbed_environment({})
    )
    done = processes.run(command, timeout_s=30)
    assert done.exit.ok, done.stderr
    return done.stdout.decode()


def test_a_closed_port_is_reached_by_no_address_and_no_protocol(tmp_path: Path, server: int) -> None:
    attempts = (guard.PYTHON, "-I", "-S", "-c", TRY, str(server))
    assert len(json.loads(boxed(tmp_path, attempts, frozenset()))) >= 12
    assert json.loads(boxed(tmp_path, attempts, frozenset({server}))) == []


def test_a_model_server_on_another_port_of_loopback_is_reached(tmp_path: Path, server: int) -> None:
    script = (
        f"import socket\nsocket.create_connection(('127.0.0.1', {server}), 5)\nsocket.create_server(('', 0))\nprint(1)"
    )
    closed = frozenset({server - 1, server + 1, 7233})
    assert boxed(tmp_path, (guard.PYTHON, "-I", "-S", "-c", script), closed) == "1\n"


def test_the_command_is_itself_but_for_the_ports(tmp_path: Path) -> None:
    script = (
        "trap 2>&1; pwd; echo $0 $1; ls -l /proc/self/fd | grep -c landlock; sh -c 'kill -PIPE $$; echo ignored'; :"
    )
    assert boxed(tmp_path, ("sh", "-c", script, "a", "b c"), frozenset({1})) == f"{tmp_path}\na b c\n0\n"


def test_a_missing_program_is_told_as_such() -> None:
    done = subprocess.run(guarded(("no-such-program",), frozenset({1}), BWRAP), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (127, b"orch: no-such-program: No such file or directory\n")


def test_a_kernel_that_refuses_after_all_stops_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown_right = guard._program().replace("\nTCP = 3\n", "\nTCP = 1 << 40\n")
    monkeypatch.setattr(guard, "_program", lambda: unknown_right)
    done = subprocess.run(guarded(("echo",), frozenset({1}), BWRAP), capture_output=True, check=False)
    said = b"orch: the engine's ports cannot be closed to the command: Invalid argument\n"
    assert (done.returncode, done.stdout, done.stderr) == (126, b"", said)


TAKE = """
import ctypes, os, sys
call = ctypes.CDLL(None, use_errno=True).syscall
print([number for number in range(3, 64) if os.path.exists(f"/proc/self/fd/{number}")
       and "landlock" in os.readlink(f"/proc/self/fd/{number}")])
print([call(438, call(434, pid, 0), int(sys.argv[1]), 0) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
       if pid != os.getpid()])
"""
"""Looks for the rules among its own descriptors, and takes them from the other processes that it sees."""


async def test_a_job_passes_on_rules_that_are_made_already_and_the_command_cannot_take_them(
    tmp_path: Path, server: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (rules,) = guard.shared_rules(frozenset({server}), BWRAP)
    assert guard.shared_rules(frozenset({server}), BWRAP) == (rules,)
    monkeypatch.setitem(guard._rules, frozenset({1}), rules)  # it says so if it makes its own
    steps = []
    for script, argument in ((TRY, server), (TAKE, rules)):
        argv = guarded((guard.PYTHON, "-I", "-S", "-c", script, str(argument)), frozenset({1}), BWRAP)
        needs = Needs(argv, os.environ["PATH"], tmp_path / "state", tmp=tmp_path)
        boxed_argv = BWRAP.wrap(argv, box(needs, network=True))
        steps.append(Step("s", boxed_argv, tmp_path, processes.scrubbed_environment({}), 20))
    first, second = await run_job(tmp_path / "job", Job(tuple(steps), passed=(rules,)))
    assert first.stdout.read_text() == "[]\n"
    assert second.stdout.read_text() == "[]\n[-1]\n"


def test_rules_are_made_once_for_all_that_start_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def slow(closed: Iterable[int]) -> int:
        made.append(os.open("/dev/null", os.O_RDONLY))
        time.sleep(0.1)
        return made[-1]

    monkeypatch.setattr(closed_ports, "rules_but", slow)
    monkeypatch.setattr(guard, "_rules", {})
    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(lambda _: guard.shared_rules(frozenset({1}), BWRAP), range(4)))
    assert len(found) == len(made) == 1


def decision(machine: str, architecture: int, number: int, *arguments: int) -> int:
    """What the filter says of a call: 0 or the error, by running its instructions."""
    code, word, at = closed_ports.filter_of(machine), 0, 0
    facts = {0: number, 4: architecture, **{16 + 8 * place: value for place, value in enumerate(arguments)}}
    while True:
        kind, yes, no, value = code[at]
        if kind == closed_ports.RETURN:
            return 0 if value == closed_ports.ALLOW else value & 0xFFFF
        holds = {
            closed_ports.EQUAL: word == value,
            closed_ports.AT_LEAST: word >= value,
            closed_ports.ANY_BIT: bool(word & value),
        }
        if kind == closed_ports.LOAD:
            word = facts.get(value, 0)
        at += 1 + ((yes if holds[kind] else no) if kind in holds else 0)


@pytest.mark.parametrize("machine", closed_ports.MACHINES)
def test_every_table_of_calls_of_a_machine_is_filtered(machine: str) -> None:
    for architecture, opening, sending in closed_ports.MACHINES[machine]:
        assert (
            decision(machine, architecture, opening, 2, 1, 0) == decision(machine, architecture, opening, 1, 1, 0) == 0
        )
        assert decision(machine, architecture, opening, 2, 1, 262) == 93
        assert decision(machine, architecture, opening, 43, 1, 0) == 97
        for number, place in sending.items():
            flags = [0] * (place or 0)
            assert decision(machine, architecture, number, *flags, 0x4000) == (0 if place else 38)
            assert decision(machine, architecture, number, *flags, 0x20004000) == (95 if place else 38)
        assert [decision(machine, architecture, number) for number in (425, 1 << 30, 1)] == [38, 38, 0]
    assert decision(machine, 1, 1) == 38


def test_ports_are_those_of_the_records_and_what_their_processes_listen_on(home: Home) -> None:
    script = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"
    argv = (sys.executable, "-I", "-S", "-c", script)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        port = int(process.stdout.readline())
        home.engine.mkdir(parents=True)
        server = {"pid": process.pid, "port": 20001, "ui_port": 20002, "codec_port": 0}
        (home.engine / "server.json").write_text(json.dumps(server))
        (home.engine / "worker.json").write_text(json.dumps({"pid": 0, "engine_port": 443}))
        assert engine_ports(home) == {20001, 20002, port}
        (home.engine / "worker.json").write_text(json.dumps({"pid": process.pid, "engine_port": 7233}))
        process.communicate("\n")
    assert engine_ports(home) == {20001, 20002, 7233}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"port": "x", "pid": "y"}', '{"port": 65536, "pid": -1}'])
def test_records_that_cannot_be_read_close_nothing(home: Home, text: str) -> None:
    home.engine.mkdir(parents=True)
    (home.engine / "server.json").write_text(text)
    assert engine_ports(home) == frozenset()
    assert guarded(("true",), frozenset(), BWRAP) == ("true",)


@pytest.fixture
def old_kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One whose Landlock knows files alone."""
    monkeypatch.setattr(closed_ports, "abi", lambda: 3)
    guard._kernel.cache_clear()
    yield
    guard._kernel.cache_clear()


def test_on_an_old_kernel_commands_run_and_run_and_doctor_say_what_is_open(old_kernel: None) -> None:
    assert guarded(("true",), frozenset({1}), BWRAP) == ("true",)
    assert guard.shared_rules(frozenset({1}), BWRAP) == ()
    why = "the kernel's Landlock (ABI 3) has no rules for ports"
    assert sandbox_of(SandboxMode.AUTO) == (True, (f"{guard.OPEN_ENGINE} ({why})",))
    (found,) = [one for one in doctor._sandbox() if one.grade != "ok"]
    assert (found.grade, found.said) == ("warn", f"{guard.OPEN_ENGINE} ({why})")
    assert "Linux 6.7" in found.mend


class Other(Bubblewrap):
    """A launcher that has to be tried."""

    name = "other"


def test_a_launcher_whose_boxes_forbid_it_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert guard.flaw(Other()) == ""
    unknown_right = guard._program().replace("\nTCP = 3\n", "\nTCP = 1 << 40\n")
    monkeypatch.setattr(guard, "_program", lambda: unknown_right)
    refusing = Other()
    assert guarded(("true",), frozenset({1}), refusing) == ("true",)
    assert guard.flaw(refusing).startswith("not in boxes of other: orch: the engine's ports cannot be closed")


def test_an_image_of_the_users_is_not_asked_to_close_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCH_SANDBOX_IMAGE", "alpine")
    assert guard.flaw(Container("podman")).startswith("podman runs an image")
    assert guarded(("true",), frozenset({1}), Container("podman")) == ("true",)
