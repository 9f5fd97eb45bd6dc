"""Whether what the benchmark left is right: every part of the engine gave the right answer."""

from __future__ import annotations

import os
import sys
from pathlib import Path

LINES = Path(os.environ["ORCH_OUTPUT"], "answers.txt").read_text().splitlines()
WRONG = [line for line in LINES if not line.endswith(" right")]

if __name__ == "__main__":
    sys.exit(f"wrong answers: {WRONG}" if WRONG or not LINES else 0)
