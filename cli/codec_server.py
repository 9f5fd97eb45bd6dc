"""`orch codec-server`: decode payloads for a Web UI, in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .talk import out, say

if TYPE_CHECKING:
    import ssl

    from ..worker.codec import SealingCodec
    from ..worker.codec_server import CodecSite

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("codec-server")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8081, show_default=True, help="The port; 0: a free one.")
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="A Web UI whose pages may ask, e.g. https://ui.example. Repeatable [default: the local engine's].",
)
@click.option("--tls-cert", type=_FILE, help="A certificate with its chain (PEM), to serve HTTPS.")
@click.option("--tls-key", type=_FILE, help="The certificate's key (PEM).")
def codec_server(
    *, host: str, port: int, origins: tuple[str, ...], tls_cert: Path | None, tls_key: Path | None
) -> None:
    """Decode payloads for the Web UI of a cluster until stopped; the local engine's worker does it by itself.

    Give its URL to the Web UI as the codec endpoint. A caller must bear the token in ORCH_CODEC_TOKEN when that is
    set. Whoever reaches the port can read what the keys can: beyond this machine it wants TLS and a token.
    """
    import os

    from ..worker.codec_server import CodecSite

    codec = _codec()
    token = os.environ.get("ORCH_CODEC_TOKEN", "")
    site = CodecSite(port, host, origins or _own(), token, _context(tls_cert, tls_key))
    site.require_safe()
    _serve(codec, site)


def _codec() -> SealingCodec:
    from ..worker.codec import load_codec
    from ..worker.settings import load_settings
    from ..workflows.errors import RefusedError

    codec = load_codec(load_settings().home)
    if not codec.on:
        raise RefusedError("there is nothing to decode: no keys", hint="name the workers' key file in ORCH_KEYS")
    return codec


def _own() -> tuple[str, ...]:
    from ..worker.records import read_server
    from ..worker.settings import load_settings
    from ..workflows.errors import RefusedError

    server = read_server(load_settings().home)
    if server is None:
        raise RefusedError("no Web UI is known here", hint="name its address: --origin https://ui.example")
    return (server.ui_url,)


def _context(cert: Path | None, key: Path | None) -> ssl.SSLContext | None:
    import ssl

    from ..workflows.errors import RefusedError

    if cert is None and key is None:
        return None
    if cert is None:
        raise RefusedError("--tls-key without --tls-cert", hint="give both")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise RefusedError(
            f"the certificate {cert} cannot be used: {error.strerror or error}", hint="give PEM files that fit"
        ) from None
    return context


def _serve(codec: SealingCodec, site: CodecSite) -> None:
    import asyncio
    import signal

    from ..worker.codec_server import serve_until

    async def run() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await serve_until(stop, codec, site, say=out)

    say(f"decoding for {', '.join(site.origins)}")
    asyncio.run(run())
