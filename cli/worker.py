"""`orch worker`: serve runs in the foreground, for a cluster or a service manager."""

from __future__ import annotations

import click


@click.command()
def worker() -> None:
    """Serve runs in the foreground until stopped; agents that run then go on.

    The engine is the one that the TEMPORAL_* variables or a profile name, else the local one.
    """
    from ..worker.main import main

    main()
