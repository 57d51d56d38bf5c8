"""Recordings: reading, writing, overlays and anonymization."""
