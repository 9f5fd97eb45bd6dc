"""The errors of OpenAI, the same for both of its dialects."""

from __future__ import annotations

from .dialect import Document
from .reply import Trouble

_ERRORS = {
    Trouble.RATE_LIMITED: (429, "requests", "rate_limit_exceeded", "Rate limit reached for requests."),
    Trouble.UNAUTHORISED: (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    Trouble.QUOTA: (
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    Trouble.CONTEXT_FULL: (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    Trouble.OVERLOADED: (503, "server_error", "server_is_overloaded", "The server is overloaded. Try again later."),
    Trouble.SERVER_ERROR: (500, "server_error", None, "The server had an error while processing your request."),
}


def error(trouble: Trouble) -> tuple[int, Document]:
    """An error."""
    status, kind, code, message = _ERRORS[trouble]
    return status, {"error": {"message": message, "type": kind, "code": code, "param": None}}
