"""Checks of each GPU: presence, clocks, ECC, InfoROM, temperature and limits."""
