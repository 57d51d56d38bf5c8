"""How much of the reference machine's capability is there: expectations, and the sum of them."""
