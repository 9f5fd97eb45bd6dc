"""A model provider on loopback that plays scripts, for real agents: one server, many agents at once.

An agent's base URL names its script and its run: `http://127.0.0.1:PORT/s/SCENARIO@RUN`, with `/v1` behind it for
clients of OpenAI. Every run has a log of its own and meets its faults by its own count, so each agent process that
a test tells apart gets a run of its own.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from .http import HttpServer
from .player import Player


class ModelServer(Player):
    """Serves from `with` to its end; then neither a thread nor a connection nor the port is left."""

    def __init__(self) -> None:
        super().__init__()
        self._http = HttpServer(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.close()

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return self._http.server_port

    def url(self, scenario: str, *, run: str) -> str:
        """The base URL of an agent, without `/v1`. Raises LookupError for an unknown scenario."""
        self.scenario(scenario)
        return f"http://127.0.0.1:{self.port}/s/{scenario}@{run}"
