"""The results as plain tables and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from .contenders import Sample
from .histories import Trace, typical
from .scene import Case

HEADER = (
    "files", "agent", "N", "bare s", "orch s", "wall ratio", "CPU ratio", "added ms per candidate",
    "events own + parent's", "kB own + parent's",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One cell of the matrix: the pairs in the order they were run, and the last run's trace."""

    case: Case
    pairs: Sequence[tuple[Sample, Sample]]
    trace: Trace

    def spread(self, name: str) -> tuple[float, float, float]:
        """Median, least and most of a figure over the pairs."""
        values = [self._figures(bare, orch)[name] for bare, orch in self.pairs]
        return median(values), min(values), max(values)

    def _figures(self, bare: Sample, orch: Sample) -> dict[str, float]:
        return {
            "bare_s": bare.wall_s,
            "orch_s": orch.wall_s,
            "wall_ratio": orch.wall_s / bare.wall_s,
            "cpu_ratio": orch.cpu_s / bare.cpu_s,
            "cpu_added_s": orch.cpu_s - bare.cpu_s,
            "added_ms": (orch.wall_s - bare.wall_s) * 1000 / self.case.count,
        }

    def cells(self) -> tuple[str, ...]:
        """The row as text; a range in brackets where there was more than one pair."""
        events, size, parent_events, parent_size = typical(self.trace)
        return (
            f"{self.case.files:,}", self.case.agent, str(self.case.count),
            self._shown("bare_s", ".2f"), self._shown("orch_s", ".2f"),
            self._shown("wall_ratio", ".2f"), self._shown("cpu_ratio", ".1f"), self._shown("added_ms", ".0f"),
            f"{events:.0f} + {parent_events:.1f}", f"{size / 1000:.1f} + {parent_size / 1000:.1f}",
        )  # fmt: skip

    def _shown(self, name: str, form: str) -> str:
        middle, least, most = self.spread(name)
        return f"{middle:{form}}" + (f" [{least:{form}}-{most:{form}}]" if len(self.pairs) > 1 else "")

    def facts(self) -> dict[str, Any]:
        """The row for JSON: every pair, and the medians with their ranges."""
        names = self._figures(*self.pairs[0])
        events, size, parent_events, parent_size = typical(self.trace)
        return {
            "files": self.case.files,
            "agent": self.case.agent,
            "candidates": self.case.count,
            "pairs": [self._figures(*pair) for pair in self.pairs],
            **{name: dict(zip(("median", "min", "max"), self.spread(name), strict=True)) for name in names},
            "history": {"events": events, "bytes": size, "parent_events": parent_events, "parent_bytes": parent_size},
            "cpu_s": {"bare": self.pairs[-1][0].cpu, "orch": self.pairs[-1][1].cpu},
            "phases_s": self.trace.phases,
            "steps_s": self.trace.steps,
        }


def table(rows: Sequence[Row]) -> str:
    """All rows below the header."""
    return aligned([HEADER, *(row.cells() for row in rows)])


def where(row: Row) -> str:
    """Where the time of a cell's last run went: the command's phases, then the steps with what they waited for."""
    title = f"{row.case.files:,} files, {row.case.agent} agents, N = {row.case.count}"
    phases = [(name, f"{seconds * 1000:.0f}") for name, seconds in row.trace.phases.items()]
    steps = [
        (name, str(len(times)), *_medians(times), f"{sum(work for _, work in times) * 1000:.0f}")
        for name, times in row.trace.steps.items()
    ]
    head = ("activity", "count", "waiting ms", "working ms", "working ms in all")
    bare, orch = row.pairs[-1]
    cpu = [(name, f"{seconds * 1000:.0f}") for name, seconds in orch.cpu.items()]
    cpu.append(("(the bare script)", f"{bare.cpu_s * 1000:.0f}"))
    tables: list[list[tuple[str, ...]]] = [
        [("phase", "ms"), *phases],
        [head, *steps],
        [("CPU used by", "ms"), *cpu],
    ]
    return "\n\n".join([title, *map(aligned, tables)])


def _medians(times: Sequence[tuple[float, float]]) -> tuple[str, str]:
    return f"{median(wait for wait, _ in times) * 1000:.0f}", f"{median(work for _, work in times) * 1000:.0f}"


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def document(rows: Sequence[Row], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that was measured."""
    return {**facts, "rows": [row.facts() for row in rows]}
