"""What ``dcgmi`` prints: diagnostics, health watches, NVLinks, the list of GPUs."""
