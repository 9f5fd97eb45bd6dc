"""What providers' errors mean: words and statuses as agents pass them on, and when to come back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from orch.activities.agents.api_errors import classify, retry_time
from orch.workflows.model.outcome import OutcomeKind as Kind

NOW = datetime(2026, 11, 29, 17, 27, tzinfo=UTC).timestamp()
MINUTE, HOUR, DAY = 60, 3600, 86_400

WORDS = [
    ("Prompt is too long · the request is ~250000 tokens (limit 200000)", 400, Kind.CONTEXT_FULL),
    ("This model's maximum context length is 128000 tokens", 400, Kind.CONTEXT_FULL),
    ("context_length_exceeded", None, Kind.CONTEXT_FULL),
    ("The input token count (1200000) exceeds the maximum number of tokens allowed", 400, Kind.CONTEXT_FULL),
    ("API Error: Claude's response exceeded the 64000 output token maximum.", None, Kind.CONTEXT_FULL),
    ("Request too large", 413, Kind.CONTEXT_FULL),
    ("You exceeded your current quota, please check your plan and billing details.", 429, Kind.OUT_OF_QUOTA),
    ("Credit balance is too low", None, Kind.OUT_OF_QUOTA),
    ("You've hit your monthly spend limit. Run /usage-credits to manage it.", None, Kind.OUT_OF_QUOTA),
    ("You have exhausted your daily quota on this model.", 429, Kind.OUT_OF_QUOTA),
    ("anything", 402, Kind.OUT_OF_QUOTA),
    ("You exceeded your current quota, check your billing details. Please retry in 23.9s.", 429, Kind.RATE_LIMITED),
    ("You have exhausted your capacity on this model. Your quota will reset after 13h26m52s.", 429, Kind.RATE_LIMITED),
    ("API Error: Request rejected (429) · scripted error 429", None, Kind.RATE_LIMITED),
    ("5-hour limit reached ∙ resets 3pm", None, Kind.RATE_LIMITED),
    ("You've hit your session limit · resets 3pm (Europe/Berlin)", None, Kind.RATE_LIMITED),
    ("Claude AI usage limit reached|1796006400", None, Kind.RATE_LIMITED),
    (
        '{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED"}}',
        None,
        Kind.RATE_LIMITED,
    ),
    ("Failed to authenticate. API Error: 403 scripted error 403", 403, Kind.NOT_AUTHORISED),
    ("Invalid API key · Please run /login", None, Kind.NOT_AUTHORISED),
    ("API key not valid. Please pass a valid API key.", 400, Kind.NOT_AUTHORISED),
    ("OAuth token has expired. Please obtain a new token", None, Kind.NOT_AUTHORISED),
    ('[API Error: {"error":{"code":401,"message":"no","status":"UNAUTHENTICATED"}}]', None, Kind.NOT_AUTHORISED),
    ("Overloaded", 529, Kind.OVERLOADED),
    ("anything", 503, Kind.OVERLOADED),
    ('{"error":{"code":500,"message":"no","status":"INTERNAL"}}', None, Kind.OVERLOADED),
    ("HTTP 502 Bad Gateway", None, Kind.OVERLOADED),
    ("Claude Code is unable to respond to this request, which appears to violate our Usage Policy", None, Kind.REFUSED),
    ("The model response was blocked due to safety settings.", None, Kind.REFUSED),
    ("stream disconnected before completion", None, Kind.STREAM_BROKEN),
    ("read ECONNRESET", None, Kind.STREAM_BROKEN),
    ("[API Error: Incomplete JSON segment at the end]", None, Kind.STREAM_BROKEN),
    ("The model returned an empty response with no text or thoughts.", None, Kind.EMPTY_ANSWER),
    ("scripted error 400", 400, Kind.CRASHED),
    ("EACCES: permission denied, open '/etc/shadow'", None, Kind.CRASHED),
    ("a file of 500 lines could not be written", None, Kind.CRASHED),
    ("", None, Kind.CRASHED),
]


@pytest.mark.parametrize(("words", "status", "kind"), WORDS)
def test_error_is_what_its_words_and_status_say(words: str, status: int | None, kind: Kind) -> None:
    assert classify(words, status) is kind


TIMES = [
    ("Please retry in 23.5s.", 23.5),
    ("Please try again in 820ms", 0.82),
    ("Rate limit reached, try again in 1 minute", MINUTE),
    ("try again in 2 days 3 hours", 2 * DAY + 3 * HOUR),
    ("Your quota will reset after 1h26m52s.", HOUR + 26 * MINUTE + 52),
    ("retry-after: 30", 30),
    ('"retry-after":"7"', 7),
    ("retry after 30 seconds", 30),
    ("5-hour limit reached ∙ resets 8pm (UTC)", 2 * HOUR + 33 * MINUTE),
    ("You've hit your session limit · resets 7:30pm (Europe/Berlin)", HOUR + 3 * MINUTE),
    ("resets 5pm (UTC)", DAY - 27 * MINUTE),
    ("resets Dec 1, 5:27pm (UTC)", 2 * DAY),
    ("You've hit your usage limit, try again at Dec 1st, 2026 5:27 PM (UTC).", 2 * DAY),
    ("resets Nov 28 at 5:27pm (UTC)", 364 * DAY),
    ("limit resets at 2026-11-29T18:27:00Z", HOUR),
    ("Claude AI usage limit reached|1796006400", 1_796_006_400 - NOW),
]


@pytest.mark.parametrize(("words", "wait"), TIMES)
def test_words_say_when_to_come_back(words: str, wait: float) -> None:
    at = retry_time(words, NOW)

    assert at is not None
    assert at - NOW == pytest.approx(wait)


@pytest.mark.parametrize(
    "words",
    [
        "try again later",
        "resets soon",
        "resets 3",
        "resets Foo 3 at 5pm",
        "resets 25:00",
        "resets 9:75",
        "retry 3 more",
        "",
    ],
)
def test_words_without_a_time_say_nothing(words: str) -> None:
    assert retry_time(words, NOW) is None


def test_zone_that_is_none_is_taken_as_ours() -> None:
    assert retry_time("resets 3pm (No/Where)", NOW) == retry_time("resets 3pm", NOW)
