"""Do GPUs sit where the reference machine has them, and do NVML, firmware and PCI tree agree about it?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box, guest, nvml_unavailable
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.placement.misplaced import Misplaced, misplaced
from dgxcheck.facts.missing import Missing
from dgxcheck.profiles.model import Profile
from dgxcheck.topology.model import Device
from dgxcheck.topology.notes import ANCESTORS

Judged = Iterator[tuple[Subject, Judgement]]
NO_PAIR = skip("not-supported", "there is no pair of GPUs")


def reference(box: Box) -> Profile | Judgement:
    """The profile whose wiring this box is held to, or why there is none."""
    choice = box.choice
    if choice is None:
        return skip("no-reference", "no reference machine is known for this box")
    if choice.how == "gpus":
        return skip("no-reference", f"only the GPUs are those of {choice.profile.name}, not the machine")
    if not choice.profile.wiring:
        return skip("no-reference", f"the profile {choice.profile.name} has no wiring")
    return choice.profile


def wrong_gpus(box: Box, profile: Profile) -> Misplaced | None:
    """GPUs that are elsewhere than in the reference by their pairs with other GPUs, those with HCAs where in doubt."""
    gpus = box.topology.gpus
    return misplaced(gpus, gpus, box.topology, profile.wiring, lambda wiring: wiring.to_gpus, fabric_adapters(box))


def fabric_adapters(box: Box) -> list[Device]:
    """Adapters without virtual functions and without those that have Ethernet ports only: each may sit anywhere."""
    rows = () if isinstance(box.snapshot.ib_ports, Missing) else box.snapshot.ib_ports
    ports = {row.device: row.ports for row in rows if not isinstance(row.ports, Missing) and row.ports}
    ethernet = {name for name, each in ports.items() if all(port.link_layer == "Ethernet" for port in each)}
    nics = (each for each in box.topology.devices if each.kind == "nic" and each.is_vf is not True)
    return [nic for nic in nics if nic.name not in ethernet]


def without_place(device: Device) -> Judgement | None:
    """A device whose path is not known cannot be judged by classes; without a node those near to it are known still."""
    return unjudged(device.path) if isinstance(device.path, Missing) else None


def other(found: Misplaced) -> str:
    """That others may be to blame as well."""
    names = ", ".join(device.name for device in found.likewise)
    return f"; by the classes alone it may as well be {names}" if names else ""


def classes(box: Box, device: Device, others: tuple[Device, ...]) -> str:
    """How a device reaches others, in words: ``PIX 1, PHB 2``."""
    matrix = box.topology.matrix()
    seen = Counter(matrix[device.name, each.name].pci or "?" for each in others if each.name != device.name)
    return ", ".join(f"{pci} {count}" for pci, count in sorted(seen.items()))


def _profile(box: Box) -> Judged:
    profile = reference(box)
    yield HOST, profile if isinstance(profile, Judgement) else _placed(box, profile)


def _placed(box: Box, profile: Profile) -> Judgement:
    gpus = box.topology.gpus
    gap = next((gpu.path for gpu in gpus if isinstance(gpu.path, Missing)), None)
    if gap is not None or len(gpus) < 2:
        return unjudged(gap) if gap is not None else NO_PAIR
    found = wrong_gpus(box, profile)
    if found is not None and not found.devices:
        return Judgement(Status.PASS, f"the GPUs reach each other as in {profile.title}", 0, 0, "GPUs")
    told = gpus if found is None or found.likewise else found.devices
    lines = {gpu.name: classes(box, gpu, gpus) for gpu in told}
    evidence = tuple(Evidence(f"/sys/bus/pci/devices/{gpu.bdf}", _path(gpu)) for gpu in told)
    number = len(found.devices) if found is not None else None
    who = f"{number} of the GPUs, " if number and found is not None and found.likewise else ""
    seen = "; ".join(f"{name} to the others {said}" for name, said in lines.items())
    message = f"not as in {profile.title}: {who}{seen}"
    return Judgement(Status.WARN, message, number, 0, "GPUs", evidence)


def _path(device: Device) -> str:
    return device.path.reason if isinstance(device.path, Missing) else "/".join(device.path)


def _nvml(box: Box) -> Judged:
    pairs = box.snapshot.gpu_pairs
    if isinstance(box.nvml, Missing) or isinstance(pairs, Missing):
        yield HOST, nvml_unavailable(box) or (unjudged(pairs) if isinstance(pairs, Missing) else NO_PAIR)
        return
    names = {gpu.bdf: gpu.name for gpu in box.topology.gpus}
    asked = {gpu.bdf for gpu in box.gpus}
    matrix = box.topology.matrix()
    unseen: list[Judgement] = []
    differing: list[str] = []
    evidence: list[Evidence] = []
    judged = 0
    for pair in pairs:
        if not {pair.a, pair.b} & asked or not {pair.a, pair.b} <= names.keys():
            continue
        level, link = pair.common_ancestor, matrix[names[pair.a], names[pair.b]]
        if isinstance(level, Missing) or link.pci is None:
            unseen.append(unjudged(level) if isinstance(level, Missing) else skip("not-visible", link.pci_reason))
            continue
        judged += 1
        said = ANCESTORS.get(level, f"level {level}")
        if said != link.pci:
            differing.append(f"{link.a}-{link.b} ({said}, not {link.pci})")
            evidence.append(answered(level, "nvmlDeviceGetTopologyCommonAncestor", f"{pair.a} {pair.b}"))
    if differing:
        message = f"NVML's common ancestor and the PCI tree differ: {', '.join(differing)}"
        yield HOST, Judgement(Status.WARN, message, len(differing), 0, "pairs", tuple(evidence))
    elif senseless := [each for each in unseen if each.status is Status.UNKNOWN]:
        yield HOST, senseless[0]
    elif judged:
        yield HOST, Judgement(Status.PASS, f"NVML and the PCI tree agree on {judged} pairs", 0, 0, "pairs")
    else:
        yield HOST, unseen[0] if unseen else NO_PAIR


def _numa(box: Box) -> Judged:
    nodes = box.snapshot.numa
    if isinstance(nodes, Missing):
        yield HOST, unjudged(nodes)
        return
    if len(nodes) < 2:
        yield HOST, skip("not-supported", "this host has one NUMA node")
        return
    below: dict[str, list[Device]] = defaultdict(list)
    for device in box.topology.devices:
        asked = device.kind == "nic" or device in box.gpus
        if asked and device.function is not None and not isinstance(device.path, Missing):
            below[device.path[0]].append(device)
    for root, devices in sorted(below.items()):
        yield Subject(kind="pci", name=root, bdf=None), _node(devices, guest(box))


def _node(devices: list[Device], vm: str | None) -> Judgement:
    """A host bridge gives its node to all that is below, so that one without a node is one fault."""
    lost: list[str] = []
    evidence: list[Evidence] = []
    for device in devices:
        node = device.function.numa_node if device.function is not None else 0
        if isinstance(node, Missing):
            return unjudged(node)
        evidence.append(Evidence(f"/sys/bus/pci/devices/{device.bdf}/numa_node", node))
        if node < 0:
            lost.append(device.name)
    if lost and vm is not None:
        message = f"{vm} shows its guest no NUMA node of {', '.join(lost)}"
        return skip("not-visible", message, *evidence)
    if lost:
        message = f"the firmware names no NUMA node for {', '.join(lost)}"
        return Judgement(Status.WARN, message, len(lost), 0, "devices", tuple(evidence))
    return Judgement(Status.PASS, f"{len(devices)} devices know their NUMA node", 0, 0, "devices", tuple(evidence))


CHECKS = (
    Check(
        id="topology.profile",
        rule="Warns where a GPU has more GPUs at a PCI class than in the reference machine, and names the fewest GPUs"
        " that explain it, or all where several could. A GPU that is gone is no wrong place, pairs whose class is not"
        " known are left out, and HCAs are judged by network.hca-placement.",
        source="the profile's wiring; PCI classes from the paths under /sys/devices",
        remedy="compare slots and cables of the boards with the machine's manual and move the one that is wrong",
        judge=_profile,
    ),
    Check(
        id="topology.nvml-agrees",
        rule="Warns where NVML gives another common ancestor for a pair of GPUs than the PCI tree shows; pairs whose"
        " class is not known are left out.",
        source="nvmlDeviceGetTopologyCommonAncestor against the paths under /sys/devices",
        remedy="reload the driver, which keeps the tree as it found it; if it stays, trust the PCI tree",
        judge=_nvml,
    ),
    Check(
        id="topology.numa",
        rule="Warns where the host has several NUMA nodes and the firmware names none (-1) for GPUs or HCAs; one"
        " finding per root bus, from which its devices have their node. Not judged in a virtual machine.",
        source="numa_node of /sys/bus/pci/devices, /sys/devices/system/node",
        remedy="update the firmware and look at its NUMA setting; until then bind jobs by hand",
        judge=_numa,
    ),
)
