"""Names of PCI functions and root buses. Compiling patterns for them would cost every start more than all its uses."""

from __future__ import annotations

_HEX = frozenset("0123456789abcdef")


def is_bdf(name: str) -> bool:
    """Is this the name of a PCI function, as ``0000:06:00.0``? VMD's domains start at 10000, clouds use 32 bits."""
    domain, _, rest = name.partition(":")
    return (
        len(rest) == 7 and rest[2] == ":" and rest[5] == "." and rest[6] in "01234567"
        and 4 <= len(domain) <= 8 and _HEX.issuperset(domain) and _HEX.issuperset(rest[:2] + rest[3:5])
    )  # fmt: skip


def is_root_bus(name: str) -> bool:
    """Is this a host bridge in a path, as ``pci0000:80``?"""
    domain, _, bus = name[3:].partition(":")
    return name[:3] == "pci" and 4 <= len(domain) <= 8 and len(bus) == 2 and _HEX.issuperset(domain + bus)


def as_bdf(text: str) -> str | None:
    """NVML's ``00000000:06:00.0`` as sysfs spells it: lower case, a domain of at least four digits."""
    name = text.lower()
    domain, _, rest = name.partition(":")
    return f"{int(domain, 16):04x}:{rest}" if is_bdf(name) and rest[3] in "01" else None
