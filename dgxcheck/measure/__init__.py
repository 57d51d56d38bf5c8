"""Measuring the box under load: what is measured, in which order, and what becomes of it."""
