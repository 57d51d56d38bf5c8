"""Checks of P2P access between GPUs."""
