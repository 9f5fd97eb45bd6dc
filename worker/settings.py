"""What the environment says: where the state lies, how many attempts run at once, where metrics go."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import psutil

from ..activities.home import Home
from ..activities.limits import StepLimits
from ..workflows.errors import RefusedError
from ..workflows.model.placement import LABEL, MAX_LABELS

MOST_SLOTS = 32
"""More attempts at once than this is a decision, not a default."""

GIB_PER_SLOT = 1.5
"""Memory an attempt (an agent and the checks it runs) is counted with."""


@dataclass(frozen=True)
class Settings:
    """The resolved settings of one process."""

    home: Home
    slots: int
    """Attempts that may run on this host at once (`ORCH_SLOTS`)."""
    metrics: str | None = None
    """`host:port` on which the worker serves Prometheus metrics (`ORCH_METRICS`); None: not served."""
    labels: frozenset[str] = frozenset()
    """What this host has that others may lack, for attempts that need it (`ORCH_LABELS`, e.g. `gpu,big`)."""


def load_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Resolve the settings; nothing is created. Raises RefusedError on a value that cannot be used."""
    StepLimits.of_this_host(environ)  # refused now, and not in the middle of a run
    return Settings(
        home=Home(_root(environ)),
        slots=_slots(environ),
        metrics=environ.get("ORCH_METRICS") or None,
        labels=_labels(environ.get("ORCH_LABELS", "")),
    )


def refuse_unknown_makers() -> None:
    """Raise RefusedError where ORCH_SANDBOX or ORCH_WORKSPACES names nothing: a worker would end every run by it."""
    from ..activities.sandbox import registry as sandboxes
    from ..activities.workspaces import registry as workspaces  # late: most commands need neither

    sandboxes.setting()
    workspaces.setting()


def _root(environ: Mapping[str, str]) -> Path:
    chosen = environ.get("ORCH_STATE")
    return Path(chosen or platformdirs.user_state_dir("orch", appauthor=False)).expanduser().absolute()


def _slots(environ: Mapping[str, str]) -> int:
    text = environ.get("ORCH_SLOTS")
    if not text:
        return default_slots(cores=os.cpu_count() or 1, memory_gib=psutil.virtual_memory().total / 2**30)
    if not text.isdecimal() or int(text) < 1:
        raise RefusedError(f"ORCH_SLOTS is {text!r}, not a whole number from 1", hint="unset it or give e.g. 4")
    return int(text)


def _labels(text: str) -> frozenset[str]:
    labels = frozenset(label.strip() for label in text.split(",") if label.strip())
    for label in sorted(labels):
        if not re.fullmatch(LABEL, label):
            raise RefusedError(
                f"ORCH_LABELS: {label[:40]!r} is no label", hint="lower-case letters, digits, dots, dashes, underscores"
            )
    if len(labels) > MAX_LABELS:
        raise RefusedError(
            f"ORCH_LABELS names {len(labels)} labels, at most {MAX_LABELS}", hint="keep the ones asked for"
        )
    return labels


def default_slots(*, cores: int, memory_gib: float) -> int:
    """Two attempts a core (agents mostly wait for their model), as far as the memory reaches."""
    return max(1, min(2 * cores, int(memory_gib / GIB_PER_SLOT), MOST_SLOTS))
