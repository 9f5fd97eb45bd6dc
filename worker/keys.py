"""The keys that payloads are encrypted with: one a line, `id base64 created`; the last encrypts, all decrypt."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ..activities.home import Home
from ..workflows.errors import RefusedError

KEY_BYTES = 32
"""AES-256."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True)
class Key:
    """One key; its secret is in no repr, log or error.

    Attributes:
        id: its name, which every payload carries in plain text.
        secret: 32 bytes.
        created: ISO 8601, UTC.
    """

    id: str
    secret: bytes = field(repr=False)
    created: str = ""


@dataclass(frozen=True)
class KeyRing:
    """The keys of one file, oldest first; never empty."""

    path: Path
    keys: tuple[Key, ...]

    @property
    def newest(self) -> Key:
        """The key that encrypts."""
        return self.keys[-1]

    def find(self, name: str) -> Key | None:
        """The key of this id."""
        return next((key for key in self.keys if key.id == name), None)

    def label(self, text: str) -> str:
        """A short name for a text that says nothing of it to whoever lacks the key; another one after a rotation."""
        return hmac.new(self.newest.secret, text.encode(), hashlib.sha256).hexdigest()[:16]

    @property
    def fingerprint(self) -> str:
        """Tells two rings apart, and nothing about the keys."""
        return self.label("\n".join(key.id for key in self.keys))


def key_file(home: Home, environ: Mapping[str, str] = os.environ) -> Path:
    """Where the keys are: `ORCH_KEYS`, else `keys` in the state directory."""
    chosen = environ.get("ORCH_KEYS")
    return Path(chosen).expanduser().absolute() if chosen else home.root / "keys"


def load_keys(home: Home, environ: Mapping[str, str] = os.environ) -> KeyRing | None:
    """The keys, or None when payloads are not encrypted.

    Raises RefusedError when keys are expected and missing, open to others, or not readable as keys.
    """
    path = key_file(home, environ)
    if environ.get("ORCH_KEYS") or _mark(home).exists() or os.path.lexists(path):
        return read_keys(path)
    return None


def read_keys(path: Path) -> KeyRing:
    """Read a key file; RefusedError says what is wrong with it and never shows what it holds."""
    try:
        with path.open("rb") as file:
            _require_private(path, os.fstat(file.fileno()))
            lines = file.read().decode("ascii").splitlines()
    except FileNotFoundError:
        raise RefusedError(
            f"the key file {path} is missing: what is encrypted with its keys cannot be read",
            hint="put it back (`orch keys new` makes a new one; to go on in plain text, unset ORCH_KEYS and remove "
            "the file `encrypted` in the state directory)",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not ASCII text"
        raise RefusedError(f"the key file {path} cannot be read: {why}", hint="make it a readable key file") from None
    keys = tuple(_key(path, number, line) for number, line in enumerate(lines, 1) if line.strip())
    if not keys:
        raise RefusedError(f"the key file {path} holds no key", hint="orch keys new")
    if len({key.id for key in keys}) < len(keys):
        raise RefusedError(f"the key file {path} names a key twice", hint="give each key an id of its own")
    return KeyRing(path, keys)


def _require_private(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise RefusedError(f"the key file {path} is no file", hint="name a file in ORCH_KEYS")
    if status.st_uid != os.geteuid():
        raise RefusedError(f"the key file {path} belongs to another user", hint="own it: chown")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise RefusedError(f"the key file {path} is open to other users", hint=f"chmod 600 {path}")


def _key(path: Path, number: int, line: str) -> Key:
    name, text, *rest = (*line.split(), "", "")
    try:
        secret = base64.b64decode(text, validate=True)
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES or not _ID.fullmatch(name):
        raise RefusedError(
            f"{path}:{number}: not a key", hint=f"a line is an id, {KEY_BYTES} bytes in base64 and a time"
        )
    return Key(name, secret, rest[0])


def add_key(home: Home, environ: Mapping[str, str] = os.environ) -> Key:
    """Make a key that encrypts from now on; the file is made with it. Raises RefusedError as `read_keys` does."""
    path = key_file(home, environ)
    if path.exists() and path.stat().st_size:
        read_keys(path)
    now = datetime.now(UTC)
    key = Key(
        f"k{now:%Y%m%d}-{secrets.token_hex(3)}", secrets.token_bytes(KEY_BYTES), now.isoformat(timespec="seconds")
    )
    try:
        _append(path, _line(key))
        if path == home.root / "keys":
            _mark(home).touch(mode=0o600)
    except OSError as error:
        raise RefusedError(
            f"the key file {path} cannot be written: {error.strerror}", hint="set ORCH_KEYS to another place"
        ) from error
    return key


def retire_key(home: Home, name: str, environ: Mapping[str, str] = os.environ) -> None:
    """Forget a key, so that nobody can read any more what was encrypted with it; the newest is refused."""
    path = key_file(home, environ)
    ring = read_keys(path)
    if ring.find(name) is None:
        raise RefusedError(f"no key {name}", hint="orch keys list")
    if ring.newest.id == name:
        raise RefusedError(f"{name} is the key that encrypts", hint="make another one first: orch keys new")
    aside = path.with_name(f"{path.name}.{secrets.token_hex(3)}.new")
    _append(aside, "".join(_line(key) for key in ring.keys if key.id != name))
    aside.replace(path)


def _append(path: Path, text: str) -> None:
    """Add to a private file in one write: two writers both keep their keys."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"  # an editor left out the last line's end
        os.write(descriptor, (f"\n{text}" if torn else text).encode("ascii"))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _line(key: Key) -> str:
    return f"{key.id} {base64.b64encode(key.secret).decode()} {key.created}\n"


def _mark(home: Home) -> Path:
    """Says that this state directory has keys, so that a lost file is noticed and nothing goes on in plain text."""
    return home.root / "encrypted"
