"""dgxcheck: how an NVIDIA multi-GPU box is wired, whether it is healthy, and which component is to blame if not."""

__version__ = "0.1.0"
