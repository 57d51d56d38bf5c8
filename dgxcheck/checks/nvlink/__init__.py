"""Checks of NVLinks: state, endpoints and error counters."""
