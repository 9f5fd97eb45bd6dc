"""Two hosts on one machine: a network namespace each, joined by one cable, and nothing else in common but a folder."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Host:
    """A host: its namespaces, its address, its state directory.

    Attributes:
        name: names the state directory.
        address: its end of the cable.
        holder: the process that keeps its network namespace.
        state: its state directory.
        env: what all of its processes are started with.
        started: what was started there.
    """

    name: str
    address: str
    holder: int
    state: Path
    env: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def argv(self, *command: str) -> list[str]:
        """A command that runs on this host."""
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", f"--target={self.holder}", "--net", *user, "--", *command]

    def run(self, *command: str) -> str:
        """Run a command on this host; what it printed."""
        done = subprocess.run(self.argv(*command), env=self.env, capture_output=True, check=False, timeout=60)
        assert not done.returncode, f"{command}: {done.stderr.decode()}"
        return done.stdout.decode()

    def start(self, *command: str, log: Path) -> None:
        """Start a process on this host."""
        with log.open("ab") as out:
            self.started.append(subprocess.Popen(self.argv(*command), env=self.env, stdout=out, stderr=out))

    def kill(self) -> int:
        """Kill everything that runs on this host, as a power cut does; how many processes that were."""
        network = Path(f"/proc/{self.holder}/ns/net").readlink()
        killed = 0
        while found := [pid for pid in _others(self.holder) if _network(pid) == network]:
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
            for process in self.started:
                process.poll()
            time.sleep(0.05)
        return killed


@contextmanager
def two_hosts(folder: Path) -> Iterator[tuple[Host, Host]]:
    """Two hosts that reach one another and nobody else."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    hold = ["sh", "-c", "echo; exec sleep 300"]
    first = _held(["unshare", "--net", *user, *hold])
    one = Host("state-a", "10.77.0.1", first.pid, folder / "state-a")
    second = _held(one.argv("unshare", "--net", *hold))
    two = Host("state-b", "10.77.0.2", second.pid, folder / "state-b")
    try:
        one.run("ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", str(second.pid))
        for host in (one, two):
            host.run("ip", "address", "add", f"{host.address}/24", "dev", "cable")
            host.run("ip", "link", "set", "cable", "up")
            host.run("ip", "link", "set", "lo", "up")
            host.state.mkdir(parents=True)
            (host.state / "host-id").write_text(host.name)
        yield one, two
    finally:
        for host, holder in ((two, second), (one, first)):
            host.kill()
            holder.kill()
            holder.wait()
            for process in host.started:
                process.wait()


def _held(argv: list[str]) -> subprocess.Popen[bytes]:
    """A process that keeps a namespace, once it is in it."""
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n"
    return process


def _others(holder: int) -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if int(path.name) not in {holder, os.getpid()}]


def _network(pid: int) -> Path | None:
    try:
        return Path(f"/proc/{pid}/ns/net").readlink()
    except OSError:
        return None
