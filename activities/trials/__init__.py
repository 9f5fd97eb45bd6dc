"""Measuring: trials of two checkouts on a leased device set."""
