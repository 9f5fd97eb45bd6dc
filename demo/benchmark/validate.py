"""Whether the trees are those of the release as it was published."""

from __future__ import annotations

import os
import sys
from pathlib import Path

EXPECTED = Path(__file__).resolve().with_name("expected.txt").read_text()

if __name__ == "__main__":
    same = Path(os.environ["ORCH_OUTPUT"], "trees.txt").read_text() == EXPECTED
    sys.exit(0 if same else "the trees differ from those of the release")
