"""What rungs find in their environment besides the place's own: nothing of the measured tree may steer them."""

from __future__ import annotations

import os
from collections.abc import Mapping

FIXED = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}
"""No rung leaves compiled code to the next one, and no package is taken from a home directory."""


def measuring_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """A place's environment for a rung; of PATH only absolute folders, as others mean folders of the measured tree."""
    path = os.pathsep.join(part for part in environment.get("PATH", "").split(os.pathsep) if os.path.isabs(part))  # noqa: PTH117 - not a path yet
    return {**environment, **FIXED, "PATH": path or os.defpath}
