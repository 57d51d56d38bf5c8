"""Checks of where devices sit, against the reference machine and the baseline."""
