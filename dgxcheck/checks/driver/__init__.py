"""Checks of the NVIDIA driver: installation, kernel modules, Fabric Manager and versions."""
