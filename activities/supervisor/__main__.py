"""The program that owns one job: `python -I -S THIS_FOLDER JOB_FOLDER LOCK_FD`. The standard library alone."""

# ruff: noqa: PTH100, PTH120
from __future__ import annotations

import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
__package__ = os.path.basename(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH119 - found by its siblings

from .program import main

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
    os._exit(0)
