"""How the box is wired, computed from facts alone: PCI classes and paths, the NVLink graph, rings, reference graphs."""
