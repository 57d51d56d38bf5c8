"""The kernel log, of the running kernel or from a saved file."""
