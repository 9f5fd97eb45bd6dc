"""Editable installs that point into the user's tree: checks that import them measure that tree, not a candidate's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from urllib.parse import unquote, urlparse


def editable_installs(path: str, top: Path) -> tuple[str, ...]:
    """Warn of each package that the first `python3` on `path` imports from inside `top` (PEP 610, direct_url.json)."""
    python = shutil.which("python3", path=path)
    if python is None:
        return ()
    found = sorted(Path(python).parent.parent.glob("lib/python3*/site-packages/*.dist-info/direct_url.json"))
    return tuple(
        f"{record.parent.name.partition('-')[0]} is installed editable from {top}: checks that import it that way see "
        "your tree, not the candidate's; let them import from their own folder, or install it in `setup:`"
        for record in found
        if _points_into(record, top)
    )


def _points_into(record: Path, top: Path) -> bool:
    try:
        facts = json.loads(record.read_text(encoding="utf-8"))
        place = Path(unquote(urlparse(facts["url"]).path))
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(facts.get("dir_info", {}).get("editable")) and place.is_relative_to(top)
