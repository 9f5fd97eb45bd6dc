"""A cancellation is heard between steps, too."""

from __future__ import annotations

import asyncio

from temporalio import workflow


def raise_if_cancelled() -> None:
    """End here when the run was asked to end; call it before each step, so that what the last one brought is kept.

    A step that ends well just when it is to be cancelled returns its result, and the request, which comes only once,
    would be lost with it: a slot that came free then would start an agent that nobody stops.
    """
    if workflow.cancellation_reason() is not None:
        raise asyncio.CancelledError
