"""Checks of what the kernel log holds: Xids, SXids, AER errors and HCA events."""
