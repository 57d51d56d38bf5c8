"""Is the box healthy? Pure checks from facts to findings, one file per subject; ``catalogue`` has them in order."""
