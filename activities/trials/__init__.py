"""Trials of optimization rounds: devices and their leases, both sides built, AB/BA pairs, results parsed strictly."""
