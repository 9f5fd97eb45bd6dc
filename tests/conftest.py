"""Fixtures for all tests: real repositories, a state directory, and a home directory that is not the user's."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

from orch import Client
from orch.activities.home import Home
from orch.worker import engine
from orch.worker.state import open_state


def _load(name: str) -> ModuleType:
    """A module of the tests by its path: they are no package."""
    spec = importlib.util.spec_from_file_location(name.replace("/", "_"), Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


_kit = _load("kit")


for _number, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:  # started in the background: what the tests start would ignore it
        signal.signal(_number, _usual)

settings.register_profile("orch", max_examples=50)  # as many as CI has time for, where a test does not say
settings.load_profile("orch")

_status = pytest.StashKey[int]()


LONG = (
    "test_round_lanes",
    "test_round",
    "test_round_kill",
    "test_equal_trees",
    "test_pairs",
    "test_goal",
    "test_building",
    "test_engine",
    "test_kill",
    "test_round_bad_input",
    "test_ticket_queue",
    "test_fingerprint",
    "test_two_hosts",
    "test_faults",
    "test_gaming",
    "test_replay",
    "test_switches",
    "test_opening",
    "test_command_line",
    "test_cases",
    "test_encrypted_run",
    "test_landing",
)
"""The files that take longest, in that order."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest files begin first: nobody waits for the last one at the end."""
    turn = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: turn.get(item.path.stem, len(LONG)))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[_status] = int(exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """End at once: interpreter finalisation races the SDK's threads and can abort a green run (sdk-python#300)."""
    if not hasattr(config, "workerinput") and _status in config.stash:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(config.stash[_status])


@pytest.fixture(scope="session", autouse=True)
def _host_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Measurements of these tests and those of other processes do not wait for one another's processors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORCH_LEASES", str(tmp_path_factory.mktemp("leases")))
        yield


@pytest.fixture(autouse=True)
def _no_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point everything that says where the user's files are at an empty folder."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in ("CONFIG", "DATA", "STATE", "CACHE", "RUNTIME"):
        monkeypatch.setenv(f"XDG_{name}_HOME" if name != "RUNTIME" else "XDG_RUNTIME_DIR", str(home / name.lower()))
    monkeypatch.setenv("ORCH_STATE", str(home / "orch"))
    for name in ("ORCH_KEYS", "ORCH_COMPRESS", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def kit() -> ModuleType:
    """The fixture kit: `make_repo`, `fingerprint`, `git`, `write`, `commit_all`."""
    return _kit


@pytest.fixture(scope="session")
def rounds() -> ModuleType:
    """The kit of rounds: `synthetic`, `write_plan`, `frozen`, `Lane`; see `rounds/kit.py`."""
    return _load("rounds/kit")


@pytest.fixture(scope="session")
def scripted() -> ModuleType:
    """Scripted agents of lanes: `gain`, `late`, `forged` and so on; see `rounds/lanes.py`."""
    return _load("rounds/lanes")


@pytest.fixture
def make_repo() -> Callable[..., Path]:
    """Make a repository with one commit."""
    make: Callable[..., Path] = _kit.make_repo
    return make


@pytest.fixture
def fingerprint() -> Callable[[Path], dict[str, str]]:
    """What must not change of a repository."""
    take: Callable[[Path], dict[str, str]] = _kit.fingerprint
    return take


@pytest.fixture(scope="session")
def ordinary() -> Callable[[str], tuple[str, ...]]:
    """What makes a command line one of an ordinary user, on a host that `ordinary.py` describes."""
    ways = ":".join(sorted({sys.base_prefix, sys.prefix, str(Path(__file__).parents[1])}))
    program = str(Path(__file__).with_name("ordinary.py"))
    return lambda host: (sys.executable, "-I", "-S", program, host, ways)


@pytest.fixture
def user_home() -> Iterator[Path]:
    """A home of an ordinary user: of the one that root becomes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        if not os.getuid():
            os.chown(name, 65534, 65534)
        yield Path(name)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A state directory."""
    return Home(tmp_path / "state")


@contextmanager
def _engine(home: Home) -> Iterator[Home]:
    open_state(home)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE"):
            patch.delenv(name, raising=False)
        asyncio.run(engine.ensure_up(home))
    yield home
    asyncio.run(engine.down(home))


@pytest.fixture(scope="session")
def engine_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A state directory with a running local engine."""
    with _engine(Home(tmp_path_factory.mktemp("engine") / "state")) as home:
        yield home


@pytest.fixture(scope="module")
def modules_engine_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The same for the tests of one module, which speak of all that lies there."""
    with _engine(Home(tmp_path_factory.mktemp("engine") / "state")) as home:
        yield home


@pytest.fixture
def client(engine_home: Home) -> Client:
    """A client of the session's engine."""
    return Client(engine_home)
