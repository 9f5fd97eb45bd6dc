"""The codec server over real HTTP: what it decodes, for whom, and where it refuses to listen."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from google.protobuf import json_format
from temporalio.api.common.v1 import Payload, Payloads

from orch.worker.codec import SealingCodec
from orch.worker.codec_server import CodecSite, serving
from orch.worker.keys import Key, KeyRing
from orch.workflows.errors import RefusedError

from .certificates import Authority

CODEC = SealingCodec(KeyRing(Path("/nowhere/keys"), (Key("k1", b"k" * 32),)))
UI = "http://127.0.0.1:8080"
PLAIN = Payload(metadata={"encoding": b"json/plain"}, data=b'"quokka"')


def site(**given: Any) -> CodecSite:
    return CodecSite(0, origins=(UI,), **given)


async def body(*payloads: Payload) -> str:
    return json_format.MessageToJson(Payloads(payloads=payloads))


async def ask(url: str, path: str = "/decode", data: str | None = None, **headers: str) -> tuple[int, str, str]:
    """Status, text, and which origin may read the answer."""
    content = await body(*await CODEC.encode([PLAIN])) if data is None else data
    named = {"Origin": UI, **{name.replace("_", "-"): value for name, value in headers.items()}}
    async with (
        ClientSession() as session,
        session.post(url + path, data=content, headers=named, ssl=False) as answer,
    ):
        return answer.status, await answer.text(), answer.headers.get("Access-Control-Allow-Origin", "")


async def test_what_is_encrypted_is_decoded_and_encoded_again() -> None:
    async with serving(CODEC, site()) as url:
        status, text, allowed = await ask(url)
        decoded = json_format.Parse(text, Payloads())
        _, again, _ = await ask(url, "/encode", text)

    assert (status, list(decoded.payloads), allowed) == (200, [PLAIN], UI)
    assert await CODEC.decode(json_format.Parse(again, Payloads()).payloads) == [PLAIN]
    assert "quokka" not in again


async def test_a_browser_is_told_that_the_web_ui_may_ask() -> None:
    async with (
        serving(CODEC, site()) as url,
        ClientSession() as session,
        session.options(f"{url}/decode", headers={"Origin": UI}) as answer,
    ):
        assert answer.status == 204
        assert answer.headers["Access-Control-Allow-Origin"] == UI
        assert "x-namespace" in answer.headers["Access-Control-Allow-Headers"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:8081"},
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Host": "evil.example:8081"},
    ],
)
async def test_no_other_page_may_ask(headers: dict[str, str]) -> None:
    async with serving(CODEC, site()) as url:
        status, text, allowed = await ask(url, **headers)

    assert (status, allowed) == (403, "")
    assert "quokka" not in text


async def test_who_lacks_the_token_is_told_nothing() -> None:
    async with serving(CODEC, site(token="s3cret")) as url:
        answers = [await ask(url), await ask(url, Authorization="Bearer s3cre"), await ask(url, Authorization="s3cret")]
        status, _, _ = await ask(url, Authorization="Bearer s3cret")

    assert [answer[0] for answer in answers] == [401, 401, 401]
    assert status == 200
    assert "s3cret" not in repr(site(token="s3cret"))


@pytest.mark.parametrize("data", ["no json", '{"payloads": 3}', '{"other": 1}'])
async def test_a_body_that_is_no_payloads_is_refused(data: str) -> None:
    async with serving(CODEC, site()) as url:
        assert await ask(url, data=data) == (400, "the body is no JSON of payloads", UI)


async def test_what_cannot_be_decoded_is_said_to_the_web_ui() -> None:
    async with serving(SealingCodec(None, compress=True), site()) as url:
        status, text, allowed = await ask(url)

    assert (status, allowed) == (422, UI)
    assert "key 'k1'" in text


@pytest.mark.parametrize("given", [{}, {"token": "s3cret"}, {"tls": ssl.create_default_context()}])
async def test_other_machines_are_not_served_without_tls_and_a_token(given: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match="for other machines without"):
        async with serving(CODEC, site(host="0.0.0.0", **given)):
            pass


async def test_other_machines_are_served_by_tls_with_a_token(tmp_path: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(Authority(tmp_path, "ours").server())
    async with serving(CODEC, site(host="0.0.0.0", token="s3cret", tls=context)) as url:
        here = url.replace("0.0.0.0", "127.0.0.1")
        assert url.startswith("https://")
        assert (await ask(here))[0] == 401
        assert (await ask(here, Authorization="Bearer s3cret"))[0] == 200


async def test_a_taken_port_is_named() -> None:
    async with serving(CODEC, site()) as url:
        port = int(url.rpartition(":")[2])
        with pytest.raises(RefusedError, match=f"127.0.0.1:{port}"):
            async with serving(CODEC, CodecSite(port)):
                pass
