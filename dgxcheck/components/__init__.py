"""The parts of a machine that can be to blame, and which part is contained in which."""
