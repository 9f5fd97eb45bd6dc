"""Where an agent that knows many providers gets its model: the one its spec names, or the OpenAI-like server given."""

from __future__ import annotations

from .adapter import Launch

KEYS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "google": "GEMINI_API_KEY",
    "groq": "GROQ_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "xai": "XAI_API_KEY",
}
"""Providers as they stand before the slash in `PROVIDER/MODEL`, each with the variable of its key."""

SECRETS = ("OPENAI_BASE_URL", *KEYS.values())

NO_KEY = "none"
"""Stands for the key of a server that wants none, as agents insist on one."""

NO_MODEL = "default"
"""Stands for the model when the spec names none: a server with one model takes any name."""


def server(launch: Launch) -> str:
    """The URL of the server to use, or "" for the agent's own providers.

    A spec that names a provider whose key is there means that provider; else the slash is part of the model's name.
    """
    provider = launch.spec.argument.partition("/")[0]
    named = provider != "openai" and launch.secrets.get(KEYS.get(provider, ""))
    return "" if named else launch.secrets.get("OPENAI_BASE_URL", "")


def keys(launch: Launch) -> dict[str, str]:
    """The keys it needs: the server's or the named provider's alone, else all there are, as it chooses by them."""
    provider = "openai" if server(launch) else launch.spec.argument.partition("/")[0]
    names = (KEYS[provider],) if provider in KEYS else tuple(KEYS.values())
    return {name: launch.secrets[name] for name in names if launch.secrets.get(name)}
