"""Processors that a step in the sandbox keeps to: asking the kernel for others does nothing, and seems to succeed.

Programs that pin themselves, as benchmarks and libraries for threads do, go on as if they had been let.
"""

from __future__ import annotations

import os
import struct

NAME = "bwrap"
"""The program that makes the sandbox, and that loads a filter of system calls from a descriptor."""

SECCOMP = "/proc/sys/kernel/seccomp"
"""Where the kernel tells of such filters, if it has them."""

LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
"""Instructions of the filter: load a word; skip so many if it is K, or else so many; end."""
NUMBER, ARCHITECTURE = 0, 4
"""Where a filter finds them, in bytes."""
ALLOW, PRETEND = 0x7FFF0000, 0x00050000
"""Let the call pass; do nothing and return 0, for no error."""
X32 = 0x40000000
"""Where the numbers of x86-64's second table of calls begin."""

MACHINES: dict[str, dict[int, tuple[int, ...]]] = {
    "x86_64": {0xC000003E: (203, X32 + 203), 0x40000003: (241,)},
    "aarch64": {0xC00000B7: (122,), 0x40000028: (241,)},
    "riscv64": {0xC00000F3: (122,)},
}
"""For each architecture whose programs a machine runs, the numbers of `sched_setaffinity`."""


def flaw() -> str:
    """Why nothing is kept to its processors on this host; empty when it is."""
    if (machine := os.uname().machine) not in MACHINES:
        return f"no filter of system calls is known for {machine}"
    return "" if os.path.exists(SECCOMP) else "the kernel has no filter of system calls (seccomp)"  # noqa: PTH110


def fixed(argv: list[str], first: int) -> list[str]:
    """The command, one in the sandbox so that it keeps to the processors that this process has now.

    Args:
        argv: the command.
        first: how many of its words may come before the sandbox's program and that one.
    """
    at = next((at for at, word in enumerate(argv[:first], 1) if os.path.basename(word) == NAME), 0)  # noqa: PTH119
    if not at or flaw():
        return argv
    program = os.memfd_create("filter", 0)  # it is for the command
    os.write(program, b"".join(struct.pack("=HBBI", *line) for line in filter_of(os.uname().machine)))
    os.lseek(program, 0, os.SEEK_SET)
    return [*argv[:at], "--seccomp", str(program), *argv[at:]]


def filter_of(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter: instructions with how many are skipped when a test holds, how many when not, and K."""
    code = [(LOAD, 0, 0, ARCHITECTURE)]
    for architecture, numbers in MACHINES[machine].items():
        table = [(LOAD, 0, 0, NUMBER)]
        for number in numbers:
            table += [(EQUAL, 0, 1, number), (RETURN, 0, 0, PRETEND)]
        code += [(EQUAL, 0, len(table) + 1, architecture), *table, (RETURN, 0, 0, ALLOW)]
    return [*code, (RETURN, 0, 0, ALLOW)]
