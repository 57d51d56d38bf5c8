"""Integrations as text."""
