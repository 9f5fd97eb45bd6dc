"""The search attributes that make runs findable; workflows set them by these names."""

from __future__ import annotations

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

NAMES = ("OrchKind", "OrchRepo", "OrchStatus")
"""All of type Keyword."""


async def register(client: Client) -> None:
    """Add what the namespace lacks; where that is not ours to do (Temporal Cloud), say what to add."""
    import structlog

    log = structlog.get_logger()
    try:
        listed = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace)
        )
        missing = [name for name in NAMES if name not in listed.custom_attributes]
        if missing:
            keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
            await client.operator_service.add_search_attributes(
                AddSearchAttributesRequest(
                    namespace=client.namespace, search_attributes=dict.fromkeys(missing, keyword)
                )
            )
            log.info("search_attributes_registered", names=missing)
    except RPCError as error:
        log.warning(
            "search_attributes_unchecked",
            error=error.message,
            advice=f"register {', '.join(NAMES)} as Keyword in namespace {client.namespace}",
        )
