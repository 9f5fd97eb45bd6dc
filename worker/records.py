"""What the engine writes down about its processes: `server.json` and `worker.json`."""

from __future__ import annotations

import functools
import hashlib
import os
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from ..activities import processes
from ..activities.home import Home
from ..workflows.model.base import Value
from .state import write_aside

PACKAGE = Path(__file__).resolve().parents[1]
FOLDERS = ("workflows", "activities", "worker", "cli")

NAMESPACE = "default"
"""The local engine's namespace."""


@functools.cache
def version() -> str:
    """The version with a digest of the code, as a local version (PEP 440): a worker of another one is replaced.

    The digest makes an update count that did not change the number, as in a checkout.
    """
    code = hashlib.sha256()
    for path in sorted(path for folder in FOLDERS for path in (PACKAGE / folder).rglob("*.py")):
        code.update(path.read_bytes())
    return f"{metadata.version('orch')}+{code.hexdigest()[:8]}"


class ProcessRecord(Value):
    """One background process; pid and start ticks together name it for good."""

    pid: int = 0
    """0: not started yet."""
    ticks: int = 0
    version: str
    """Of `orch` (worker) or of the `temporal` binary (server)."""
    started_at: datetime | None = None

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        return self.pid > 0 and processes.alive(self.pid, self.ticks)


class ServerRecord(ProcessRecord):
    """The local engine's server; its ports stay recorded while it is stopped, so that links survive."""

    port: int
    ui_port: int
    codec_port: int = 0
    """Where the worker decodes payloads for the Web UI; 0: they never were encoded. Kept as the others are."""
    namespace: str = NAMESPACE

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    @property
    def ui_url(self) -> str:
        """Where the Web UI is."""
        return f"http://127.0.0.1:{self.ui_port}"

    @property
    def codec_url(self) -> str:
        """Where the Web UI has payloads decoded; empty when it need not."""
        return f"http://127.0.0.1:{self.codec_port}" if self.codec_port else ""


class WorkerRecord(ProcessRecord):
    """The worker that serves this state directory."""

    identity: str
    codec: str = "plain"
    """How it encodes payloads (`SealingCodec.mode`)."""


R = TypeVar("R", bound=ProcessRecord)


def read_server(home: Home) -> ServerRecord | None:
    """The recorded server, running or not."""
    return _read(home.engine / "server.json", ServerRecord)


def read_worker(home: Home) -> WorkerRecord | None:
    """The recorded worker, running or not."""
    return _read(home.engine / "worker.json", WorkerRecord)


def write_server(home: Home, record: ServerRecord) -> None:
    """Record the server."""
    write_aside(home.engine / "server.json", record.model_dump_json(indent=2) + "\n")


def worker_identity(host: str, labels: Iterable[str]) -> str:
    """What the engine calls this process: `HOST@PID-xxxx[ LABEL,…]`; two containers may have one id and one pid."""
    return " ".join([f"{host}@{os.getpid()}-{secrets.token_hex(2)}", ",".join(sorted(labels))]).rstrip()


def labels_of(identity: str) -> frozenset[str]:
    """The labels of the host that a worker serves, by its identity."""
    return frozenset(label for label in identity.partition(" ")[2].split(",") if label)


def record_this_worker(home: Home, *, identity: str, codec: str) -> None:
    """Record the calling process as the worker of its state directory."""
    pid = os.getpid()
    ticks = processes.start_ticks(pid) or 0
    this = {"pid": pid, "ticks": ticks, "version": version(), "started_at": now()}
    record = WorkerRecord(**this, identity=identity, codec=codec)
    write_aside(home.engine / "worker.json", record.model_dump_json(indent=2) + "\n")


def now() -> datetime:
    """The time, in whole seconds UTC."""
    return datetime.now(UTC).replace(microsecond=0)


def _read(path: Path, model: type[R]) -> R | None:
    """A record, or None when there is none or it cannot be read: then it is made anew."""
    try:
        return model.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
