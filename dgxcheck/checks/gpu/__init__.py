"""Checks of each GPU: presence, clocks, ECC, InfoROM, temperature, limits and uniformity."""
