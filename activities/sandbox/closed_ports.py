"""Run a command that can neither connect to some TCP ports nor listen on them, whatever the address.

A program of the standard library alone (`python -I -S closed_ports.py PORT,PORT… RULES ARGV…`), for the command and its
descendants for good. Landlock has rules for what is allowed, so there is one for every other port: making them takes
a tenth of a second, so RULES is a descriptor of them where they are there already.

Landlock knows nothing of other ways to a TCP connection; a filter of system calls closes these: data that goes with the
first packet (Fast Open), protocols that fall back to TCP (MPTCP, SMC), and io_uring, whose calls no filter sees. To
programs they look like a kernel without them.
"""

# ruff: noqa: PTH115
from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION, NET_PORT = 1, 2
TCP = 3
"""The rights to bind (1) and to connect (2)."""
ABSTRACT_SOCKETS = 1
"""The scope: abstract Unix sockets of others, which no mount hides."""
NETWORK_ABI, SCOPE_ABI = 4, 6

PR_GET_SECCOMP, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 21, 22, 38, 2
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
"""Instructions of the filter: load a word; jump if it is K, is at least K, has any bit of K; end."""
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
"""Where a filter finds them, in bytes; each argument has eight, the lower four come first."""

FAST_OPEN, MPTCP, AF_SMC = 0x20000000, 262, 43
IO_URING_SETUP = 425
X32 = 0x40000000
"""Where the numbers of x86-64's second table of calls begin."""

Table = tuple[int, int, dict[int, "int | None"]]
ARM: Table = (0x40000028, 281, {290: 3, 296: 2, 374: 3})
MACHINES: dict[str, tuple[Table, ...]] = {
    "x86_64": ((0xC000003E, 41, {44: 3, 46: 2, 307: 3}), (0x40000003, 359, {369: 3, 370: 2, 345: 3, 102: None})),
    "aarch64": ((0xC00000B7, 198, {206: 3, 211: 2, 269: 3}), ARM),
    "riscv64": ((0xC00000F3, 198, {206: 3, 211: 2, 269: 3}),),
}
"""For each table of calls of a machine: its architecture, `socket`, and the calls that send with their flags' place.

None: `socketcall` of 32-bit programs, whose arguments lie where no filter can look.
"""

COMPLAINT = "orch: "
CANNOT_CLOSE, NOT_FOUND = 126, 127


def flaw() -> str:
    """Why ports cannot be closed on this kernel; empty when they can."""
    found = abi()
    if found < 0:
        missing = ctypes.get_errno() == errno.ENOSYS
        return "the kernel has no Landlock" if missing else "Landlock is switched off"
    if found < NETWORK_ABI:
        return f"the kernel's Landlock (ABI {found}) has no rules for ports"
    if os.uname().machine not in MACHINES:
        return f"no filter of system calls is known for {os.uname().machine}"
    filters = ctypes.CDLL(None).prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0
    return "" if filters else "the kernel has no filter of system calls (seccomp)"


def abi() -> int:
    """The version of the kernel's Landlock; negative when there is none."""
    return _landlock(ctypes.CDLL(None, use_errno=True), CREATE_RULESET, None, 0, VERSION)


def close(rules: int) -> None:
    """Close the ports to this process and all that it starts. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _check(_landlock(libc, RESTRICT_SELF, rules, 0))
    os.close(rules)  # they could be added to, for whoever gets them next
    code = b"".join(struct.pack("=HBBI", *line) for line in filter_of(os.uname().machine))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer := ctypes.create_string_buffer(code)))
    _check(libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.c_char_p(program), 0, 0))
    del buffer  # it had to live until now


def is_rules(descriptor: int) -> bool:
    """Whether a descriptor is one of rules: not every launcher passes descriptors on."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}") == "anon_inode:[landlock-ruleset]"
    except OSError:
        return False


def rules_but(closed: Iterable[int]) -> int:
    """A descriptor of rules that close these ports. Raises OSError."""
    libc, closed = ctypes.CDLL(None, use_errno=True), frozenset(closed)
    scope = (ABSTRACT_SOCKETS,) if abi() >= SCOPE_ABI else ()
    attributes = struct.pack(f"={2 + len(scope)}Q", 0, TCP, *scope)
    rules = _check(_landlock(libc, CREATE_RULESET, attributes, len(attributes), 0))
    rule, add = (ctypes.c_uint64 * 2)(TCP), libc.syscall
    call, ruleset, kind = map(ctypes.c_long, (ADD_RULE, rules, NET_PORT))
    where, flags = ctypes.byref(rule), ctypes.c_long()
    for port in range(1 << 16):
        if port not in closed:
            rule[1] = port
            if add(call, ruleset, kind, where, flags):
                _check(-1)
    return rules


def filter_of(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter: instructions with how many are skipped when a test holds, how many when not, and K."""
    code = [(LOAD, 0, 0, ARCHITECTURE)]
    for architecture, socket, sending in MACHINES[machine]:
        table = [(LOAD, 0, 0, NUMBER), *_refused(EQUAL, IO_URING_SETUP, errno.ENOSYS)]
        table += _refused(AT_LEAST, X32, errno.ENOSYS)
        table += _call(socket, 0, EQUAL, AF_SMC, errno.EAFNOSUPPORT)
        table += _call(socket, 2, EQUAL, MPTCP, errno.EPROTONOSUPPORT)
        for number, flags in sending.items():
            table += (
                _refused(EQUAL, number, errno.ENOSYS)
                if flags is None
                else _call(number, flags, ANY_BIT, FAST_OPEN, errno.EOPNOTSUPP)
            )
        code += [(EQUAL, 0, len(table) + 1, architecture), *table, (RETURN, 0, 0, ALLOW)]
    return [*code, (RETURN, 0, 0, REFUSE | errno.ENOSYS)]


def _call(number: int, argument: int, test: int, value: int, error: int) -> list[tuple[int, int, int, int]]:
    """Refuse a call for one of its arguments."""
    load = [(LOAD, 0, 0, ARGUMENTS + 8 * argument), *_refused(test, value, error), (LOAD, 0, 0, NUMBER)]
    return [(EQUAL, 0, len(load), number), *load]


def _refused(test: int, value: int, error: int) -> list[tuple[int, int, int, int]]:
    return [(test, 0, 1, value), (RETURN, 0, 0, REFUSE | error)]


def _landlock(libc: ctypes.CDLL, call: int, *arguments: object) -> int:
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    return int(libc.syscall(ctypes.c_long(call), *words))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def main(ports: str, rules: int, argv: list[str]) -> NoReturn:
    """Close the ports and become the command, or say in one line why not."""
    try:
        close(rules if is_rules(rules) else rules_but(map(int, ports.split(","))))
    except OSError as error:
        status, problem = CANNOT_CLOSE, f"the engine's ports cannot be closed to the command: {error.strerror}"
    else:
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and so would the command
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execvp(argv[0], argv)  # noqa: S606 - the command is what this program is for
        except OSError as error:
            status, problem = NOT_FOUND, f"{argv[0]}: {error.strerror}"
    os.write(2, f"{COMPLAINT}{problem}\n".encode("utf-8", "replace"))
    os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
