"""The way to a cluster: by real TLS before a real engine, and refused where words or keys would cross in plain text."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from orch.activities.home import Home
from orch.worker.connection import connect, require_safe
from orch.worker.records import read_server
from orch.workflows.errors import RefusedError, UnreachableError

from .certificates import Authority, ends_tls


@pytest.mark.engine
async def test_a_cluster_is_trusted_by_its_authority_and_by_no_other(shared_home: Home, tmp_path: Path) -> None:
    ours, other = Authority(tmp_path, "ours"), Authority(tmp_path, "other")
    server = read_server(shared_home)
    assert server is not None
    async with ends_tls(ours.server(), server.port) as address:
        there = {"TEMPORAL_ADDRESS": address, "TEMPORAL_TLS_SERVER_CA_CERT_PATH": str(ours.file)}
        client = await connect(shared_home, environ=there)
        assert (await client.count_workflows("OrchKind = 'none'")).count == 0
        await connect(shared_home, environ={**there, "TEMPORAL_API_KEY": "any"})

        began = time.monotonic()
        with pytest.raises(UnreachableError, match=r"certificate is refused \(UnknownIssuer\)") as wrong:
            await connect(shared_home, environ={**there, "TEMPORAL_TLS_SERVER_CA_CERT_PATH": str(other.file)})
        with pytest.raises(UnreachableError, match=r"certificate is refused \(NotValidForName"):
            await connect(shared_home, environ={**there, "TEMPORAL_TLS_SERVER_NAME": "elsewhere"})
        with pytest.raises(UnreachableError, match=address):
            await connect(shared_home, environ={"TEMPORAL_ADDRESS": address})
        assert time.monotonic() - began < 9  # the patience for one that does not answer is longer

    assert "its certificates" in wrong.value.hint


@pytest.mark.parametrize("host", ["temporal.example:7233", "10.0.0.7:7233", "[2001:db8::1]:7233", "0.0.0.0:7233"])
async def test_plain_text_to_another_machine_is_refused_unless_said_to_be_safe(host: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="in plain text") as refused:
        await connect(Home(tmp_path), environ={"TEMPORAL_ADDRESS": host})
    require_safe({"target_host": host}, insecure=True)
    require_safe({"target_host": host, "tls": True}, insecure=False)

    assert "TEMPORAL_TLS=true" in refused.value.hint
    assert "ORCH_INSECURE_ENGINE=1" in refused.value.hint


async def test_a_profile_with_tls_switched_off_is_refused(tmp_path: Path) -> None:
    profiles = tmp_path / "temporal.toml"
    profiles.write_text('[profile.far]\naddress = "far.example:7233"\n[profile.far.tls]\ndisabled = true\n')
    environ = {"TEMPORAL_CONFIG_FILE": str(profiles), "TEMPORAL_PROFILE": "far"}

    with pytest.raises(RefusedError, match=r"far\.example:7233 is on another machine"):
        await connect(Home(tmp_path), environ=environ)


@pytest.mark.parametrize("host", ["localhost:7233", "127.0.0.1:7233", "127.9.9.9:1", "[::1]:7233", "LOCALHOST:7233"])
def test_this_machine_is_spoken_to_in_plain_text(host: str) -> None:
    require_safe({"target_host": host}, insecure=False)


@pytest.mark.parametrize("host", ["127.0.0.1:7233", "temporal.example:7233"])
@pytest.mark.parametrize(
    "credential", [{"TEMPORAL_API_KEY": "s3cret"}, {"TEMPORAL_GRPC_META_AUTHORIZATION": "Bearer s3cret"}]
)
async def test_an_api_key_over_plain_text_is_refused_always(
    host: str, credential: dict[str, str], tmp_path: Path
) -> None:
    environ = {"TEMPORAL_ADDRESS": host, "TEMPORAL_TLS": "false", "ORCH_INSECURE_ENGINE": "1", **credential}

    with pytest.raises(RefusedError, match="API key") as refused:
        await connect(Home(tmp_path), environ=environ)

    assert "s3cret" not in refused.value.message + refused.value.hint
