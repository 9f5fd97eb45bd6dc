"""The only door to an artifact store: any file system that fsspec knows, with typed errors."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ...workflows.errors import HostFaultError, OrchError, RefusedError

HINT = "check that it is there and may be written, and that this host has its credentials in the environment"


class Stored(NamedTuple):
    """A file: its bytes, and when it was written, in Unix time."""

    size: int
    used: float


class Depot:
    """One artifact store, by its URL; names are relative to it and separated by `/`.

    Every method raises HostFaultError when the store cannot be reached for now, and RefusedError when it never can.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._shown = urlsplit(url)._replace(query="").geturl()

    def probe(self) -> None:
        """Write, read and remove a small file; RefusedError when that does not work."""
        name, text = f".probe-{secrets.token_hex(6)}", secrets.token_bytes(8)
        try:
            self.write(name, text)
            same = self.read(name) == text
            with self._reached("written"):
                self._fs.rm_file(self._at(name))
        except HostFaultError as error:
            raise RefusedError(error.message, hint=error.hint) from error
        if not same:
            raise RefusedError(f"the artifact store {self._shown} gives back other bytes than it was given", hint=HINT)

    def read(self, name: str) -> bytes | None:
        """A small file; None when there is none."""
        with self._reached("read"):
            try:
                return bytes(self._fs.cat_file(self._at(name)))
            except FileNotFoundError:
                self._require_root()
                return None

    def write(self, name: str, data: bytes) -> None:
        """Write a small file whole: whoever reads finds the old content or the new."""
        with self._reached("written"), self._whole(name) as aside:
            self._fs.pipe_file(aside, data)

    def put(self, name: str, file: Path) -> None:
        """Upload a file whole."""
        with self._reached("written"), self._whole(name) as aside:
            self._fs.put_file(str(file), aside)

    def get(self, name: str, file: Path, *, sha256: str) -> None:
        """Download a file; HostFaultError when it is not there or its content is not the one that was published."""
        with self._reached("read"):
            self._fs.get_file(self._at(name), str(file))
        if digest(file) != sha256:
            file.unlink()
            raise HostFaultError(f"{name} in the artifact store {self._shown} is damaged", hint="publish it again")

    def files(self, folder: str) -> dict[str, Stored]:
        """All files below a folder, by name."""
        with self._reached("read"):
            self._fs.invalidate_cache()
            self._require_root()
            at = self._at("")
            found: dict[str, dict[str, Any]] = self._fs.find(self._at(folder), detail=True)
            return {
                name.removeprefix(at): Stored(int(facts["size"]), self._modified(name, facts))
                for name, facts in found.items()
            }

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, one after the other; what is not there any more is no error. Emptied folders go as well."""
        for name in names:
            with self._reached("written"), suppress(FileNotFoundError):
                self._fs.rm_file(self._at(name))
            self._drop_empty(name.rpartition("/")[0])

    def folder(self, name: str) -> Path | None:
        """Where a folder is on a disk; None for other kinds of stores."""
        return Path(self._at(name)) if self._on_disk else None

    def _drop_empty(self, folder: str) -> None:
        while self._on_disk and folder:
            try:
                Path(self._at(folder)).rmdir()
            except OSError:
                return
            folder = folder.rpartition("/")[0]

    def _modified(self, path: str, facts: dict[str, Any]) -> float:
        """Unix time; each kind of store has its own word for it."""
        when = facts.get("mtime") or facts.get("LastModified") or self._fs.modified(path)
        return float(when) if isinstance(when, int | float) else float(when.timestamp())

    @contextmanager
    def _whole(self, name: str) -> Iterator[str]:
        """Where to write: on a disk beside the name, moved there when it is whole; object stores write whole anyway."""
        path = self._at(name)
        if not self._on_disk:
            yield path
            return
        self._require_root()
        self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        aside = f"{path}.{secrets.token_hex(4)}.new"
        try:
            yield aside
            Path(aside).replace(path)
        finally:
            Path(aside).unlink(missing_ok=True)

    def _require_root(self) -> None:
        """A shared folder that is not mounted must not be made on the disk below; nor is a lost bucket an empty one."""
        if self._on_disk and not self._fs.isdir(self._root):
            raise FileNotFoundError(f"{self._root}: no such folder")
        bucket = self._root.partition("/")[0]
        if not self._on_disk and bucket and not self._fs.exists(bucket):
            raise FileNotFoundError(f"{bucket}: no such bucket")

    def _at(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    @property
    def _on_disk(self) -> bool:
        return urlsplit(self._url).scheme == "file"

    @property
    def _root(self) -> str:
        return self._opened[1]

    @property
    def _fs(self) -> Any:
        return self._opened[0]

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        check_url(self._url)
        from fsspec.core import url_to_fs  # only runs with an artifact store pay for it

        try:
            opened: tuple[Any, str] = url_to_fs(self._url)
        except (ImportError, ValueError) as error:
            hint = "use file:// or s3://; s3:// needs `pip install orch[s3]`"
            raise RefusedError(f"the artifact store {self._shown} cannot be used: {error}", hint=hint) from error
        return opened

    @contextmanager
    def _reached(self, how: str) -> Iterator[None]:
        try:
            yield
        except OrchError:
            raise
        except Exception as error:  # each kind of store fails in its own way
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise HostFaultError(f"the artifact store {self._shown} cannot be {how}: {why}", hint=HINT) from error


def check_url(url: str) -> None:
    """Refuse a URL that names no artifact store, or that holds a secret: it is written to ledgers."""
    parts = urlsplit(url)
    if not parts.scheme or (parts.scheme == "file" and (parts.netloc or not parts.path.startswith("/"))):
        hint = "give a URL: file:///shared/folder or s3://bucket/prefix"
        raise RefusedError(f"{url[:80]!r} is no artifact store", hint=hint)
    if "@" in parts.netloc or parts.query:
        raise RefusedError(
            f"the URL of the artifact store at {parts.hostname or parts.path} holds more than its place",
            hint="credentials and options belong in the environment or the profile of each host",
        )


def digest(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
