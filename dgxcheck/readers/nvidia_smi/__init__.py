"""Readers of what nvidia-smi prints."""
