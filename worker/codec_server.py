"""The codec server: decodes payloads for the Web UI as Temporal's remote codecs do (`POST /decode`, `/encode`).

It answers pages of the Web UI's origin only, and a token where one is set. A local user who reaches the port can read
what the keys can: the server is for loopback, and beyond it wants TLS and a token.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.typedefs import Middleware
from google.protobuf import json_format
from temporalio.api.common.v1 import Payload, Payloads

from ..workflows.errors import RefusedError
from .codec import SealingCodec

MOST_BYTES = 64 << 20
"""Of one request: a page of a history, with the base64 that JSON needs."""

MAX_AGE_S = "600"
"""How long a browser may remember what it may ask."""

LOOPBACK = "127.0.0.1"

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Coding = Callable[[Sequence[Payload]], Awaitable[list[Payload]]]


@dataclass(frozen=True)
class CodecSite:
    """Where a codec server listens, and whom it answers.

    Attributes:
        port: 0: a free one.
        host: an address of this machine.
        origins: of the pages that may ask, such as `http://127.0.0.1:8080`.
        token: what a caller has to bear; empty: nothing.
        tls: a server's context; None: plain HTTP.
    """

    port: int
    host: str = LOOPBACK
    origins: tuple[str, ...] = ()
    token: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None

    def require_safe(self) -> None:
        """Refuse to show plain text to other machines without TLS and a token."""
        if self.local:
            return
        lacking = [name for name, there in (("TLS", self.tls), ("a token", self.token)) if not there]
        if lacking:
            raise RefusedError(
                f"a codec server at {self.host} would decode for other machines without {' and '.join(lacking)}",
                hint="give --tls-cert, --tls-key and ORCH_CODEC_TOKEN, or leave out --host",
            )

    @property
    def local(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@asynccontextmanager
async def serving(codec: SealingCodec, site: CodecSite) -> AsyncIterator[str]:
    """Serve for a block, which gets the URL; raises RefusedError when that is not safe or the port is taken."""
    site.require_safe()
    runner = web.AppRunner(application(codec, site), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        listening = web.TCPSite(runner, site.host, site.port, ssl_context=site.tls)
        try:
            await listening.start()
        except OSError as error:
            raise RefusedError(
                f"the codec server cannot listen at {site.host}:{site.port}: {error.strerror}",
                hint="end what listens there, or choose another port",
            ) from error
        host, port = runner.addresses[0][:2]
        yield f"{'https' if site.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
    finally:
        await runner.cleanup()


def application(codec: SealingCodec, site: CodecSite) -> web.Application:
    """The two endpoints behind the guard."""
    app = web.Application(client_max_size=MOST_BYTES, middlewares=[_guard(site)])
    app.router.add_post("/decode", _endpoint(codec.decode))
    app.router.add_post("/encode", _endpoint(codec.encode))
    return app


def _guard(site: CodecSite) -> Middleware:
    """Let only the origins' pages ask, and only those who bear the token."""

    @web.middleware
    async def guard(request: web.Request, handler: Answer) -> web.StreamResponse:
        origin = request.headers.get("Origin", "")
        if (origin and origin not in site.origins) or (site.local and not _is_here(request)):
            return web.Response(status=403, text="this page may not ask here")
        try:
            if request.method == "OPTIONS":
                response: web.StreamResponse = web.Response(status=204)
            elif site.token and not _bears(request, site.token):
                response = web.Response(status=401, text="a bearer token is needed")
            else:
                response = await handler(request)
        except web.HTTPException as refused:
            response = refused
        response.headers.update(_cors(origin))
        return response

    return guard


def _is_here(request: web.Request) -> bool:
    """Whether a local address was asked for: a page that made its own name mean loopback has another (rebinding)."""
    host = request.host.rpartition(":")[0] if request.host.rpartition(":")[2].isdecimal() else request.host
    return host == "localhost" or CodecSite(0, host.strip("[]")).local


def _bears(request: web.Request, token: str) -> bool:
    said = request.headers.get("Authorization", "")
    return hmac.compare_digest(said.encode(), f"Bearer {token}".encode())


def _cors(origin: str) -> dict[str, str]:
    if not origin:
        return {}
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": "POST, OPTIONS",
        "Access-Control-Allow-Headers": "content-type, x-namespace, authorization",
        "Access-Control-Allow-Credentials": "true",
        "Access-Control-Max-Age": MAX_AGE_S,
        "Vary": "Origin",
    }


def _endpoint(coding: Coding) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            given = json_format.Parse(await request.text(), Payloads())
            coded = await coding(given.payloads)
        except (json_format.ParseError, UnicodeDecodeError):
            return web.Response(status=400, text="the body is no JSON of payloads")
        except RefusedError as error:
            return web.Response(status=422, text=f"{error.message}; {error.hint}")
        return web.json_response(text=json_format.MessageToJson(Payloads(payloads=coded), indent=None))

    return answer


async def serve_until(stop: asyncio.Event, codec: SealingCodec, site: CodecSite, *, say: Callable[[str], None]) -> None:
    """Serve in the foreground; `say` gets the URL."""
    async with serving(codec, site) as url:
        say(url)
        await stop.wait()
