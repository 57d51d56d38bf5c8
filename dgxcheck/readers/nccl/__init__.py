"""What NCCL writes: its topology file, and its log (``NCCL_DEBUG=INFO``)."""
