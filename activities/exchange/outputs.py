"""What agents printed on another host: prompts, outputs and verdicts of an attempt, packed and published."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

from ...workflows.model.attempt import AttemptKey
from ...workflows.model.placement import Exchange
from ..home import Home
from .depot import Depot

PATTERNS = (
    "prompt*.md",
    *(
        f"{job}/*-std{stream}"
        for job in ("setup", "agent*", "measure/setup", "measure/rungs")
        for stream in ("out", "err")
    ),
    "measure/verdict.json",
)
"""Below an attempt's folder: what `orch logs` reads; no folder that an agent or a rung may write."""

FILE_LIMIT = 4 << 20
"""Bytes of one file, half of them from its start and half from its end."""

TOTAL_LIMIT = 64 << 20
"""Bytes of all files of an attempt, before they are compressed; what comes later in the order is left out."""


def publish_outputs(home: Home, exchange: Exchange, key: AttemptKey) -> None:
    """Publish what an attempt printed. Idempotent: the newest stands."""
    folder = home.attempt(key)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", preset=1) as archive:
        left = TOTAL_LIMIT
        for path in _files(folder):
            data = _bounded(path)
            left -= len(data)
            if left < 0:
                break
            entry = tarfile.TarInfo(str(path.relative_to(folder)))
            entry.size, entry.mtime = len(data), int(path.stat().st_mtime)
            archive.addfile(entry, io.BytesIO(data))
    Depot(exchange.url).write(_name(exchange, key), packed.getvalue())


def fetch_outputs(home: Home, exchange: Exchange, key: AttemptKey) -> bool:
    """Lay an attempt's published outputs where this host would have them; False when there are none."""
    packed = Depot(exchange.url).read(_name(exchange, key))
    if packed is None:
        return False
    folder = home.attempt(key)
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:xz") as archive:
        archive.extractall(folder, filter="data")
    return True


def _files(folder: Path) -> Iterator[Path]:
    return (path for pattern in PATTERNS for path in sorted(folder.glob(pattern)) if path.is_file())


def _bounded(path: Path) -> bytes:
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= FILE_LIMIT:
            return file.read(FILE_LIMIT)
        head = file.read(FILE_LIMIT // 2)
        file.seek(size - FILE_LIMIT // 2)
        return head + f"\n[{size - FILE_LIMIT} bytes left out]\n".encode() + file.read(FILE_LIMIT // 2)


def _name(exchange: Exchange, key: AttemptKey) -> str:
    return f"{exchange.key}/outputs/{key.run}/{key.name}.tar.xz"
