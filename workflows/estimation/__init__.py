"""Estimation: the pure mathematics of paired measurements that several rules share; it decides nothing."""
