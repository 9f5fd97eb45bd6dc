"""What agents built on the library `litellm` share: how it names models, finds servers, and words errors."""

from __future__ import annotations

import re

from ...workflows.model.outcome import OutcomeKind
from .adapter import Launch
from .api_errors import classify
from .providers import NO_KEY, NO_MODEL, keys, server

_KINDS = {
    "APIConnectionError": OutcomeKind.STREAM_BROKEN,
    "BudgetExceededError": OutcomeKind.BUDGET_LIMIT,
    "ContentPolicyViolationError": OutcomeKind.REFUSED,
    "ContextWindowExceededError": OutcomeKind.CONTEXT_FULL,
}
_STATUS = {
    "AuthenticationError": 401,
    "BadGatewayError": 502,
    "InternalServerError": 500,
    "PermissionDeniedError": 403,
    "RateLimitError": 429,
    "ServiceUnavailableError": 503,
    "Timeout": 408,
}
_NAME = re.compile(r"\blitellm\.(?:exceptions\.)?(\w+)")


def model(launch: Launch) -> str:
    """The model as `PROVIDER/MODEL`; empty for the agent's own default."""
    name = launch.spec.argument
    return f"openai/{name.removeprefix('openai/') or NO_MODEL}" if server(launch) else name


def environment(launch: Launch) -> dict[str, str]:
    """The server, the keys, and no look at another host for prices."""
    url = server(launch)
    ours = {"OPENAI_API_BASE": url, "OPENAI_API_KEY": NO_KEY} if url else {}
    return {"LITELLM_LOCAL_MODEL_COST_MAP": "True", **ours, **keys(launch)}


def error_kind(words: str) -> OutcomeKind:
    """The outcome an error stands for, by the name of its class, else by its words."""
    name = found[1] if (found := _NAME.search(words)) else ""
    return _KINDS.get(name) or classify(words, _STATUS.get(name))
