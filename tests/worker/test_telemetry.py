from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator

import pytest
import structlog

from orch.worker.telemetry import log_to_stderr, worker_runtime
from orch.workflows.errors import RefusedError


@pytest.fixture
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


@pytest.mark.usefixtures("_restored_logging")
def test_every_log_line_is_a_json_object_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr()
    structlog.get_logger().info("worker_started", slots=4)
    logging.getLogger("temporalio.worker").warning("it said %s", "hello")
    logging.getLogger("temporalio.worker").debug("unseen")
    out, err = capsys.readouterr()
    ours, theirs = (json.loads(line) for line in err.splitlines())
    assert out == ""
    assert (ours["event"], ours["slots"], ours["level"]) == ("worker_started", 4, "info")
    assert (theirs["event"], theirs["logger"]) == ("it said hello", "temporalio.worker")


def test_metrics_on_a_taken_port_are_refused_by_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(RefusedError, match=address) as refused:
            worker_runtime(address)
    assert "ORCH_METRICS" in refused.value.hint
