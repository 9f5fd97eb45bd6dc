"""The client: to the cluster that `TEMPORAL_*` variables or a profile name, else to the local engine."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from typing import Any

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig
from temporalio.runtime import Runtime
from temporalio.service import RPCError

from ..activities.home import Home
from ..workflows.errors import RefusedError, UnreachableError
from .records import read_server
from .telemetry import quiet_runtime

CONNECT_S = 10.0
"""How long an address may take to answer."""

IDENTITY = f"orch-client@{socket.gethostname()}:{os.getpid()}"


def is_local(home: Home, environ: Mapping[str, str] = os.environ) -> bool:  # noqa: ARG001
    """Whether runs go to the local engine: no variable names a cluster or a profile."""
    return not (environ.get("TEMPORAL_ADDRESS") or environ.get("TEMPORAL_PROFILE"))


async def connect(
    home: Home,
    *,
    identity: str = IDENTITY,
    environ: Mapping[str, str] = os.environ,
    runtime: Runtime | None = None,
) -> Client:
    """Connect, with pydantic models as payloads and nothing on stdout.

    Raises UnreachableError when nobody answers, RefusedError when the profile cannot be read.
    """
    if not is_local(home, environ):
        return await _open(
            _cluster(environ),
            identity,
            runtime,
            hint="check TEMPORAL_ADDRESS, or the profile in temporal.toml",
        )
    server = read_server(home)
    if server is None or not server.alive:
        raise UnreachableError("the local engine is not running", hint="run `orch up`")
    config = {"target_host": server.address, "namespace": server.namespace}
    return await _open(config, identity, runtime, hint="run `orch up`")


def _cluster(environ: Mapping[str, str]) -> dict[str, Any]:
    try:
        config = ClientConfig.load_client_connect_config(override_env_vars=dict(environ))
    except (OSError, ValueError, RuntimeError) as error:
        raise RefusedError(
            f"the Temporal profile cannot be used: {error}", hint="check TEMPORAL_PROFILE and temporal.toml"
        ) from error
    return {"target_host": "localhost:7233", **config}


async def _open(config: dict[str, Any], identity: str, runtime: Runtime | None, *, hint: str) -> Client:
    try:
        async with asyncio.timeout(CONNECT_S):
            return await Client.connect(
                **config,
                identity=identity,
                runtime=runtime or quiet_runtime(),
                data_converter=pydantic_data_converter,
            )
    except (RuntimeError, RPCError, TimeoutError) as error:
        raise UnreachableError(f"no engine answers at {config['target_host']}", hint=hint) from error
