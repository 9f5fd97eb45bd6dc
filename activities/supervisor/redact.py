"""Secrets in output: every spelling of a value becomes the name it has, `[NAME]`, also where it is cut in two."""

from __future__ import annotations

import binascii
import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SHORTEST = 6
"""Characters of a value below which it is no secret: replacing it would spoil what has nothing to do with it."""


class Redactor:
    """Replaces values; as a stream it holds back an end that may be the beginning of one."""

    def __init__(self, hidden: Mapping[str, str]) -> None:
        """`hidden` is name → value."""
        forms = {form: f"[{name}]".encode() for name, value in hidden.items() for form in _spellings(value)}
        self._forms = sorted(forms.items(), key=lambda pair: -len(pair[0]))  # the longest first: one may hold another
        self._held = b""

    def text(self, text: str) -> str:
        """A whole text without the values."""
        return self.whole(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def whole(self, data: bytes) -> bytes:
        """All of something without the values."""
        for form, name in self._forms:
            if form in data:
                data = data.replace(form, name)
        return data

    def feed(self, data: bytes) -> bytes:
        """What can be told of the next bytes of a stream."""
        if not self._forms:
            return data
        data = self.whole(self._held + data)
        cut = len(data) - max(_begun(data, form) for form, _ in self._forms)
        self._held = data[cut:]
        return data[:cut]

    def end(self) -> bytes:
        """What was held back of a stream that has ended."""
        held, self._held = self._held, b""
        return held


def _begun(data: bytes, form: bytes) -> int:
    """How many bytes at the end of `data` may be the beginning of `form`."""
    at = data.find(form[:1], max(0, len(data) - len(form) + 1))
    while at >= 0 and not form.startswith(data[at:]):
        at = data.find(form[:1], at + 1)
    return 0 if at < 0 else len(data) - at


def _spellings(value: str) -> Iterator[bytes]:
    """The value as it is, in JSON, in a URL, and in Base64 wherever it stands in what was encoded."""
    if len(value) < SHORTEST:
        return
    raw = value.encode("utf-8", "surrogateescape")
    lines = [line for line in value.splitlines() if len(line) >= SHORTEST] if "\n" in value else []
    for text in (value, *lines):
        yield text.encode("utf-8", "surrogateescape")
        yield json.dumps(text)[1:-1].encode()
        yield json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogateescape")
    for unquoted in (b"-._~", b"-._~ ", b"-._~/"):
        yield b"".join(_in_url(byte, unquoted) for byte in raw)
    for before in range(3):
        # Only the characters that the value alone decides: the first and the last depend on its neighbours.
        encoded = binascii.b2a_base64(b"\0" * before + raw, newline=False)[(0, 2, 3)[before] :].rstrip(b"=")
        whole = encoded if (before + len(raw)) % 3 == 0 else encoded[:-1]
        if len(whole) >= SHORTEST:
            yield whole
            yield whole.translate(bytes.maketrans(b"+/", b"-_"))


def _in_url(byte: int, unquoted: bytes) -> bytes:
    if byte == 0x20 and byte in unquoted:
        return b"+"
    one = bytes((byte,))
    return one if one.isalnum() or byte in unquoted else b"%%%02X" % byte
