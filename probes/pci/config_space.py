"""Configuration space of GPUs, NVSwitches, HCAs and the bridges above them, of which all but 64 bytes need root, and
their PCIe error counters."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from dgxcheck.facts.missing import Gap, Missing, need, or_gap
from dgxcheck.facts.pci import (
    Acs,
    AerDevice,
    AerErrors,
    ConfigSpace,
    Control,
    Express,
    PortType,
    RootPortErrors,
    aer_names,
)
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.source.protocol import Source
from probes.ask import ask, decimal, files, garbled, is_decimal, line
from probes.pci.tree import Roles, roles

_HEADER = 64
_CONVENTIONAL = 256
_ASLEEP = ("D3hot", "D3cold")


@or_gap
def config_space(source: Source) -> tuple[ConfigSpace, ...]:
    """``/sys/bus/pci/devices/<bdf>/config``, not of a sleeping device: reading would wake it, or hang."""
    return tuple(_device(source, bdf) for bdf in need(roles(source)).functions)


def usable(config: bytes, where: str) -> bytes | Missing:
    """The bytes, if they reach beyond the header and come from a device that answers."""
    if config[:4] == b"\xff\xff\xff\xff":
        return Missing(Gap.LOST, where, "reads all ones")
    if len(config) < _HEADER:
        return garbled(f"{len(config)} bytes", where)
    if len(config) < _CONVENTIONAL:
        return Missing(Gap.DENIED, where, f"only {len(config)} bytes readable; all of it needs CAP_SYS_ADMIN")
    return config


def _device(source: Source, bdf: str) -> ConfigSpace:
    where = f"{PCI_DEVICES}/{bdf}/config"
    power_state = ask(source, f"{PCI_DEVICES}/{bdf}/power_state", line)
    if isinstance(config := _config(source, where, power_state), Missing):
        return ConfigSpace(bdf=bdf, power_state=power_state, express=config, acs=config, ats=config, control=config)
    return ConfigSpace(
        bdf=bdf, power_state=power_state, express=express(config, where), acs=acs(config, where),
        ats=_ats(config, where), control=control(config, where),
    )  # fmt: skip


def _config(source: Source, where: str, power_state: str | Missing) -> bytes | Missing:
    if not isinstance(power_state, Missing) and power_state in _ASLEEP:
        return Missing(Gap.UNASKED, where, f"asleep: {power_state}")
    config = source.data(where)
    return config if isinstance(config, Missing) else usable(config, where)


# pciutils: lib/header.h
_STATUS, _STATUS_CAP_LIST = 0x06, 0x10
_HEADER_TYPE, _CARDBUS = 0x0E, 2
_CAPABILITY_LIST, _CARDBUS_CAPABILITY_LIST = 0x34, 0x14
_FIRST_CAPABILITY, FIRST_EXTENDED = 0x40, 0x100
_EXPRESS, _ACS, _ATS = 0x10, 0x000D, 0x000F


class Chain(Record, kw_only=False):
    """Offsets by capability id (the first of each), and how the list broke, if it did."""

    offsets: dict[int, int]
    broken: str = ""


def express(config: bytes, where: str) -> Express | Missing:
    """Port type, MaxPayload and MaxReadReq; absent where the function is not PCI Express."""
    chain = standard(config)
    if (at := chain.offsets.get(_EXPRESS)) is None:
        return garbled(chain.broken, where) if chain.broken else Missing(Gap.ABSENT, where, "not PCI Express")
    if at + 12 > min(len(config), FIRST_EXTENDED):
        return garbled(f"PCI Express capability at {at:#x} is cut off", where)
    flags, supported, control = _word(config, at + 2), _word(config, at + 4), _word(config, at + 8)
    return Express(
        port_type=_port_type(flags >> 4 & 0xF, where),
        max_payload_supported=_size(supported & 7, where),
        max_payload=_size(control >> 5 & 7, where),
        max_read_request=_size(control >> 12 & 7, where),
    )


def acs(config: bytes, where: str) -> Acs | Missing | None:
    """The ACS extended capability; None where the list ends without one or there can be no list."""
    at = _extended_at(config, where, _ACS)
    if at is None or isinstance(at, Missing):
        return at
    if at + 8 > len(config):
        return garbled(f"ACS capability at {at:#x} is cut off", where)
    return Acs(capability=_word(config, at + 4), control=_word(config, at + 6))


def _ats(config: bytes, where: str) -> bool | Missing:
    at = _extended_at(config, where, _ATS)
    return at if isinstance(at, Missing) else at is not None


def _extended_at(config: bytes, where: str, capability: int) -> int | Missing | None:
    """Offset of an extended capability; None where the list ends without one or there can be no list."""
    chain = standard(config)
    if _EXPRESS not in chain.offsets:
        return garbled(chain.broken, where) if chain.broken else None
    if len(config) <= FIRST_EXTENDED:
        return Missing(Gap.UNSUPPORTED, where, "no extended configuration space")
    chain = extended(config)
    if (at := chain.offsets.get(capability)) is None and chain.broken:
        return garbled(chain.broken, where)
    return at


@lru_cache(maxsize=1)  # each capability of a device is looked for in it
def standard(config: bytes) -> Chain:
    """The list that starts at the pointer in the header; every offset is below 256."""
    if len(config) < _FIRST_CAPABILITY or not config[_STATUS] & _STATUS_CAP_LIST:
        return Chain({})
    cardbus = config[_HEADER_TYPE] & 0x7F == _CARDBUS
    at = config[_CARDBUS_CAPABILITY_LIST if cardbus else _CAPABILITY_LIST] & 0xFC
    return _walked(config, at, "capability", 2, 0xFF, lambda header: (header & 0xFF, header >> 8 & 0xFC))


@lru_cache(maxsize=1)
def extended(config: bytes) -> Chain:
    """The list that starts at 0x100; a header is id (16 bits), version (4), next (12). A pointer below ends it."""

    def split(header: int) -> tuple[int, int]:
        following = header >> 20 & 0xFFC
        return header & 0xFFFF, following if following >= FIRST_EXTENDED else 0

    return _walked(config, FIRST_EXTENDED, "extended capability", 4, 0xFFFFFFFF, split)


def _walked(
    config: bytes, at: int, what: str, width: int, ones: int, split: Callable[[int], tuple[int, int]]
) -> Chain:
    """From header to header of ``width`` bytes, each an id and the place of the next one, until one of zeros."""
    offsets: dict[int, int] = {}
    seen: set[int] = set()
    while at:
        if at < _FIRST_CAPABILITY or at + width > len(config):
            return Chain(offsets, f"{what} pointer {at:#x} leads nowhere")
        if at in seen:
            return Chain(offsets, f"{what} list loops at {at:#x}")
        header = int.from_bytes(config[at : at + width], "little")
        if header & ones == ones:
            return Chain(offsets, f"{what} at {at:#x} reads all ones")
        if not header:
            break
        seen.add(at)
        capability, following = split(header)
        offsets.setdefault(capability, at)
        at = following
    return Chain(offsets)


def _word(config: bytes, at: int) -> int:
    return int.from_bytes(config[at : at + 2], "little")


def _size(code: int, where: str) -> int | Missing:
    """128 bytes and its doubles up to 4096; 6 and 7 are reserved."""
    return 128 << code if code < 6 else garbled(f"size code {code}", where)


def _port_type(code: int, where: str) -> PortType | Missing:
    return PortType(code) if code in PortType._value2member_map_ else garbled(f"port type {code}", where)


_COMMAND, _MEMORY, _MASTER = 0x04, 0x0002, 0x0004
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
        memory_space=bool(command & _MEMORY), bus_master=bool(command & _MASTER), relaxed_ordering=_bit(device, 0x0010),
        extended_tag=_bit(device, 0x0100), no_snoop=_bit(device, 0x0800), aspm=_bits(link, 0x0003),
        link_disabled=_bit(link, 0x0010), target_gen=_target(link_2, where), completion_timeout=_bits(device_2, 0x000F),
        completion_timeout_disabled=_bit(device_2, 0x0010), ari_forwarding=_bit(device_2, 0x0020),
        atomics=_bit(device_2, 0x0040), ten_bit_tag=_bit(device_2, 0x1000),
    )  # fmt: skip


def _target(word: int | Missing, where: str) -> int | Missing:
    """Ports inside a root complex and functions without a link leave it 0."""
    gen = _bits(word, 0x000F)
    return Missing(Gap.UNSUPPORTED, where, "no target link speed") if gen == 0 else gen


def _bit(word: int | Missing, mask: int) -> bool | Missing:
    return word if isinstance(word, Missing) else bool(word & mask)


def _bits(word: int | Missing, mask: int) -> int | Missing:
    return word if isinstance(word, Missing) else word & mask


_SEVERITIES = ("correctable", "nonfatal", "fatal")


@or_gap
def aer(source: Source) -> tuple[AerDevice, ...]:
    """``aer_dev_*`` of every device and bridge, ``aer_rootport_total_err_*`` of bridges on a root bus."""
    found = need(roles(source))
    ports = set(_root_ports(found))
    return tuple(_error_counters(source, bdf, bdf in ports) for bdf in found.functions)


def errors(text: str, where: str) -> AerErrors | Missing:
    """``RxErr 0`` or ``Receiver Error 0`` per line: names hold blanks, so the number is split off from the right."""
    counts, total, odd = _counted(text)
    if odd or not counts:
        return garbled(odd or text, where)
    return AerErrors(counts=counts, total=Missing(Gap.ABSENT, where, "no TOTAL_ERR line") if total is None else total)


@lru_cache(maxsize=64)
def _counted(text: str) -> tuple[dict[str, int], int | None, str]:
    """Counts, total and the first line that is neither; most devices of a machine have the same text."""
    counts: dict[str, int] = {}
    total = None
    for row in text.splitlines():
        name, _, number = row.rstrip().rpartition(" ")
        name = name.strip()
        if not name or not is_decimal(number):
            return {}, None, row
        if name.startswith("TOTAL_ERR"):
            total = int(number)
        else:
            counts[aer_names().get(name, name)] = int(number)
    return counts, total, ""


def _root_ports(found: Roles) -> tuple[str, ...]:
    paths = ((bdf, found.paths[bdf]) for bdf in found.bridges)
    return tuple(bdf for bdf, path in paths if not isinstance(path, Missing) and len(path) == 2)


def _error_counters(source: Source, bdf: str, is_root_port: bool) -> AerDevice:
    base = f"{PCI_DEVICES}/{bdf}"
    return AerDevice(
        bdf=bdf,
        **files(source, AerDevice, base, **dict.fromkeys(_SEVERITIES, errors)),
        root_port=RootPortErrors(**files(source, RootPortErrors, base, **dict.fromkeys(_SEVERITIES, decimal)))
        if is_root_port else None,
    )  # fmt: skip
