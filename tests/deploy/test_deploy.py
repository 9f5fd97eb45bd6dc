"""What of deploy/ can be proved without a Docker engine: see the end of deploy/README.md for what cannot."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from orch.worker import locks

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent
UNITS = ("orch-worker.service", "orch-engine.service")
VARIABLE = re.compile(r"\$\{(\w+)(?::?([-?])([^}]*))?\}")
TEMPORAL_SDK = {"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_API_KEY", "TEMPORAL_PROFILE"}


def call(*argv: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    full = {**os.environ, **(env or {})}
    return subprocess.run(argv, check=False, env=full, capture_output=True, text=True, timeout=90)


def run(*argv: str | Path, env: dict[str, str] | None = None) -> str:
    done = call(*argv, env=env)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


def services() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return loaded


def unit(name: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string((DEPLOY / name).read_text())
    return parser


def variables_read_by_the_code() -> set[str]:
    sources = (path.read_text() for folder in ("activities", "worker", "cli") for path in (ROOT / folder).rglob("*.py"))
    return {name for text in sources for name in re.findall(r"\bORCH_[A-Z_]+\b", text)} | TEMPORAL_SDK


def variables_set_for_the_worker() -> set[str]:
    in_unit = re.findall(r"\b(?:ORCH|TEMPORAL)_[A-Z_]+\b", (DEPLOY / "orch-worker.service").read_text())
    in_image = re.findall(r"\bORCH_[A-Z_]+(?==)", (DEPLOY / "Dockerfile").read_text())
    return {*services()["worker"]["environment"], *in_unit, *in_image}


def test_compose_file_follows_the_compose_specification() -> None:
    run(BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")


@pytest.mark.skipif(
    not shutil.which("docker") or bool(call("docker", "compose", "version").returncode),
    reason="no docker client with the compose plugin; the schema test above still runs",
)
def test_docker_compose_accepts_the_file(tmp_path: Path) -> None:
    given = {"POSTGRES_PASSWORD": "secret", "ORCH_PROJECTS": str(tmp_path)}
    run("docker", "compose", "--file", DEPLOY / "compose.yaml", "config", "--quiet", env=given)


@pytest.mark.parametrize("name", services())
def test_every_image_is_pinned_to_a_tag(name: str) -> None:
    image = VARIABLE.sub(lambda found: found[3] if found[2] == "-" else "", services()[name]["image"])
    assert re.fullmatch(r"[\w/-]+:\d+(\.\d+)+", image), image


def test_variables_without_a_default_are_refused_when_missing_and_stand_in_the_example() -> None:
    found = list(VARIABLE.finditer((DEPLOY / "compose.yaml").read_text()))
    example = set(re.findall(r"^(\w+)=", (DEPLOY / "env.example").read_text(), re.MULTILINE))
    assert {match[2] for match in found} <= {"-", "?"}
    assert {match[1] for match in found if match[2] == "?"} <= example <= {match[1] for match in found}


def test_every_dependency_exists_and_what_must_be_healthy_has_a_check() -> None:
    for name, service in services().items():
        for other, wanted in service.get("depends_on", {}).items():
            assert other in services(), f"{name} waits for {other}"
            assert wanted["condition"] != "service_healthy" or "healthcheck" in services()[other]


def test_mounted_and_copied_files_exist() -> None:
    mounts = [mount for service in services().values() for mount in service.get("volumes", [])]
    for file in (mount.split(":")[0] for mount in mounts if mount.startswith("./")):
        assert (DEPLOY / file).is_file(), file
    for kept in re.findall(r"^!(.+)$", (DEPLOY / "Dockerfile.dockerignore").read_text(), re.MULTILINE):
        assert (ROOT / kept).exists(), kept


def test_nothing_is_published_beyond_loopback() -> None:
    published = [port for service in services().values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_the_worker_is_given_only_variables_that_the_code_reads() -> None:
    assert variables_set_for_the_worker() <= variables_read_by_the_code()


def test_the_image_is_linted_and_runs_as_an_ordinary_user() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    run(BIN / "hadolint", DEPLOY / "Dockerfile")
    assert re.findall(r"^USER (.+)$", text, re.MULTILINE)[-1] != "root"
    assert "bubblewrap git" in text


@pytest.mark.parametrize("name", UNITS)
def test_unit_calls_commands_that_exist_and_spares_the_agents(name: str) -> None:
    service = unit(name)["Service"]
    for key in ("ExecStart", "ExecReload", "ExecStop"):
        if key in service:
            run(BIN / "orch", service[key].split()[1], "--help")
    assert service["KillMode"] == "process", "agents outlive the worker"


def test_systemd_lets_a_start_of_the_engine_wait_for_another_one() -> None:
    assert float(unit("orch-engine.service")["Service"]["TimeoutStartSec"]) > locks.PATIENCE_S


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here; the test above still runs")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_accepts_the_unit(name: str, tmp_path: Path) -> None:
    text = re.sub(r"(?<==)\S+/bin/orch\b", str(BIN / "orch"), (DEPLOY / name).read_text())
    (tmp_path / name).write_text(re.sub(r"^User=.*$", "", text, flags=re.MULTILINE))
    scope = ["--user"] if unit(name)["Install"]["WantedBy"] == "default.target" else []
    run(
        "systemd-analyze",
        *scope,
        "--man=no",
        "verify",
        tmp_path / name,
        env={"XDG_RUNTIME_DIR": str(tmp_path)},
    )


@pytest.fixture
def server() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    port = address.rpartition(":")[2]
    argv = (BIN / "temporal", "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", port)
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while call(BIN / "temporal", "operator", "cluster", "health", "--address", address).returncode:
        assert time.monotonic() < until, "the server did not start"
    yield address
    process.terminate()
    process.wait(timeout=30)


def test_namespace_script_makes_the_namespace_and_may_run_twice(server: str) -> None:
    env = {
        "TEMPORAL_ADDRESS": server,
        "TEMPORAL_NAMESPACE": "orch",
        "RETENTION": "720h",
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }
    for _ in range(2):
        run("sh", DEPLOY / "namespace.sh", env=env)
    assert "720h" in run(BIN / "temporal", "operator", "namespace", "describe", "-n", "orch", env=env)
    listed = run(BIN / "temporal", "operator", "search-attribute", "list", env=env)
    assert {"OrchKind", "OrchRepo", "OrchStatus"} <= set(listed.split())


@pytest.mark.parametrize("script", sorted(path.name for path in DEPLOY.glob("*.sh")))
def test_script_is_valid_shell(script: str) -> None:
    run("sh", "-n", DEPLOY / script)
