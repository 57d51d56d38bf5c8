"""The CUDA workers and their supervisor."""
