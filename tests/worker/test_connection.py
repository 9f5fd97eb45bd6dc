from __future__ import annotations

import socket
from pathlib import Path

import pytest

from orch.activities.home import Home
from orch.worker.connection import connect, is_local, open_port
from orch.workflows.errors import RefusedError, UnreachableError


@pytest.mark.parametrize(
    ("environ", "local"),
    [
        ({}, True),
        ({"TEMPORAL_ADDRESS": "h:7233"}, False),
        ({"TEMPORAL_PROFILE": "prod"}, False),
        ({"TEMPORAL_ADDRESS": ""}, True),
    ],
)
def test_the_environment_says_which_engine(tmp_path: Path, environ: dict[str, str], local: bool) -> None:
    assert is_local(Home(tmp_path), environ) is local


async def test_without_an_engine_the_hint_is_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError) as error:
        await connect(Home(tmp_path), environ={})
    assert error.value.hint == "run `orch up`"


async def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(UnreachableError, match=address):
        await connect(Home(tmp_path), environ={"TEMPORAL_ADDRESS": address})


async def test_a_profile_names_the_cluster(tmp_path: Path) -> None:
    profiles = tmp_path / "temporal.toml"
    profiles.write_text('[profile.near]\naddress = "127.0.0.1:9"\n')
    environ = {"TEMPORAL_CONFIG_FILE": str(profiles), "TEMPORAL_PROFILE": "near"}
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:9"):
        await connect(Home(tmp_path), environ=environ)


async def test_a_profile_that_is_not_there_is_refused(tmp_path: Path) -> None:
    environ = {"TEMPORAL_CONFIG_FILE": str(tmp_path / "none.toml"), "TEMPORAL_PROFILE": "far"}
    with pytest.raises(RefusedError, match="far"):
        await connect(Home(tmp_path), environ=environ)


@pytest.mark.parametrize(
    ("environ", "port"),
    [
        ({}, 0),
        ({"TEMPORAL_ADDRESS": "127.0.0.1:7000"}, 7000),
        ({"TEMPORAL_ADDRESS": "localhost:7000", "TEMPORAL_TLS": "true"}, 7000),
        ({"TEMPORAL_ADDRESS": "10.0.0.1:7233"}, 7233),
        ({"TEMPORAL_ADDRESS": "cloud.example:7233", "TEMPORAL_TLS": "true"}, 0),
        ({"TEMPORAL_ADDRESS": "cloud.example:7233", "TEMPORAL_API_KEY": "x"}, 0),
    ],
)
def test_an_engine_that_asks_for_no_credential_has_its_port_closed_to_agents(
    tmp_path: Path, environ: dict[str, str], port: int
) -> None:
    assert open_port(Home(tmp_path), environ) == port
