"""Probes of InfiniBand and RoCE devices."""
