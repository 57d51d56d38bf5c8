"""Reference machines: what a box of a kind has, every number with its source."""
