"""Measuring: the ladder of a contract on one tree."""
