"""What the CUDA driver reads from the environment when it is loaded."""

from __future__ import annotations

import os


def prepare() -> None:
    """Every GPU by its bus id, whoever started this; no file left in the user's home.

    Kernels are loaded at once: those that are loaded when first used can wait for ever behind one that spins,
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#lazy-loading.
    """
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    os.environ.update(CUDA_DEVICE_ORDER="PCI_BUS_ID", CUDA_MODULE_LOADING="EAGER", CUDA_CACHE_DISABLE="1")
