"""What a provider's error means: its status and words, as agents pass them on, to an outcome."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from ...workflows.model.outcome import OutcomeKind

_WORDS = {
    OutcomeKind.CONTEXT_FULL: (
        "(?:prompt|input) is too long", "context[_ ](?:length|window|limit)", "maximum context",
        "too many (?:input )?tokens", "input token count", "maximum number of tokens", "output token maximum",
    ),
    OutcomeKind.OUT_OF_QUOTA: (
        "insufficient[_ ](?:quota|credits?|balance|funds)", "quota exceeded",
        "(?:exceeded|exhausted) your (?:[a-z]+ )?(?:quota|capacity)", "credit balance", "billing", "out of credits",
        "spend(?:ing)? limit", "payment required",
    ),
    OutcomeKind.NOT_AUTHORISED: (
        "(?:invalid|incorrect|no|missing) (?:x-)?api[-_ ]?key", "api[-_ ]?key (?:is )?(?:not|in)[- ]?valid",
        "api_key_invalid", "authentication[_ ](?:error|failed)", "failed to authenticate", "unauthori[sz]ed",
        "unauthenticated", "not logged in", "please log ?in", "run /login", "permission_(?:denied|error)",
        "error authenticating", "manual authorization", "must specify the [a-z_]+_key", "invalid bearer",
        r"\btoken (?:has |is )?(?:been )?(?:expired|revoked|invalid)", "(?:invalid|set an) auth method",
    ),
    OutcomeKind.RATE_LIMITED: (
        "rate[_ -]?limit", "too many requests", "usage limit", "resource[_ ]exhausted", "limit reached",
        r"(?:hit|reached|exceeded) your (?:[\w-]+ ){0,2}limit",
    ),
    OutcomeKind.OVERLOADED: (
        "overloaded", "server[_ ]error", "internal server error", "(?:service|temporarily) unavailable", "bad gateway",
        "gateway time-?out", "high demand", "at capacity",
    ),
    OutcomeKind.REFUSED: (
        "refusal", "refused to", "usage policy", "content[_ ](?:filter|policy)", "blocked due to safety", "safeguards",
        "prohibited[_ ]content",
    ),
    OutcomeKind.STREAM_BROKEN: (
        "stream (?:disconnected|closed|ended|error)", "connection (?:error|reset|closed|refused|timed|failed)",
        "(?:cannot|unable to) connect", "terminated",
        "socket hang ?up", "premature", "econnre", "fetch failed", "network error", "incomplete (?:chunked|json)",
    ),
    OutcomeKind.EMPTY_ANSWER: ("empty response",),
}  # fmt: skip
_PATTERNS = tuple((kind, re.compile("|".join(words), re.IGNORECASE)) for kind, words in _WORDS.items())

_BEFORE_STATUS = frozenset({OutcomeKind.CONTEXT_FULL, OutcomeKind.OUT_OF_QUOTA, OutcomeKind.REFUSED})
_BY_STATUS = {
    401: OutcomeKind.NOT_AUTHORISED,
    402: OutcomeKind.OUT_OF_QUOTA,
    403: OutcomeKind.NOT_AUTHORISED,
    408: OutcomeKind.OVERLOADED,
    413: OutcomeKind.CONTEXT_FULL,
    429: OutcomeKind.RATE_LIMITED,
    529: OutcomeKind.OVERLOADED,
}
_STATUS = re.compile(
    r"\b(?i:status(?:[ _]?code)?|code|error|http(?:/\d\.\d)?)[\"'\s:=]*\(?([45]\d\d)\b|\b([45]\d\d)\s+[A-Z{]"
)

_PART = r"(\d+(?:\.\d+)?) ?(ms|d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PARTS = re.compile(_PART, re.IGNORECASE)
_SPAN = re.compile(
    rf"(?:again|retry|retrying|resets?|available)\b\D{{0,20}}?((?:{_PART}(?:,? and |, ?| )?)+)", re.IGNORECASE
)
_HEADER = re.compile(r"retry[-_ ]after[\"'\s:=]+(\d+(?:\.\d+)?)(?![\d.]* ?[a-z])", re.IGNORECASE)
_EPOCH = re.compile(r"limit reached\|(\d{10})\b")
_STAMP = re.compile(
    r"(?:resets?|again|retry|until)\b[^\n\d]{0,20}(\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.]*(?:Z|[+-]\d\d:\d\d)?)"
)
_CLOCK = re.compile(
    r"(?i:resets?|again)(?i: at| on)? (?:([A-Z][a-z]{2})[a-z]* (\d{1,2})(?:st|nd|rd|th)?(?:, \d{4})?(?:,| at)? )?"
    r"(\d{1,2})(?::(\d\d))? ?(?i:([ap])m)?\b(?: \(([\w/+-]+)\))?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def classify(text: str, status: int | None = None) -> OutcomeKind:
    """The outcome an API error stands for; what cannot be told is a crash.

    A full context, a used-up quota and a refusal come under statuses like 400 and 429, so their words go before the
    status. But who says in how long to come back has only limited the rate, whatever he calls it.
    """
    status = status if status is not None else _status_in(text)
    found = next((kind for kind, pattern in _PATTERNS if pattern.search(text)), None)
    if found is OutcomeKind.OUT_OF_QUOTA and (_SPAN.search(text) or _HEADER.search(text)):
        return OutcomeKind.RATE_LIMITED
    if found is not None and found in _BEFORE_STATUS:
        return found
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status is not None and status >= 500:
        return OutcomeKind.OVERLOADED
    return found or OutcomeKind.CRASHED


def _status_in(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found[1] or found[2]) if found else None


def retry_time(text: str, now: float) -> float | None:
    """When the provider takes requests again, in Unix time, if the words say so: a span, a stamp or a clock time."""
    if found := _EPOCH.search(text):
        return float(found[1])
    if found := _SPAN.search(text):
        return now + sum(float(count) * _seconds(unit) for count, unit in _PARTS.findall(found[1]))
    if found := _HEADER.search(text):
        return now + float(found[1])
    if found := _STAMP.search(text):
        return _stamp(found[1], now)
    if found := _CLOCK.search(text):
        return _next_clock(found, now)
    return None


def _seconds(unit: str) -> float:
    return _SECONDS["ms" if unit.lower() == "ms" else unit[0].lower()]


def _stamp(text: str, now: float) -> float | None:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=_local(now))).timestamp()


def _next_clock(found: re.Match[str], now: float) -> float | None:
    """The next time that a clock shows this; on that day of the year, if one is named."""
    month, day, hour, minute, half, zone = found.groups()
    if not (minute or half) or (month and month not in _MONTHS):
        return None
    hours = int(hour) % 12 + 12 * (half.lower() == "p") if half else int(hour)
    today = datetime.fromtimestamp(now, _zone(zone, now))
    try:
        then = today.replace(hour=hours, minute=int(minute or 0), second=0, microsecond=0)
        if month:
            then = then.replace(month=_MONTHS.index(month) + 1, day=int(day))
            return (then if then > today else then.replace(year=then.year + 1)).timestamp()
    except ValueError:
        return None
    return (then if then > today else then + timedelta(days=1)).timestamp()


def _zone(name: str | None, now: float) -> tzinfo:
    try:
        return ZoneInfo(name) if name else _local(now)
    except (ValueError, OSError, KeyError):  # a name that is none
        return _local(now)


def _local(now: float) -> tzinfo:
    return datetime.fromtimestamp(now, UTC).astimezone().tzinfo or UTC
