"""Are all HCAs there, in their slots, with one firmware?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from dgxcheck.checks.engine import visibility
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.placement.misplaced import misplaced
from dgxcheck.checks.placement.placement import classes, fabric_adapters, other, reference, without_place, wrong_gpus
from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import PciFunction
from dgxcheck.topology.classes import NEAR
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]
MELLANOX = 0x15B3
RECOVERY = frozenset({
    0x0191,  # ConnectX IB
    0x01F6, 0x01F8,  # ConnectX-3, ConnectX-3 Pro
    0x01FF,  # Connect-IB
    0x0209, 0x020B,  # ConnectX-4, ConnectX-4 Lx
    0x020D,  # ConnectX-5
    0x020F, 0x0210, 0x0212, 0x0213, 0x0216, 0x0217,  # ConnectX-6, -6 Dx, -6 Lx
    0x0211, 0x0214, 0x0215,  # BlueField, BlueField-2
    0x0218, 0x0219,  # ConnectX-7
    0x021A, 0x021B, 0x021C, 0x021D,  # BlueField-3
    0x021E, 0x021F,  # ConnectX-8
    0x0220, 0x0221,  # BlueField-4
})  # fmt: skip
"""Adapters that wait for their firmware: "Flash Recovery" and "Secure Flash Recovery" of vendor 15b3 in
https://pci-ids.ucw.cz/v2.2/pci.ids, without the switch chips that are called so too; other ids between these are
adapters that work (0262 and 0263 are a ConnectX-4 Lx)."""
_CLASS = "/sys/class/infiniband"


def hcas(box: Box) -> tuple[IbDevice, ...] | Missing:
    """InfiniBand and RoCE devices without virtual functions."""
    devices = box.snapshot.infiniband
    return devices if isinstance(devices, Missing) else tuple(each for each in devices if each.is_vf is not True)


def nics(box: Box) -> list[Device]:
    """HCAs without virtual functions."""
    return [each for each in box.topology.devices if each.kind == "nic" and each.is_vf is not True]


def subject(device: IbDevice) -> Subject:
    """An HCA by its names."""
    return Subject(kind="hca", name=device.name, bdf=None if isinstance(device.bdf, Missing) else device.bdf)


def none_here(gap: Missing) -> Judgement:
    """What stands in place of judgements about HCAs where the class directory cannot be read."""
    return skip("not-supported", "no InfiniBand device is here") if gap.gap is Gap.ABSENT else unjudged(gap)


def _recovering(box: Box) -> list[PciFunction]:
    functions = box.topology.functions.values()
    return [each for each in functions if each.vendor == MELLANOX and each.device in RECOVERY]


def _unstarted(box: Box) -> list[PciFunction]:
    """Adapters that the kernel log says their driver gave up."""
    log, found = box.snapshot.kernel_log, hcas(box)
    given_up = {} if isinstance(log, Missing) else {each.bdf: each.trouble for each in log.hcas if not each.past}
    here = {each.bdf for each in _here(found)}
    functions = box.topology.functions.values()
    return [each for each in functions if given_up.get(each.bdf) == "not started" and each.bdf not in here]


def count(box: Box) -> int | Missing:
    """HCAs of the machine, those in flash recovery (told by network.firmware) too; Missing where they are hidden."""
    if why := visibility.hcas_hidden(box):
        return Missing(Gap.ABSENT, _CLASS, why)
    found = hcas(box)
    if isinstance(found, Missing) and found.gap is not Gap.ABSENT:
        return found
    return len(_here(found)) + len(_recovering(box))


def _here(found: tuple[IbDevice, ...] | Missing) -> tuple[IbDevice, ...]:
    return () if isinstance(found, Missing) else found


def _count(box: Box) -> Judged:
    number = box.choice.number("network.hcas") if box.choice else None
    found = count(box)
    if number is None:
        yield HOST, skip("no-reference", "no number of HCAs is expected here")
    elif why := visibility.hcas_hidden(box):
        yield HOST, skip("not-visible", why)
    elif isinstance(found, Missing):
        yield HOST, unjudged(found)
    else:
        names = ", ".join(device.name for device in _here(hcas(box))) or "none"
        lonely = _lonely(box)
        given_up = [each for each in _unstarted(box) if each not in _recovering(box)]
        status = Status.FAIL if found + len(given_up) < number.value or lonely else Status.PASS
        message = f"{found} HCAs ({names}), {number.value:g} expected"
        if given_up:
            message += f"; {', '.join(each.bdf for each in given_up)} did not start: see kernel.hca"
        if lonely:
            message += f"; fewer than expected behind the switch of {', '.join(gpu.name for gpu in lonely)}"
        yield HOST, Judgement(status, message, found, number.value, "HCAs", (Evidence(_CLASS, names),))


def _lonely(box: Box) -> list[Device]:
    """GPUs with fewer HCAs behind their switch than any of the reference; none where one sits elsewhere."""
    profile = reference(box)
    nics = [nic for nic in box.topology.devices if nic.kind == "nic" and nic.is_vf is not True]
    gpus = box.topology.gpus
    unknown = any(isinstance(each.path, Missing) for each in (*gpus, *nics))
    if isinstance(profile, Judgement) or unknown or _recovering(box) or _unstarted(box):
        return []
    moved = misplaced(gpus, nics, box.topology, profile.wiring, lambda wiring: wiring.to_hcas)
    wrong = wrong_gpus(box, profile)
    if moved is None or moved.devices or wrong is None or wrong.devices:
        return []
    least = min(sum(wiring.to_hcas.get(pci, 0) for pci in NEAR) for wiring in profile.wiring)
    matrix = box.topology.matrix()
    return [gpu for gpu in gpus if sum(matrix[gpu.name, nic.name].pci in NEAR for nic in nics) < least]


def _placement(box: Box) -> Judged:
    profile = reference(box)
    if isinstance(profile, Judgement):
        yield HOST, profile
        return
    nics = fabric_adapters(box)
    if not nics or not any(wiring.to_hcas for wiring in profile.wiring):
        yield HOST, skip("not-supported", f"{profile.name} has no HCAs" if nics else "no HCA with InfiniBand is here")
        return
    wrong = wrong_gpus(box, profile)
    gpus = [gpu for gpu in box.topology.gpus if wrong is not None and gpu not in wrong.devices]
    if not gpus:
        yield HOST, skip("dependency-failed", "the GPUs are not where the profile has them")
        return
    found = misplaced(gpus, nics, box.topology, profile.wiring, lambda wiring: wiring.to_hcas)
    if found is None:
        lines = "; ".join(f"{nic.name} to the GPUs {classes(box, nic, box.topology.gpus)}" for nic in nics)
        evidence = tuple(Evidence(f"/sys/bus/pci/devices/{nic.bdf}", _path(nic)) for nic in nics)
        yield HOST, Judgement(Status.WARN, f"not as in {profile.title}: {lines}", evidence=evidence)
        return
    for nic in nics:
        said = classes(box, nic, box.topology.gpus)
        place = Subject(kind="hca", name=nic.name, bdf=nic.bdf)
        evidence = (Evidence(f"/sys/bus/pci/devices/{nic.bdf}", _path(nic)),)
        if nic in found.devices:
            message = f"to the GPUs: {said}; not so in {profile.title}{other(found)}"
            yield place, Judgement(Status.WARN, message, said, evidence=evidence)
        else:
            yield place, _unknown(nic) or Judgement(Status.PASS, f"to the GPUs: {said}", said, evidence=evidence)


def _path(nic: Device) -> str:
    return nic.path.reason if isinstance(nic.path, Missing) else "/".join(nic.path)


def _unknown(nic: Device) -> Judgement | None:
    return skip("not-visible", "it has no PCI function") if nic.bdf is None else without_place(nic)


def _firmware(box: Box) -> Judged:
    for function in _recovering(box):
        where = Subject(kind="hca", name=function.bdf, bdf=function.bdf)
        evidence = (Evidence(f"/sys/bus/pci/devices/{function.bdf}/device", f"{function.device:#06x}"),)
        yield where, Judgement(Status.FAIL, "the adapter is in flash recovery: it has no firmware", evidence=evidence)
    found = hcas(box)
    if isinstance(found, Missing):
        yield HOST, none_here(found)
        return
    groups: dict[str, list[IbDevice]] = defaultdict(list)
    for device in found:
        groups[device.board_id if isinstance(device.board_id, str) else f"of unknown board, {device.name}"].append(
            device
        )
    for board, devices in groups.items():
        seen = Counter(device.fw_ver for device in devices if isinstance(device.fw_ver, str))
        usual = max(seen, key=lambda version: (seen[version], _numbers(version)), default="")
        for device in devices:
            yield subject(device), _version(board, device, usual)


def _numbers(version: str) -> tuple[int, ...]:
    """``12.28.2006`` in an order in which it comes after ``12.9.0``."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal() and len(part) < 10)


def _version(board: str, device: IbDevice, usual: str) -> Judgement:
    for fact in (device.fw_ver, device.board_id):
        if isinstance(fact, Missing):
            return unjudged(fact)
    evidence = (
        Evidence(f"{_CLASS}/{device.name}/fw_ver", str(device.fw_ver)),
        Evidence(f"{_CLASS}/{device.name}/board_id", board),
    )
    if device.fw_ver == usual:
        return Judgement(Status.PASS, f"firmware {usual}", usual, usual, evidence=evidence)
    message = f"firmware {device.fw_ver}, other HCAs of board {board} run {usual}"
    return Judgement(Status.WARN, message, str(device.fw_ver), usual, evidence=evidence)


CHECKS = (
    Check(
        id="network.hca-count",
        rule="Fails where fewer HCAs are there than the profile says, or where all are in their places and a GPU has"
        " fewer behind its PCIe switch (PIX, PXB) than any has there; virtual functions do not count, one in flash"
        " recovery counts as there, and so does one that its driver gave up (kernel.hca). More than expected are no"
        " fault.",
        source="/sys/class/infiniband against the profile's network.hcas",
        remedy="look for the adapter with lspci -d 15b3: and in the kernel log; load its driver, or reseat it",
        judge=_count,
    ),
    Check(
        id="network.hca-placement",
        rule="Warns where GPUs have more HCAs at a PCI class than in the reference machine, at the fewest HCAs that"
        " explain it, or at the host where more than three would have to; one that is gone is no wrong place. Adapters"
        " with Ethernet ports only are left out. GPUs in a wrong place are told by topology.profile.",
        source="the profile's wiring; PCI classes from the paths under /sys/devices",
        remedy="move the adapter to the slot behind the switch of its GPUs",
        judge=_placement,
    ),
    Check(
        id="network.firmware",
        rule="Warns on an HCA whose firmware differs from that of most others of its board_id, the newer where none"
        " has a majority; fails on an adapter in flash recovery, by its PCI device id.",
        source="fw_ver and board_id of /sys/class/infiniband; pci.ids",
        remedy="burn the firmware that the others run and reset the adapter",
        judge=_firmware,
    ),
)
