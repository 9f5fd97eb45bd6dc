"""A stand-in for `pynvml`: no machine of the tests has a GPU.

Its answers have the shapes of the real bindings (nvidia-ml-py 13): numbers, `str` UUIDs, lists of objects with `pid`,
and a class of errors for each code. What it answers is set by the tests.
"""

# ruff: noqa: N801, N802, N815, N818 - the names are NVML's own
from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType


class NVMLError(Exception):
    """The parent of all its errors."""


class NVMLError_LibraryNotFound(NVMLError):
    def __str__(self) -> str:
        return "NVML Shared Library Not Found"


class NVMLError_NotSupported(NVMLError):
    def __str__(self) -> str:
        return "Not Supported"


class NVMLError_InvalidArgument(NVMLError):
    def __str__(self) -> str:
        return "Invalid Argument"


@dataclass
class Process:
    """As `c_nvmlProcessInfo_v2_t`."""

    pid: int
    usedGpuMemory: int | None = None


@dataclass
class Gpu:
    uuid: str
    minor: int
    computing: list[Process] = field(default_factory=list)


class Nvml(ModuleType):
    """The module; `gpus` None is a host without a driver."""

    NVMLError = NVMLError
    NVMLError_NotSupported = NVMLError_NotSupported

    def __init__(self, *gpus: Gpu, driver: bool = True) -> None:
        super().__init__("nvml_of_the_tests")
        self.gpus, self.driver, self.users = gpus, driver, 0

    def nvmlInit(self) -> None:
        if not self.driver:
            raise NVMLError_LibraryNotFound
        self.users += 1

    def nvmlShutdown(self) -> None:
        self.users -= 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Gpu:
        if index >= len(self.gpus):
            raise NVMLError_InvalidArgument
        return self.gpus[index]

    def nvmlDeviceGetUUID(self, handle: Gpu) -> str:
        return handle.uuid

    def nvmlDeviceGetMinorNumber(self, handle: Gpu) -> int:
        return handle.minor

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Gpu) -> list[Process]:
        return handle.computing

    def nvmlDeviceGetMPSComputeRunningProcesses(self, handle: Gpu) -> list[Process]:
        raise NVMLError_NotSupported
