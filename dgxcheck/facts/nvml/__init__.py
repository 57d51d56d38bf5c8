"""What the NVIDIA driver answers, and how it is asked."""
