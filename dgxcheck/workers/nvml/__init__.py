"""The NVML worker, its plan and its supervisor."""
