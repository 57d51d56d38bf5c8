"""What NVIDIA publishes about Xids of GPUs and SXids of NVSwitches: data, without any machine."""
