"""The check of the machine against a baseline recording."""
