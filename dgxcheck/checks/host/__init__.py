"""Checks of the host: CPUs, memory, disks, Ethernet and frequency governor."""
