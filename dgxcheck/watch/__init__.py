"""Watches one machine: what is new in its kernel log, devices, counters and health, each reported once."""
