"""The control words of a PCI function, from its configuration space (``linux/pci_regs.h``)."""

from __future__ import annotations

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Control
from probes.parse_scalar import garbled
from probes.pci.capabilities import FIRST_EXTENDED, standard

_COMMAND, _MEMORY, _MASTER = 0x04, 0x0002, 0x0004
_EXPRESS = 0x10
_DEVICE, _LINK, _DEVICE_2, _LINK_2 = 0x08, 0x10, 0x28, 0x30
"""Offsets of the control words in the PCI Express capability."""


def control(config: bytes, where: str) -> Control | Missing:
    """The control words; those of PCI Express are absent on a function that is not PCI Express."""
    if len(config) < _COMMAND + 2:
        return garbled(f"{len(config)} bytes", where)
    command = _word(config, _COMMAND)
    at = standard(config).offsets.get(_EXPRESS)
    version = 0 if at is None or at + 4 > len(config) else config[at + 2] & 0xF

    def word(offset: int, least_version: int = 1) -> int | Missing:
        if at is None:
            return Missing(Gap.ABSENT, where, "not PCI Express")
        if version < least_version:
            return Missing(Gap.UNSUPPORTED, where, f"PCI Express capability of version {version}")
        if at + offset + 2 > min(len(config), FIRST_EXTENDED):
            return garbled(f"PCI Express capability at {at:#x} is cut off", where)
        return _word(config, at + offset)

    device, link = word(_DEVICE), word(_LINK)
    device_2, link_2 = word(_DEVICE_2, 2), word(_LINK_2, 2)
    return Control(
        memory_space=bool(command & _MEMORY),
        bus_master=bool(command & _MASTER),
        relaxed_ordering=_bit(device, 0x0010),
        extended_tag=_bit(device, 0x0100),
        no_snoop=_bit(device, 0x0800),
        aspm=_bits(link, 0x0003),
        link_disabled=_bit(link, 0x0010),
        target_gen=_target(link_2, where),
        completion_timeout=_bits(device_2, 0x000F),
        completion_timeout_disabled=_bit(device_2, 0x0010),
        ari_forwarding=_bit(device_2, 0x0020),
        atomics=_bit(device_2, 0x0040),
        ten_bit_tag=_bit(device_2, 0x1000),
    )


def _target(word: int | Missing, where: str) -> int | Missing:
    """Ports inside a root complex and functions without a link leave it 0."""
    gen = _bits(word, 0x000F)
    return Missing(Gap.UNSUPPORTED, where, "no target link speed") if gen == 0 else gen


def _bit(word: int | Missing, mask: int) -> bool | Missing:
    return word if isinstance(word, Missing) else bool(word & mask)


def _bits(word: int | Missing, mask: int) -> int | Missing:
    return word if isinstance(word, Missing) else word & mask


def _word(config: bytes, at: int) -> int:
    return int.from_bytes(config[at : at + 2], "little")
