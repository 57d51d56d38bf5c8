"""Excerpts of the kernel log, however they were printed."""
