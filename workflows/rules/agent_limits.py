"""The limits that a lane sets to its agent, as the agent's own spec says them."""

from __future__ import annotations


def limited(spec: str, *, turns: int | None, tokens: int | None, usd: float | None) -> str:
    """The spec with these limits, None being none; a stricter one that it gives itself stays.

    A command's line (`cmd:…`) is taken as it is: it has no limits of its own.
    """
    if spec.partition(":")[0].strip() == "cmd":
        return spec
    head, *pairs = spec.split(",")
    caps = {"max-turns": turns, "max-tokens": tokens, "max-usd": usd}
    given = [_within(pair, caps.get(_key(pair))) for pair in pairs]
    named = {_key(pair) for pair in pairs}
    more = [f"{key}={cap}" for key, cap in caps.items() if cap is not None and key not in named]
    return ",".join([head, *given, *more])


def _key(pair: str) -> str:
    return pair.partition("=")[0].strip()


def _within(pair: str, cap: float | None) -> str:
    """The setting, no larger than the cap; one that is no number is for its host to refuse."""
    if cap is None:
        return pair
    try:
        return pair if float(pair.partition("=")[2]) <= cap else f"{_key(pair)}={cap}"
    except ValueError:
        return pair
