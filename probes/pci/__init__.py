"""Probes of PCI functions through sysfs."""
