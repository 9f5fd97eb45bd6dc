"""Which kind of file a YAML file is, by its keys."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from .campaign_file import CAMPAIGN_KEYS
from .contract_file import KEYS
from .nearest import nearest
from .pilot_file import PILOT_KEYS
from .round_file import ROUND_KEYS
from .yaml_lines import read_yaml


class FileKind(StrEnum):
    """What `orch check` knows."""

    CONTRACT = "contract"
    CAMPAIGN = "campaign"
    ROUND = "round"
    PILOT = "pilot"


_KEYS = {
    FileKind.CONTRACT: frozenset(KEYS),
    FileKind.CAMPAIGN: frozenset(CAMPAIGN_KEYS),
    FileKind.ROUND: frozenset(ROUND_KEYS),
    FileKind.PILOT: frozenset(PILOT_KEYS),
}


def kind_of(file: Path) -> FileKind:
    """The kind that most of a file's keys belong to, of several the first; keys that are nearly right count, too.

    RefusedError when there is no such file.
    """
    data = read_yaml(file).data
    words = [str(word) for word in data] if isinstance(data, dict) else []

    def fit(kind: FileKind) -> tuple[int, int]:
        known = _KEYS[kind]
        return sum(word in known for word in words), sum(bool(nearest(word, known)) for word in words)

    return max(FileKind, key=fit)
