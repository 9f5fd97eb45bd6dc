"""Deterministic code: values, rules and the workflows that order effects."""
