"""The questions of the topo command and how each is answered."""
