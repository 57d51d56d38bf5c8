"""Odd one out: every setting, capability, version and link of a device against the devices of its kind and role."""
