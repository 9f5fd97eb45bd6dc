"""Agent adapters: a protocol and one file per agent."""
