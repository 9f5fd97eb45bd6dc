"""NVIDIA devices, by NVML (the package `nvidia-ml-py`), where it is installed and a driver answers."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...workflows.errors import HostFaultError, RefusedError
from ...workflows.model.round.plan import DeviceSet

MODULE = "pynvml"
"""The module of `nvidia-ml-py`."""

SHARED = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
"""What every CUDA program opens besides its device."""

CALLS = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses")
"""What lists the processes that compute; the second one where the multi-process service is known."""


@dataclass(frozen=True)
class Cuda:
    """The devices of a set's `cuda`, by NVML's indexes.

    Attributes:
        module: what answers like NVML's own bindings.
        dev: where the device files lie.
    """

    module: str = MODULE
    dev: Path = Path("/dev")

    def identities(self, devices: DeviceSet) -> tuple[str, ...]:
        """`gpu-UUID` for each. Raises RefusedError when one is not there, HostFaultError when they cannot be asked."""
        if why := self._missing(devices):
            raise RefusedError(why, hint=f"see the device set {devices.name!r} of the plan")
        return tuple(f"gpu-{uuid.removeprefix('GPU-')}" for uuid in self._uuids(devices))

    def flaw(self, devices: DeviceSet) -> str:
        """Why the set does not exist on this host."""
        try:
            return self._missing(devices)
        except _UnusableError as error:
            return error.message

    def busy(self, devices: DeviceSet) -> str:
        """Whether a process computes on one of them already."""
        if not devices.cuda:
            return ""
        try:
            with self._nvml() as nvml:
                for index in devices.cuda:
                    if pids := _computing(nvml, nvml.nvmlDeviceGetHandleByIndex(index)):
                        return f"process {pids[0]} computes on NVIDIA device {index}"
        except _UnusableError as error:
            return error.message
        return ""

    def environment(self, devices: DeviceSet) -> Mapping[str, str]:
        """What makes a CUDA program see these devices alone."""
        return {"CUDA_VISIBLE_DEVICES": ",".join(self._uuids(devices))} if devices.cuda else {}

    def nodes(self, devices: DeviceSet) -> tuple[Path, ...]:
        """The device files that a command opens; a sandbox has none of them by itself."""
        if not devices.cuda:
            return ()
        with self._nvml() as nvml:
            handles = map(nvml.nvmlDeviceGetHandleByIndex, devices.cuda)
            own = [f"nvidia{nvml.nvmlDeviceGetMinorNumber(handle)}" for handle in handles]
        return tuple(path for path in (self.dev / name for name in (*own, *SHARED)) if path.exists())

    def _missing(self, devices: DeviceSet) -> str:
        if not devices.cuda:
            return ""
        with self._nvml() as nvml:
            count = nvml.nvmlDeviceGetCount()
        missing = [str(index) for index in devices.cuda if index >= count]
        return f"no NVIDIA device {', '.join(missing)} on this host: it has {count}" if missing else ""

    def _uuids(self, devices: DeviceSet) -> list[str]:
        if not devices.cuda:
            return []
        with self._nvml() as nvml:
            return [nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(index)) for index in devices.cuda]

    @contextmanager
    def _nvml(self) -> Iterator[Any]:
        """NVML, ready to be asked; what it refuses is an `_UnusableError`."""
        try:
            nvml = importlib.import_module(self.module)
        except ImportError:
            why = "NVIDIA devices cannot be asked: the package nvidia-ml-py is not installed (the extra `cuda`)"
            raise _UnusableError(why) from None
        try:
            nvml.nvmlInit()
            try:
                yield nvml
            finally:
                nvml.nvmlShutdown()
        except nvml.NVMLError as error:
            raise _UnusableError(f"NVIDIA devices cannot be asked: {error}") from None


class _UnusableError(HostFaultError):
    """NVML does not answer: where nobody asks whether it does, the next try begins with that question."""


def _computing(nvml: Any, handle: Any) -> list[int]:
    found: list[int] = []
    for name in CALLS:
        if call := getattr(nvml, name, None):
            with suppress(nvml.NVMLError_NotSupported):
                found += [process.pid for process in call(handle)]
    return found
