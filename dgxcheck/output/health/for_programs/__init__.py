"""Formats that programs read: JSON, and those of monitors and schedulers."""
