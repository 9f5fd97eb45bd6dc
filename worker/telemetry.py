"""Logs and metrics: JSON lines on stderr, Temporal's own log lines among them, nothing ever on stdout."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from temporalio import activity
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    PrometheusConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)

from ..workflows.errors import RefusedError

if TYPE_CHECKING:
    import structlog

HEARTBEAT = timedelta(seconds=10)
"""How often a worker tells the server that it lives (`temporal worker list`)."""


@cache
def quiet_runtime() -> Runtime:
    """The runtime of clients: what goes wrong reaches them as an exception, so the core logs nothing."""
    return Runtime(telemetry=TelemetryConfig(logging=None), worker_heartbeat_interval=HEARTBEAT)


def worker_runtime(metrics: str | None) -> Runtime:
    """The runtime of a worker: core logs go through `logging`; metrics are served at `host:port` when given.

    Raises RefusedError when that address cannot be used.
    """
    forwarding = LogForwardingConfig(logger=logging.getLogger("temporalio.core"))
    telemetry = TelemetryConfig(
        logging=LoggingConfig(filter=TelemetryFilter("WARN", "ERROR"), forwarding=forwarding),
        metrics=PrometheusConfig(bind_address=metrics, durations_as_seconds=True, counters_total_suffix=True)
        if metrics
        else None,
    )
    try:
        return Runtime(telemetry=telemetry, worker_heartbeat_interval=HEARTBEAT)
    except ValueError as error:
        raise RefusedError(
            f"metrics cannot be served at {metrics}: {error}", hint="set ORCH_METRICS to a free host:port"
        ) from error


def log_to_stderr(level: int = logging.INFO) -> None:
    """Send structlog and `logging` through one renderer: a JSON object a line."""
    import structlog  # late, as clients log nothing and it takes a tenth of their start

    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        add_activity,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=level, force=True)


def add_activity(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Name the run and the step that a log line belongs to."""
    if activity.in_activity():
        info = activity.info()
        event.setdefault("workflow_id", info.workflow_id)
        event.setdefault("activity", info.activity_type)
        event.setdefault("try", info.attempt)
    return event
