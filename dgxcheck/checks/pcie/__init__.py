"""Checks of PCIe: link width and generation, errors, ACS and IOMMU."""
