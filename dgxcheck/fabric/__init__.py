"""A fabric of many machines: how it is cabled, how it was meant to be, and which plugs to move."""
