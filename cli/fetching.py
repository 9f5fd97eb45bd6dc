"""What another host published of a run: its trees and outputs, fetched when somebody looks at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..activities.home import Home
    from ..workflows.model.attempt import AttemptKey
    from ..workflows.model.placement import Exchange


def exchange_of(home: Home, run: str, store: str) -> Exchange | None:
    """The artifact store of a run that was prepared on this host; None when its attempts stayed here."""
    from ..activities.artifacts import kept_request
    from ..workflows.model.placement import Exchange

    try:
        request = kept_request(home, run)
    except FileNotFoundError:
        return None
    return Exchange(url=request.exchange, key=f"{store}.{request.host}") if request.exchange else None


def fetch_commit(home: Home, run: str, store: str, commit: str) -> None:
    """Bring a candidate's commit into this host's store, where it is not there yet."""
    from ..activities.exchange.bundles import bring
    from ..activities.store import Store

    there, exchange = Store(home, store), exchange_of(home, run, store)
    if exchange is not None and there.resolve(commit) is None:
        bring(there, exchange, commit, pin=f"refs/orch/{run}/from-{commit}")


def fetch_logs(home: Home, store: str, key: AttemptKey) -> bool:
    """Bring an attempt's prompts and outputs here, where they are not yet; False when there are none to be had."""
    from ..activities.exchange.outputs import fetch_outputs

    exchange = exchange_of(home, key.run, store)
    return exchange is not None and not home.attempt(key).exists() and fetch_outputs(home, exchange, key)
