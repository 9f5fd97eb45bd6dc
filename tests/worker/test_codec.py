"""Payloads through the codec: the same comes back, nothing readable leaves, what does not fit is refused by type."""

from __future__ import annotations

import asyncio
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload
from temporalio.exceptions import ApplicationError

from orch.activities.home import Home
from orch.worker import codec as codecs
from orch.worker.codec import (
    ENCODING,
    ENCRYPTED,
    KEY_ID,
    ZLIB,
    SealingCodec,
    TamperedPayloadError,
    UnreadablePayloadError,
    converter,
    load_codec,
)
from orch.worker.keys import Key, KeyRing, add_key, load_keys
from orch.worker.state import open_state
from orch.workflows.errors import RefusedError

OLD, NEW = Key("k-old", b"o" * 32), Key("k-new", b"n" * 32)
PATH = Path("/nowhere/keys")
WORD = b"quokka"

payloads = st.lists(
    st.builds(
        lambda metadata, data, times: Payload(metadata=metadata, data=data * times),
        st.dictionaries(st.sampled_from(["encoding", "messageType", "ü"]), st.binary(max_size=20), max_size=3),
        st.binary(max_size=300),
        st.sampled_from([0, 1, 30]),
    ).filter(lambda payload: payload.metadata.get("encoding") not in {ENCRYPTED, ZLIB}),
    max_size=4,
)


def ring(*keys: Key) -> KeyRing:
    return KeyRing(PATH, keys)


def encode(codec: SealingCodec, *given: Payload) -> list[Payload]:
    return asyncio.run(codec.encode(given))


def decode(codec: SealingCodec, *given: Payload) -> list[Payload]:
    return asyncio.run(codec.decode(given))


def plain(data: bytes = WORD * 400) -> Payload:
    return Payload(metadata={ENCODING: b"json/plain"}, data=data)


@settings(max_examples=60, deadline=None)
@given(payloads, st.sampled_from(["plain", "compressed", "encrypted"]))
def test_what_was_encoded_comes_back_as_it_was(given: list[Payload], how: str) -> None:
    codec = SealingCodec(ring(OLD, NEW) if how == "encrypted" else None, compress=how == "compressed")

    sealed = encode(codec, *given)

    assert decode(codec, *sealed) == given
    assert codec.mode.startswith(how)
    if how == "encrypted":
        assert {payload.metadata[ENCODING] for payload in sealed} <= {ENCRYPTED}
        assert {payload.metadata[KEY_ID] for payload in sealed} <= {b"k-new"}


def test_an_encrypted_payload_shows_neither_its_words_nor_its_encoding_and_is_never_the_same_twice() -> None:
    codec = SealingCodec(ring(NEW))

    once, again = encode(codec, plain(WORD), plain(WORD))

    assert WORD not in once.SerializeToString()
    assert b"json/plain" not in once.SerializeToString()
    assert once.data != again.data


def test_large_payloads_are_compressed_before_they_are_encrypted() -> None:
    (sealed,) = encode(SealingCodec(ring(NEW)), plain(WORD * 4000))

    assert len(sealed.data) < 1000


def test_compression_without_keys_leaves_small_and_dense_payloads_alone() -> None:
    codec = SealingCodec(None, compress=True)
    dense = plain(zlib.compress(bytes(range(256)) * 8) * 40)

    small, large = encode(codec, plain(WORD), plain())

    assert small == plain(WORD)
    assert large.metadata[ENCODING] == ZLIB
    assert len(large.data) < len(plain().data) / 10
    assert decode(SealingCodec(None), small, large) == [plain(WORD), plain()]
    assert decode(codec, *encode(codec, dense)) == [dense]


def test_payloads_from_before_the_first_key_and_under_older_keys_stay_readable() -> None:
    older = encode(SealingCodec(ring(OLD)), plain())

    assert decode(SealingCodec(ring(OLD, NEW)), *older, plain()) == [plain(), plain()]


def test_an_unknown_key_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path)
    open_state(home)
    add_key(home, {})
    sealed = encode(SealingCodec(ring(NEW)), plain())

    with pytest.raises(UnreadablePayloadError, match=r"'k-new', which .* does not hold") as unknown:
        decode(load_codec(home, {}), *sealed)
    with pytest.raises(UnreadablePayloadError, match="there are no keys here"):
        decode(SealingCodec(None), *sealed)

    assert not isinstance(unknown.value, TamperedPayloadError)
    assert isinstance(unknown.value, RefusedError)
    assert "put the key back" in unknown.value.hint


def test_a_key_that_comes_later_is_found_without_a_restart(tmp_path: Path) -> None:
    home = Home(tmp_path)
    open_state(home)
    add_key(home, {})
    early = load_codec(home, {})
    key = add_key(home, {})

    sealed = encode(load_codec(home, {}), plain())

    assert decode(early, *sealed) == [plain()]
    assert encode(early, plain())[0].metadata[KEY_ID] == key.id.encode()


def tampered() -> list[Payload]:
    (good,) = encode(SealingCodec(ring(OLD, NEW)), plain())
    flipped = good.data[:-1] + bytes([good.data[-1] ^ 1])
    squeezed = zlib.compress(plain().SerializeToString())
    return [
        Payload(metadata=good.metadata, data=flipped),
        Payload(metadata=good.metadata, data=good.data[:20]),
        Payload(metadata=good.metadata, data=b""),
        Payload(metadata={**good.metadata, KEY_ID: b"k-old"}, data=good.data),
        Payload(metadata={ENCODING: ZLIB}, data=squeezed[:-8]),
        Payload(metadata={ENCODING: ZLIB}, data=b"no stream"),
        Payload(metadata={ENCODING: ZLIB}, data=zlib.compress(b"\xff\xff\xff no payload")),
    ]


@pytest.mark.parametrize("payload", tampered())
def test_a_tampered_payload_is_refused_and_ends_a_run_where_a_worker_reads_it(payload: Payload) -> None:
    with pytest.raises(TamperedPayloadError, match="changed"):
        decode(SealingCodec(ring(OLD, NEW)), payload)

    with pytest.raises(ApplicationError) as ending:
        decode(SealingCodec(ring(OLD, NEW), ends_runs=True), payload)
    assert (ending.value.type, ending.value.non_retryable) == ("TamperedPayload", True)


def test_a_payload_that_unpacks_to_far_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    (bomb,) = encode(SealingCodec(None, compress=True), plain(b"0" * 100_000))
    monkeypatch.setattr(codecs, "MOST_BYTES", 50_000)

    with pytest.raises(TamperedPayloadError, match="far too large"):
        decode(SealingCodec(None), bomb)


async def test_the_words_of_a_failure_are_encrypted_with_keys_and_plain_without() -> None:
    from temporalio.api.failure.v1 import Failure

    shown = {}
    for name, codec in (("keys", SealingCodec(ring(NEW))), ("none", SealingCodec(None))):
        failure = Failure()
        await converter(codec).encode_failure(ApplicationError("quokka", type="Odd"), failure)
        shown[name] = failure.SerializeToString()
        assert str(await converter(codec).decode_failure(failure)) == "Odd: quokka"

    assert WORD not in shown["keys"]
    assert WORD in shown["none"]


@pytest.mark.parametrize(
    ("environ", "keys", "mode"),
    [({}, 0, "plain"), ({"ORCH_COMPRESS": "1"}, 0, "compressed"), ({"ORCH_COMPRESS": "0"}, 1, "encrypted")],
)
def test_settings_say_what_is_encoded(tmp_path: Path, environ: dict[str, str], keys: int, mode: str) -> None:
    home = Home(tmp_path)
    open_state(home)
    for _ in range(keys):
        add_key(home, environ)

    codec = load_codec(home, environ)

    assert codec.mode.split()[0] == mode
    assert codec.on is (mode != "plain")
    assert codec.ring == load_keys(home, environ)


def test_a_setting_that_means_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="ORCH_COMPRESS is 'yes'"):
        load_codec(Home(tmp_path), {"ORCH_COMPRESS": "yes"})
