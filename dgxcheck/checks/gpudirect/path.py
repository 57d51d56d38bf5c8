"""GPUDirect RDMA: how far a GPU is from an HCA, and whether the PCIe links between them carry the port's rate."""

from __future__ import annotations


