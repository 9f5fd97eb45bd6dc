"""`orch` runs many coding agents at one target and gives back one verified change.

The repository's root is the package `orch`; `src/orch/` is a folder of links that gives it that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cli.client import Client as Client

__all__ = ["Client"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Export `Client` lazily: importing `orch` inside a workflow must not load the network client."""
    if name == "Client":
        from .cli.client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
