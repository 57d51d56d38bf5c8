"""CUDA through the driver alone: what runs in the worker that measures, and never in the parent."""
