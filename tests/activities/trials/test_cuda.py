"""NVIDIA devices by NVML, shown on a stand-in of its bindings (`nvml.py`): there is no GPU here."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from orch.activities.trials.cuda import Cuda
from orch.workflows.errors import HostFaultError, RefusedError
from orch.workflows.model.round.plan import DeviceSet


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("nvml_kit", Path(__file__).with_name("nvml.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


nvml = _load()
BOTH, SECOND, NONE = (DeviceSet(name="a", cuda=cuda) for cuda in ((0, 1), (1,), ()))


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> object:
    """Bindings of a host with two devices."""
    found = nvml.Nvml(nvml.Gpu("GPU-bb", 1), nvml.Gpu("GPU-aa", 0))
    monkeypatch.setitem(sys.modules, "nvml_of_the_tests", found)
    return found


@pytest.fixture
def cuda(two: object, tmp_path: Path) -> Cuda:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "tty"):
        (tmp_path / name).touch()
    return Cuda(two.__name__, tmp_path)  # type: ignore[attr-defined]


def test_a_device_is_named_by_its_uuid_and_seen_alone(cuda: Cuda, tmp_path: Path) -> None:
    assert cuda.flaw(BOTH) == cuda.busy(BOTH) == ""
    assert cuda.identities(BOTH) == ("gpu-bb", "gpu-aa")
    assert cuda.environment(SECOND) == {"CUDA_VISIBLE_DEVICES": "GPU-aa"}
    assert cuda.nodes(SECOND) == tuple(tmp_path / name for name in ("nvidia0", "nvidiactl", "nvidia-uvm"))


def test_a_device_on_which_a_process_computes_is_refused(cuda: Cuda, two: object) -> None:
    two.gpus[1].computing.append(nvml.Process(4711))  # type: ignore[attr-defined]
    assert cuda.busy(BOTH) == "process 4711 computes on NVIDIA device 1"
    assert cuda.busy(DeviceSet(name="a", cuda=(0,))) == ""


def test_a_device_that_is_not_there_is_a_flaw(cuda: Cuda) -> None:
    three = DeviceSet(name="a", cuda=(0, 2, 7))
    assert cuda.flaw(three) == "no NVIDIA device 2, 7 on this host: it has 2"
    assert cuda.busy(three) == "NVIDIA devices cannot be asked: Invalid Argument"
    with pytest.raises(RefusedError, match="no NVIDIA device 2, 7"):
        cuda.identities(three)


def test_a_driver_that_fails_once_a_set_was_found_is_the_hosts_fault(cuda: Cuda, two: object) -> None:
    two.driver = False  # type: ignore[attr-defined]
    for ask in (cuda.identities, cuda.environment, cuda.nodes):
        with pytest.raises(HostFaultError, match="NVML Shared Library Not Found"):
            ask(BOTH)


def test_every_question_lets_go_of_the_driver(cuda: Cuda, two: object) -> None:
    cuda.busy(DeviceSet(name="a", cuda=(5,)))
    cuda.identities(BOTH)
    assert two.users == 0  # type: ignore[attr-defined]


def test_without_a_driver_or_the_bindings_the_set_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nvml_of_the_tests", nvml.Nvml(driver=False))
    without_driver, without_bindings = Cuda("nvml_of_the_tests"), Cuda("nvml_that_is_not_installed")
    assert without_driver.flaw(SECOND) == "NVIDIA devices cannot be asked: NVML Shared Library Not Found"
    assert without_bindings.flaw(SECOND).endswith("the package nvidia-ml-py is not installed (the extra `cuda`)")
    for kind in (without_driver, without_bindings):
        assert (kind.flaw(NONE), kind.busy(NONE), kind.identities(NONE), kind.nodes(NONE)) == ("", "", (), ())
