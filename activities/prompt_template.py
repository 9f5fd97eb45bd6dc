"""A project's own prompt template: text with `{{goal}}`, `{{checks}}`, `{{feedback}}` and the like. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from ..workflows.errors import RefusedError

NAMES = ("goal", "checks", "protected", "feedback", "notes", "rules")
"""What a template may name."""

NEEDED = ("goal", "checks", "feedback")
"""What it must name: an agent that does not know these works in the dark."""

_SLOT = re.compile(r"\{\{([^{}]*)\}\}")


def check(template: str, name: str) -> None:
    """Refuse a template that names something unknown or leaves out what every agent needs; `name` is its file."""
    found = [slot.strip() for slot in _SLOT.findall(template)]
    for slot in found:
        if slot not in NAMES:
            near = difflib.get_close_matches(slot, NAMES, n=1)
            hint = f"did you mean {{{{{near[0]}}}}}?" if near else f"known: {', '.join(NAMES)}"
            raise RefusedError(f"{name}: unknown placeholder {{{{{slot}}}}}", hint=hint)
    if missing := [slot for slot in NEEDED if slot not in found]:
        slots = ", ".join(f"{{{{{slot}}}}}" for slot in missing)
        raise RefusedError(f"{name} leaves out {slots}", hint="an agent needs goal, checks and feedback")


def fill(template: str, sections: Mapping[str, str]) -> str:
    """Put the sections in, once: what they hold is never taken for a placeholder."""
    return _SLOT.sub(lambda slot: sections.get(slot[1].strip(), ""), template).strip()
