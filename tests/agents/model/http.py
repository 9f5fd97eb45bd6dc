"""The model server's HTTP: routes, event streams, and trouble on the wire. One request a connection."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from typing import Any

from . import anthropic, chat, responses
from .dialect import Dialect, Document
from .player import Player
from .reply import Fault, Trouble

DIALECTS: Mapping[str, Dialect] = {"messages": anthropic, "responses": responses, "completions": chat}
"""By the last word of the path."""

MODELS = ("claude-sonnet-4-5", "gpt-5.5", "scripted-model")
"""What the list of models shows; any name is answered."""

ON_THE_WIRE = {None, Trouble.HANG, Trouble.CUT}
"""What the provider does not report."""

NO_HEADERS: Mapping[str, str] = {}

_PLACE = re.compile(r"/s/([^/@]+)@([^/]+)/(?:.*/)?([^/?]*)(?:\?.*)?")


class HttpServer(ThreadingHTTPServer):
    """Keeps hold of its connections, so that none outlives it."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, player: Player) -> None:
        self.player = player
        self._connections: set[Any] = set()
        super().__init__(("127.0.0.1", 0), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start the thread of a connection."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print a bug; a client that went away is none."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def close(self) -> None:
        """End every connection, wait for its thread, and give the port back."""
        for connection in tuple(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        """Claude Code asks whether the host is there."""
        self._send(200, {})

    def do_GET(self) -> None:
        """The list of models."""
        last = self.path.partition("?")[0].rpartition("/")[2]
        listed = [{"id": name, "object": "model", "type": "model", "display_name": name} for name in MODELS]
        if last == "models":
            self._send(200, {"object": "list", "data": listed, "has_more": False})
        else:
            self._no_route()

    def do_POST(self) -> None:
        """An answer of the model."""
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        place = _PLACE.fullmatch(self.path)
        if place and place[3] == "count_tokens":
            self._send(200, {"input_tokens": len(raw) // 4})
        elif place and place[3] in DIALECTS:
            self._answer(place[1], place[2], place[3], json.loads(raw))
        else:
            self._no_route()

    def _answer(self, scenario: str, run: str, route: str, body: Mapping[str, Any]) -> None:
        assert isinstance(self.server, HttpServer)
        dialect, player = DIALECTS[route], self.server.player
        try:
            answer, fault = player.play(scenario, run, route, self._key(), dialect.read(body))
        except LookupError as error:
            self._send(404, {"error": {"type": "not_found_error", "message": str(error)}})
            return
        trouble = fault.trouble if fault else None
        if fault and trouble is Trouble.HANG and not self._wait(fault.seconds):
            self.close_connection = True
        elif fault and trouble not in ON_THE_WIRE:
            self._fail(dialect, fault)
        elif body.get("stream"):
            self._stream(dialect, dialect.document(answer), cut=trouble is Trouble.CUT)
        else:
            self._send(200, dialect.document(answer), cut=trouble is Trouble.CUT)

    def _key(self) -> str:
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")

    def _fail(self, dialect: Dialect, fault: Fault) -> None:
        after = {} if fault.retry_after is None else {"retry-after": str(fault.retry_after)}
        self._send(*dialect.error(fault.trouble), after)

    def _wait(self, seconds: float) -> bool:
        """Let the client wait; False when it goes away, or the server ends."""
        self.connection.settimeout(seconds)
        try:
            return bool(self.connection.recv(1, socket.MSG_PEEK))
        except TimeoutError:
            return True
        except OSError:
            return False
        finally:
            self.connection.settimeout(None)

    def _stream(self, dialect: Dialect, document: Document, *, cut: bool) -> None:
        """Send events in chunks; a cut stream lacks its end, and so the chunk that says so."""
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        for frame in islice(dialect.stream(document), 2 if cut else None):
            data = frame.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        if not cut:
            self.wfile.write(b"0\r\n\r\n")

    def _send(
        self, status: int, document: Document, headers: Mapping[str, str] = NO_HEADERS, *, cut: bool = False
    ) -> None:
        data = json.dumps(document).encode()
        self._head(status, {"content-type": "application/json", "content-length": str(len(data)), **headers})
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if cut else data)

    def _no_route(self) -> None:
        self._send(404, {"error": {"type": "not_found_error", "message": f"no route {self.command} {self.path}"}})

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has there
        """Say nothing; the runs' logs tell what came."""
