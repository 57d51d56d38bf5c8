"""Checks of HCAs and their InfiniBand or RoCE ports."""
