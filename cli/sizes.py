"""Amounts of data as people write them: `512m`, `20g`, or plain bytes."""

from __future__ import annotations

import re


def parse_size(text: str) -> int:
    """Bytes, in units of 1024; ValueError names the forms that are understood."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if found is None or not float(found[1]):
        raise ValueError(f"{text!r} is no amount of data: write 512m or 20g")
    return int(float(found[1]) * 1024 ** " kmgt".index(found[2] or " "))
