"""Reference machines: the numbers of each, every one with its source."""
