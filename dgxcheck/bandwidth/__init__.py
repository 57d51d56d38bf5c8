"""Expected bandwidth of a path: the least of what its parts carry, each with its source."""
