"""Probes of GPUs and NVLinks through NVML."""
