"""Payloads on their way to the engine: compressed, then encrypted (AES-256-GCM); both only where asked for.

A compressed payload is `binary/zlib` and an encrypted one `binary/encrypted` with the key's id in plain text, as in
Temporal's own samples. What is neither passes as it is: runs from before the first key stay readable.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter, DefaultFailureConverterWithEncodedAttributes, PayloadCodec
from temporalio.exceptions import ApplicationError

from ..activities.home import Home
from ..workflows.errors import RefusedError
from .keys import Key, KeyRing, load_keys, read_keys

ENCODING, KEY_ID = "encoding", "encryption-key-id"
ENCRYPTED, ZLIB = b"binary/encrypted", b"binary/zlib"

COMPRESS_OVER = 1024
"""Smaller payloads are not worth compressing."""

MOST_BYTES = 64 << 20
"""A payload that claims to be larger is a bomb: the engine takes 2 MiB, and ordinary text shrinks to a fifth."""

NONCE_BYTES = 12


class UnreadablePayloadError(RefusedError):
    """A payload that this process cannot decode: its key is unknown here, or it was changed."""


class TamperedPayloadError(UnreadablePayloadError):
    """A payload that no key can make readable: it was changed, or cut."""


class SealingCodec(PayloadCodec):
    """Compresses and encrypts as the settings say, and decodes whatever its keys fit.

    Attributes:
        ring: the keys; None: nothing is encrypted.
        compress: whether large payloads are compressed; always when they are encrypted.
        ends_runs: whether a payload that was tampered with ends its run, as in a worker, instead of raising.
    """

    def __init__(self, ring: KeyRing | None, *, compress: bool = False, ends_runs: bool = False) -> None:
        self.ring = ring
        self.compress = compress or ring is not None
        self.ends_runs = ends_runs

    @property
    def on(self) -> bool:
        """Whether anything is compressed or encrypted."""
        return self.compress

    @property
    def mode(self) -> str:
        """What the settings amount to, for a worker's record: one with other settings is replaced."""
        return f"encrypted {self.ring.fingerprint}" if self.ring else "compressed" if self.compress else "plain"

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Compress what is large, then encrypt."""
        return [self._seal(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Undo `encode`; UnreadablePayloadError (unknown key) or TamperedPayloadError where that cannot be."""
        try:
            return [self._open(payload) for payload in payloads]
        except TamperedPayloadError as error:
            if not self.ends_runs:
                raise
            raise ApplicationError(error.message, type="TamperedPayload", non_retryable=True) from error

    def _seal(self, payload: Payload) -> Payload:
        sealed = _squeezed(payload) if self.compress else payload
        return sealed if self.ring is None else _encrypted(sealed, self.ring.newest)

    def _open(self, payload: Payload) -> Payload:
        if payload.metadata.get(ENCODING) == ENCRYPTED:
            payload = _decrypted(payload, self._key(payload.metadata.get(KEY_ID, b"").decode(errors="replace")))
        return _inflated(payload) if payload.metadata.get(ENCODING) == ZLIB else payload

    def _key(self, name: str) -> Key:
        """The key of this id; the file is read anew for one that came after this process started."""
        if self.ring is None:
            raise UnreadablePayloadError(
                f"a payload is encrypted with key {name!r}, and there are no keys here",
                hint="set ORCH_KEYS to a copy of the key file",
            )
        if (key := self.ring.find(name)) is None:
            self.ring = read_keys(self.ring.path)
            key = self.ring.find(name)
        if key is None:
            raise UnreadablePayloadError(
                f"a payload is encrypted with key {name!r}, which {self.ring.path} does not hold",
                hint="put the key back from the host that has it; it is read without a restart",
            )
        return key


def _squeezed(payload: Payload) -> Payload:
    if len(payload.data) < COMPRESS_OVER:
        return payload
    data = zlib.compress(payload.SerializeToString())
    return Payload(metadata={ENCODING: ZLIB}, data=data) if len(data) < len(payload.data) else payload


def _inflated(payload: Payload) -> Payload:
    inflating = zlib.decompressobj()
    try:
        data = inflating.decompress(payload.data, MOST_BYTES)
        if not inflating.eof:
            _tampered("it is cut, or far too large")
        return Payload.FromString(data)
    except (zlib.error, DecodeError):
        _tampered("it cannot be unpacked")


def _encrypted(payload: Payload, key: Key) -> Payload:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # late: most clients encrypt nothing

    nonce = os.urandom(NONCE_BYTES)
    data = nonce + AESGCM(key.secret).encrypt(nonce, payload.SerializeToString(), key.id.encode())
    return Payload(metadata={ENCODING: ENCRYPTED, KEY_ID: key.id.encode()}, data=data)


def _decrypted(payload: Payload, key: Key) -> Payload:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce, sealed = payload.data[:NONCE_BYTES], payload.data[NONCE_BYTES:]
    try:
        return Payload.FromString(AESGCM(key.secret).decrypt(nonce, sealed, key.id.encode()))
    except (InvalidTag, ValueError, DecodeError):
        _tampered(f"key {key.id!r} does not fit it")


def _tampered(why: str) -> NoReturn:
    raise TamperedPayloadError(
        f"a payload was changed on its way or in the engine's database: {why}",
        hint="restore the database or the key of this id; the run itself cannot go on",
    ) from None


def load_codec(home: Home, environ: Mapping[str, str] = os.environ, *, ends_runs: bool = False) -> SealingCodec:
    """The codec that the key file and `ORCH_COMPRESS` ask for; raises RefusedError as `load_keys` does."""
    return SealingCodec(load_keys(home, environ), compress=_compress(environ), ends_runs=ends_runs)


def _compress(environ: Mapping[str, str]) -> bool:
    text = environ.get("ORCH_COMPRESS", "")
    if text not in {"", "0", "1"}:
        raise RefusedError(f"ORCH_COMPRESS is {text!r}", hint="1 compresses large payloads, 0 does not")
    return text == "1"


def converter(codec: SealingCodec) -> DataConverter:
    """Pydantic models as payloads, through the codec; with keys the words of failures are payloads, too.

    The codec is there without keys, too: a worker that lacks them then waits instead of ending runs it cannot read.
    """
    if codec.ring is None:
        return replace(pydantic_data_converter, payload_codec=codec)
    return replace(
        pydantic_data_converter,
        payload_codec=codec,
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )
