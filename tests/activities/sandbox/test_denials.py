"""The sandbox proved on this host: every act fails in a box, and would succeed where the box had a hole."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orch.activities.sandbox import Access, Box
from orch.activities.sandbox.bubblewrap import Bubblewrap
from orch.activities.sandbox.denials import Denial, denials
from orch.activities.sandbox.hiding import homes

Words = tuple[str, ...]


class Leaky(Bubblewrap):
    """Boxes with a hole in their options or mounts."""

    def __init__(self, words: Callable[[str], str] = str, without: frozenset[Access] = frozenset()) -> None:
        self.words, self.without = words, without

    def wrap(self, argv: Words, box: Box) -> Words:
        kept = tuple(mount for mount in box.mounts if mount.access not in self.without)
        options = super().wrap(("-",), replace(box, mounts=kept))[:-1]
        return (*self.words("\n".join(options)).split("\n"), *argv)


def test_everything_is_denied() -> None:
    found = list(denials(Bubblewrap()))
    assert [one for one in found if not one.denied] == []
    assert len({(one.profile, one.what) for one in found}) == len(found) > 35


HOLES: dict[str, tuple[Leaky, set[str]]] = {
    "the network": (Leaky(lambda text: text.replace("--unshare-net\n", "")), {"reach the network"}),
    "processes": (
        Leaky(lambda text: text.replace("--unshare-pid\n", "")),
        {"see a process of the host", "signal a process of the host"},
    ),
    "devices": (
        Leaky(lambda text: text.replace("--dev\n/dev\n", "--dev-bind\n/dev\n/dev\n")),
        {"open a disk or the memory"},
    ),
    "what is hidden": (
        Leaky(without=frozenset({Access.HIDDEN, Access.SCRATCH, Access.LINK})),
        {
            "read the home directory", "read the ledger of the run", "read another candidate's workspace",
            "read others' temporary files", "reach a socket of a daemon",
        },
    ),
    "what is read-only": (
        Leaky(lambda text: text.replace("--ro-bind\n", "--bind\n"), frozenset(Access) - {Access.WRITE}),
        {
            "write to the home directory", "write to the ledger of the run", "write to the store",
            "write to another candidate's workspace", "write outside of its workspace", "mount the disk writable again",
        },
    ),
    "protected files": (
        Leaky(lambda text: text.replace("/tree/protected", "/tree/absent")),
        {"write to a protected file", "replace a protected file"},
    ),
}  # fmt: skip
if os.geteuid() == 0:  # nobody else may write them anyway
    hole = Leaky(lambda text: text.replace("--ro-bind-try\n/proc/sys\n/proc/sys\n", ""))
    HOLES["settings of the kernel"] = (hole, {"write a setting of the kernel"})


@pytest.mark.parametrize("name", HOLES)
def test_a_hole_is_noticed(name: str) -> None:
    launcher, whats = HOLES[name]
    found = {one.what for one in denials(launcher) if not one.denied}
    assert whats <= found


def test_a_box_that_fails_is_no_proof() -> None:
    found = list(denials(Leaky(lambda text: text.replace("--dev\n", "--no-such-option\n"))))
    assert [one.denied for one in found] == [False, False]
    assert "no-such-option" in found[0].said


def test_the_bait_is_gone_afterwards() -> None:
    assert isinstance(next(denials(Bubblewrap())), Denial)
    assert [path for home in homes() for path in home.glob(".orch-doctor-*")] == []
    assert list(Path("/run").glob(f"orch-doctor-{os.getpid()}*")) == []
