"""What an attempt finds on a host where its run did not begin: the run's folder, and its commit in a store."""

from __future__ import annotations

from ...workflows.model.attempt import Measure, OpenWorkspace
from ...workflows.model.goal import PrepareRun, RunPrepared, SandboxMode
from ...workflows.model.placement import Exchange
from ...workflows.model.promotion import PromoteTarget
from .. import artifacts
from ..home import Home
from ..store import Store
from .bundles import bring, refresh_settings

MARK = "exchange.json"
"""In the folder of a run whose attempts may be on other hosts: by which artifact store."""


def arrive(home: Home, request: OpenWorkspace | Measure, exchange: Exchange) -> None:
    """Bring what an attempt needs to its host; on the run's own host that is only a tree that was made elsewhere."""
    run, store = request.attempt.run, Store(home, request.store)
    artifacts.write_whole(home.run(run) / MARK, exchange.model_dump_json())
    bring(store, exchange, request.commit, pin=f"refs/orch/{run}/from-{request.commit}")
    if store.key == exchange.key:
        refresh_settings(store, exchange, request.commit)
        _keep_run(home, request, store)


def _keep_run(home: Home, request: OpenWorkspace | Measure, store: Store) -> None:
    """Write what places and the collection read of a run, as its preparation does on its own host."""
    run = request.attempt.run
    if (home.run(run) / artifacts.PREPARED).exists():
        return
    asked = PrepareRun(
        run=run,
        repo="",
        contract=request.contract,
        agents=(),
        sandbox=SandboxMode.AUTO,
        promote=PromoteTarget(),
    )
    artifacts.keep_request(home, asked)
    prepared = RunPrepared(store=store.key, contract=request.contract, sandbox=request.sandbox)
    artifacts.write_whole(home.run(run) / artifacts.PREPARED, prepared.model_dump_json())
