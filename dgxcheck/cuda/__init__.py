"""CUDA through the driver API: runs in the measuring worker only, never in the parent process."""
