"""The firmware of the HCAs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, host_if_all, part, remedy_of, ruled
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, given, judged
from dgxcheck.checks.network.ports import hcas, in_flash_recovery, listed_hcas, subject
from dgxcheck.checks.siblings.compare import Odd, compared
from dgxcheck.components.component import Component, host_part
from dgxcheck.components.containment import gpus_behind
from dgxcheck.components.locate import is_nvidia_adapter
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.missing import Missing, need, rows
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.lazy_pattern import LazyPattern

_OF_ALL = "firmware of HCAs"
_NUMBERS = LazyPattern(r"\d+(\.\d+)+", ".", flags=re.ASCII)


def _firmware(box: Box) -> Judged:
    """Warns on an HCA whose firmware differs from the version that most HCAs of its model and board_id run; on each but
    the newest where there is no majority. Fails on an adapter in flash recovery, by its PCI device id.

    Source: fw_ver and board_id of /sys/class/infiniband; pci.ids
    """
    for function in in_flash_recovery(box):
        bdf, evidence = function.bdf, (Evidence(pci_file(function.bdf, "device"), f"{function.device:#06x}"),)
        message = "in flash recovery: the adapter runs no firmware"
        remedy = remedy_of("network.firmware", "flash recovery").format(bdf)
        judgement = judged(Fault.HCA_FLASH_RECOVERY, message, evidence=evidence, fails=True, remedy=remedy)
        yield Subject(kind="hca", name=bdf, bdf=bdf), judgement
    devices = given(listed_hcas(box))
    odd = compared(box, ["hca"], IbDevice.fw_ver).odd
    for device in devices:
        at = subject(device)
        yield at, ruled(_version, box, device, next(iter(odd.get(at, ())), None), devices)


def _newest(device: IbDevice, devices: Sequence[IbDevice]) -> tuple[str, list[IbDevice]] | None:
    """The newest firmware among HCAs of the same model and board_id (PSID), and those that run another."""
    same = [other for other in devices if _model(other) == _model(device)]
    versions = [other.fw_ver for other in same if isinstance(other.fw_ver, str) and _NUMBERS.fullmatch(other.fw_ver)]
    if not versions:
        return None
    newest = max(versions, key=lambda version: [int(number) for number in version.split(".")])
    return newest, [other for other in same if isinstance(other.fw_ver, str) and other.fw_ver != newest]


def _model(device: IbDevice) -> tuple[str | None, ...]:
    return tuple(None if isinstance(each, Missing) else each for each in (device.board_id, device.hca_type))


def _burn(box: Box, version: str, devices: Sequence[IbDevice]) -> str:
    """What to type for each device, by its name where its bus id is not known; an image is made for one PSID."""
    burned = [(device.name, device.bdf if isinstance(device.bdf, str) else device.name) for device in devices]
    names = ", ".join(name for name, _ in burned)
    if not all(is_nvidia_adapter(box, device.bdf, device.name) for device in devices):
        return f"bring {names} to {version} with the firmware tool of the vendor, while no job uses these adapters"
    checked = [device.name for device in devices if isinstance(device.board_id, Missing)]
    first = "compare the PSIDs (mstflint -d BDF query), then " if checked else ""
    burn = "; ".join(f"mstflint -d {bdf} -i IMAGE burn" for _, bdf in burned)
    reset = "; ".join(f"mstfwreset -d {bdf} reset" for _, bdf in burned)
    gpus = ", ".join(gpus_behind(box.topology, {bdf for _, bdf in burned}))
    unused = f"these adapters nor {gpus}, whose PCIe switches they are" if gpus else "these adapters"
    return f"{first}burn {version} on {names} ({burn}), while no job uses {unused}, then reset them ({reset})"


def _version(box: Box, device: IbDevice, among: Odd | None, devices: Sequence[IbDevice]) -> Judgement:
    version, files = need(device.fw_ver), f"/sys/class/infiniband/{device.name}"
    evidence: tuple[Evidence, ...] = (Evidence(f"{files}/fw_ver", version),)
    board = "this model"
    if isinstance(device.board_id, str):
        board, evidence = f"board {device.board_id}", (*evidence, Evidence(f"{files}/board_id", device.board_id))
    if among is None:
        return Judgement(Status.PASS, f"firmware {version}", version, version, evidence=evidence)
    newest = _newest(device, devices)
    if not among.majority and newest is not None and version == newest[0]:
        message = f"firmware {version}, the newest of {board}"
        return Judgement(Status.PASS, message, version, version, evidence=evidence)
    usual = str(among.usual) if among.majority else None
    others = f"others {usual}; HCAs of {board}" if usual else f"others differ; HCAs of {board}"
    message = f"firmware {version}, {others}"
    target, remedy = usual, _burn(box, usual, [device]) if usual else ""
    if usual is None and newest is not None:
        target, remedy = newest[0], _burn(box, *newest)
    return Judgement(Status.WARN, message, version, target, evidence=evidence, fault=Fault.HCA_FIRMWARE, remedy=remedy)


def _blames(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The firmware of the adapter; where several are older than another one, that of the adapters together."""
    listed = rows(hcas(box))
    device = next((each for each in listed if each.name == at.name), None)
    newest = None if device is None else _newest(device, listed)
    if newest is not None and len(newest[1]) > 1 and judgement.expected == newest[0]:
        yield host_part(_OF_ALL)
    else:
        yield from part("firmware")(box, at, judgement)


CHECKS = (Check("network.firmware", _firmware, _blames, host_if_all(_OF_ALL)),)
