"""Frozen facts about a machine, one file per subject."""
