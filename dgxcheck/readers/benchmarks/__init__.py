"""Readers of what bandwidth and latency benchmarks print."""
