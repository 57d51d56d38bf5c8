"""Checks of measured bandwidth, latency, integrity, compute and burn-in."""
