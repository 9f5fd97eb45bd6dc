"""The client: to the cluster that `TEMPORAL_*` variables or a profile name, else to the local engine."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from typing import Any

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.runtime import Runtime
from temporalio.service import RPCError

from ..activities.home import Home
from ..workflows.errors import RefusedError, UnreachableError
from .codec import converter, load_codec
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
    serving: bool = False,
) -> Client:
    """Connect, with pydantic models as payloads through the codec, and nothing on stdout.

    `serving` is for a worker: it ends a run whose payloads were tampered with. Raises UnreachableError when nobody
    answers, RefusedError when the profile or the keys cannot be read, or the way to the cluster is not safe.
    """
    common = {
        "identity": identity,
        "runtime": runtime or quiet_runtime(),
        "data_converter": converter(load_codec(home, environ, ends_runs=serving)),
    }
    if not is_local(home, environ):
        config = _cluster(environ)
        require_safe(config, insecure=environ.get("ORCH_INSECURE_ENGINE") == "1")
        hint = "check TEMPORAL_ADDRESS, or the profile in temporal.toml"
        return await _open({**config, **common}, hint=hint + (", and its certificates" if config.get("tls") else ""))
    server = read_server(home)
    if server is None or not server.alive:
        raise UnreachableError("the local engine is not running", hint="run `orch up`")
    config = {"target_host": server.address, "namespace": server.namespace}
    return await _open({**config, **common}, hint="run `orch up`")


def _cluster(environ: Mapping[str, str]) -> dict[str, Any]:
    try:
        config = ClientConfig.load_client_connect_config(override_env_vars=dict(environ))
    except (OSError, ValueError, RuntimeError) as error:
        raise RefusedError(
            f"the Temporal profile cannot be used: {error}", hint="check TEMPORAL_PROFILE and temporal.toml"
        ) from error
    return {"target_host": "localhost:7233", **config}


def require_safe(config: Mapping[str, Any], *, insecure: bool) -> None:
    """Refuse plain text to another machine unless that is said to be safe, and a credential over plain text always."""
    if config.get("tls"):
        return
    headers = {name.lower() for name in config.get("rpc_metadata") or {}}
    if config.get("api_key") or "authorization" in headers:
        raise RefusedError(
            f"the API key for {config['target_host']} would cross the network in plain text",
            hint="set TEMPORAL_TLS=true, or remove `disabled` from the profile's tls",
        )
    if not insecure and not _is_loopback(str(config["target_host"])):
        raise RefusedError(
            f"the engine at {config['target_host']} is on another machine and would be spoken to in plain text",
            hint="set TEMPORAL_TLS=true, or tls in the profile; ORCH_INSECURE_ENGINE=1 where the network is private",
        )


def _is_loopback(address: str) -> bool:
    """Whether an address (`host:port`) stays on this machine by its name alone: nothing is looked up."""
    host = address.rpartition(":")[0].strip("[]") or address
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


async def _open(config: dict[str, Any], *, hint: str) -> Client:
    try:
        async with asyncio.timeout(CONNECT_S):
            return await Client.connect(**config)
    except (RuntimeError, RPCError, TimeoutError) as error:
        why = _why(error) if config.get("tls") else ""
        raise UnreachableError(f"no engine answers at {config['target_host']}{why}", hint=hint) from error


def _why(error: Exception) -> str:
    """What TLS says of itself: a wrong authority looks like silence otherwise."""
    refused = re.search(r"InvalidCertificate\((\w+)", str(error))
    return f": its certificate is refused ({refused[1]})" if refused else " by TLS"
