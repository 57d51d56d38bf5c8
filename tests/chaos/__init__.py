"""Sick drivers and sick systems, one after the other: a counted matrix of live runs. ``make chaos`` runs all of it."""
