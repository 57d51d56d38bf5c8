"""The topology of a box, computed from facts: PCI classes and paths, the NVLink graph, rings, reference graphs."""
