"""Score a box against its reference machine: expectations, and their weighted sum."""
