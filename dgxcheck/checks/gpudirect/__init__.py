"""Checks of what GPUDirect RDMA needs between a GPU and an HCA."""
