"""Configuration space of GPUs, NVSwitches, HCAs and the bridges above them; all but 64 bytes of it need root."""

from __future__ import annotations

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import ConfigSpace
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.source.protocol import Source
from probes.ask import ask
from probes.parse_scalar import garbled, line
from probes.pci.capabilities import acs, express
from probes.pci.parse_control import control
from probes.pci.roles import roles

_HEADER = 64
_CONVENTIONAL = 256
_ASLEEP = ("D3hot", "D3cold")


def probe(source: Source) -> tuple[ConfigSpace, ...] | Missing:
    """``/sys/bus/pci/devices/<bdf>/config``, not of a sleeping device: reading would wake it, or hang."""
    known = roles(source)
    if isinstance(known, Missing):
        return known
    return tuple(_device(source, bdf) for bdf in (*known.devices, *known.bridges))


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
    config = _config(source, where, power_state)
    if isinstance(config, Missing):
        return ConfigSpace(bdf=bdf, power_state=power_state, express=config, acs=config, control=config)
    return ConfigSpace(
        bdf=bdf, power_state=power_state, express=express(config, where), acs=acs(config, where),
        control=control(config, where),
    )  # fmt: skip


def _config(source: Source, where: str, power_state: str | Missing) -> bytes | Missing:
    if not isinstance(power_state, Missing) and power_state in _ASLEEP:
        return Missing(Gap.UNASKED, where, f"asleep: {power_state}")
    config = source.data(where)
    return config if isinstance(config, Missing) else usable(config, where)
