"""The results of the workspaces' benchmark as tables. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

HAND = "git worktree add"
"""What all others are compared with."""


@dataclass
class Samples:
    """Milliseconds by step, contender and number (of workspaces or changes); one sample a turn or more.

    Attributes:
        files: of the repository.
        inodes: folders and files that a contender makes for one workspace.
        room: bytes that a new one takes.
    """

    files: int
    inodes: dict[str, tuple[int, int]] = field(default_factory=dict)
    room: dict[str, int] = field(default_factory=dict)
    _all: dict[tuple[str, str, int], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, step: str, name: str, number: int, value: float) -> None:
        """Keep one sample."""
        self._all[step, name, number].append(value)

    def middle(self, step: str, name: str, number: int) -> float | None:
        """The median; None where nothing was measured."""
        found = self._all.get((step, name, number))
        return median(found) if found else None

    def numbers(self, step: str) -> list[int]:
        """The numbers that a step was measured for."""
        return sorted({number for found, _, number in self._all if found == step})

    def names(self, step: str) -> list[str]:
        """The contenders that did a step."""
        return list(dict.fromkeys(name for found, name, _ in self._all if found == step))

    def facts(self) -> list[dict[str, Any]]:
        """Everything, for JSON."""
        return [{"step": s, "who": w, "number": n, "ms": values} for (s, w, n), values in self._all.items()]


def limits_table(limits: Mapping[str, float]) -> str:
    """The kernel's and the programs' own times."""
    return table(("what the kernel takes", "ms"), [(name, f"{value:.3f}") for name, value in limits.items()])


def making_table(samples: Samples, limits: Mapping[str, float]) -> str:
    """Making, looking and removing, for each contender and number of workspaces."""
    header = (
        "N", "by", "make all ms", "each ms", f"{HAND} / this", "limit each ms", "times the limit",
        "first `git rev-parse` ms", "first `git status` ms", "remove all ms", "removing: worktree / this", "kB each",
    )  # fmt: skip
    rows = [
        _making_row(samples, limits, number, name)
        for number in samples.numbers("make")
        for name in samples.names("make")
        if samples.middle("make", name, number) is not None
    ]
    base = samples.middle("base", "overlay", 1)
    return f"The overlays' base, once: {base:,.0f} ms.\n\n{table(header, rows)}"


def _making_row(samples: Samples, limits: Mapping[str, float], number: int, name: str) -> tuple[str, ...]:
    made = samples.middle("make", name, number) or 0.0
    folders, files = samples.inodes[name]
    limit = folders * limits["mkdir"] + files * limits["create a file of 1.7 kB"]
    return (
        str(number), name, f"{made:,.1f}", f"{made / number:,.2f}", _ratio(samples, "make", name, number),
        f"{limit:,.2f}", f"{made / number / limit:.1f}",
        _shown(samples.middle("head", name, number)), _shown(samples.middle("status", name, number)),
        _shown(samples.middle("remove", name, number)), _ratio(samples, "remove", name, number),
        f"{samples.room[name] / 1000:,.0f}",
    )  # fmt: skip


def _ratio(samples: Samples, step: str, name: str, number: int) -> str:
    """How many times as long it takes by hand; from fewer workspaces, and said so, where not so many were made."""
    own = samples.middle(step, name, number)
    known = [n for n in samples.numbers(step) if n <= number and samples.middle(step, HAND, n) is not None]
    if not own or not known or name == HAND:
        return ""
    by_hand = (samples.middle(step, HAND, known[-1]) or 0.0) / known[-1]
    note = "" if known[-1] == number else f" (of N = {known[-1]})"
    return f"{by_hand / (own / number):,.1f}{note}"


def snapshot_table(samples: Samples, limits: Mapping[str, float]) -> str:
    """Snapshots, for each number of changes."""
    header = ("changes", "snapshot by", "ms", "`git add -A && git write-tree` / this", "limit ms", "times the limit")
    rows = []
    for number in samples.numbers("snapshot"):
        for name in samples.names("snapshot"):
            spent = samples.middle("snapshot", name, number) or 0.0
            by_hand = samples.middle("snapshot", HAND, number) or 0.0
            objects = number * (limits["create a file of 1.7 kB"] + limits["rename"])
            looking = samples.files * limits["lstat"] if name != "overlay" else 0.0
            limit = objects + looking + limits["start git (git version)"]
            ratio = "" if name == HAND else f"{by_hand / spent:.1f}"
            rows.append((f"{number:,}", name, f"{spent:,.1f}", ratio, f"{limit:,.1f}", f"{spent / limit:.1f}"))
    return table(header, rows)


def carried_table(made: Mapping[str, Mapping[str, float]]) -> str:
    """What carrying adds."""
    rows = [(name, f"{found['ms']:,.1f}", f"{found['bytes'] / 1000:,.0f}") for name, found in made.items()]
    return table(("workspace by", "make ms", "kB each"), rows)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"
