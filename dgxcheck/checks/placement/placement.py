"""Are GPUs placed as in the reference machine, and do NVML, firmware and PCI tree agree?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from dgxcheck.checks.engine.box import Box, guest, nvml_unavailable
from dgxcheck.checks.engine.check import Check, driver, per_host, remedy_of, ruled
from dgxcheck.checks.engine.finding import (
    Evidence,
    Instead,
    Judged,
    Judgement,
    Status,
    Subject,
    answered,
    counted,
    first_of,
    given,
    judged,
    skip,
    unless,
)
from dgxcheck.checks.engine.gaps import unjudged, unread
from dgxcheck.checks.engine.host_limits import NUMA_SETTING, nodes_below_roots
from dgxcheck.checks.placement.misplaced import Misplaced, all_in_place, misplaced, nodes_per_socket
from dgxcheck.components.component import Component, host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Missing, need, rows
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.facts.typical import gathered
from dgxcheck.profiles.model import Profile, SelectedProfile
from dgxcheck.topology.model import Device, Surveyed
from dgxcheck.topology.notes import ANCESTORS

NO_PAIR = skip("not-supported", "fewer than two GPUs")
_NUMA, _PLACEMENT = host_part(NUMA_SETTING), host_part("placement of GPUs")


def reference(box: Box) -> Profile | Judgement:
    """The profile with whose wiring this machine is compared; the skip if there is none."""
    choice = box.choice
    if choice is None:
        return skip("no-reference", "no matching reference machine")
    if choice.how == "gpus":
        return skip("no-reference", f"only the GPUs match {choice.profile.name}, not the machine")
    if not choice.profile.wiring:
        return skip("no-reference", f"the profile {choice.profile.name} has no wiring")
    return choice.profile


def wrong_gpus(box: Box, profile: Profile) -> Misplaced | None:
    """Misplaced GPUs by their pairs with other GPUs, where ambiguous by those with HCAs; None if nearly all are."""
    gpus = box.reference_gpus
    return misplaced(gpus, gpus, box.topology, profile.wiring, lambda wiring: wiring.to_gpus, fabric_adapters(box))


def fabric_adapters(box: Surveyed) -> list[Device]:
    """HCAs without virtual functions and without those with Ethernet ports only, which can be in any slot."""
    ports = {row.device: rows(row.ports) for row in rows(box.snapshot.ib_ports)}
    ethernet = {name for name, own in ports.items() if own and all(port.link_layer == "Ethernet" for port in own)}
    return [nic for nic in box.topology.adapters if nic.name not in ethernet]


def other(wrong: Misplaced) -> str:
    """The other devices that explain the PCI classes equally well, in words; empty if there are none."""
    names = ", ".join(device.name for device in wrong.likewise)
    explain = "explains" if len(wrong.likewise) == 1 else "explain"
    return f"; {names} {explain} the PCI classes equally well" if names else ""


def classes(box: Box, device: Device, others: tuple[Device, ...]) -> str:
    """How many others a device reaches at each class: ``PIX 1, PHB 2``."""
    matrix = box.topology.links
    count = Counter(matrix[device.name, other.name].pci or "?" for other in others if other.name != device.name)
    return ", ".join(f"{pci} {number}" for pci, number in sorted(count.items()))


def by_classes(box: Box, devices: Iterable[Device], others: tuple[Device, ...], to: str) -> str:
    """What devices reach, those alike together: ``GPU0, GPU1 to the others PHB 2, PIX 1; GPU2 to ..``."""
    alike = gathered((classes(box, device, others), device.name) for device in devices)
    return "; ".join(f"{', '.join(names)} to {to} {reached}" for reached, names in alike.items())


def _gpus_placed(box: Box) -> Judgement:
    """Warns if a GPU has more GPUs at a PCI class than in the reference machine, and names the fewest GPUs that explain
    it, or all if several could. A missing GPU is not counted as misplaced, pairs with an unknown class are left out,
    and HCAs are judged by network.hca-placement.

    Source: the profile's wiring; PCI classes from the paths under /sys/devices
    """
    profile, gpus = given(reference(box)), box.reference_gpus
    for gpu in gpus:
        need(gpu.path)
    if len(gpus) < 2:
        return NO_PAIR
    wrong = wrong_gpus(box, profile)
    if wrong is not None and not wrong.devices:
        return Judgement(Status.PASS, f"the GPUs are placed as in {profile.title}", 0, 0, "GPUs")
    if divided_otherwise(box, profile, wrong):
        return _numa_mode(box, profile)
    shown = gpus if wrong is None or wrong.likewise else wrong.devices
    evidence = tuple(Evidence(f"/sys/bus/pci/devices/{gpu.bdf}", "/".join(need(gpu.path))) for gpu in shown)
    number = len(wrong.devices) if wrong is not None else None
    paths = by_classes(box, shown, gpus, "the others")
    who = f"{counted(len(wrong.devices), 'GPU')}, ambiguous which; " if wrong is not None and wrong.likewise else ""
    message = f"GPUs not placed as in {profile.name}; {who}{paths}"
    return Judgement(Status.WARN, message, number, 0, "GPUs", evidence, fault=Fault.MISPLACED)


def divided_otherwise(box: Box, profile: Profile, wrong: Misplaced | None) -> bool:
    """Are the GPUs in their places on the PCI tree, and a third of them or more at other NUMA nodes?

    Fewer, where sockets are divided into nodes, whose borders lie anywhere, or the NUMA tables contradict the tree.
    """
    gpus = box.reference_gpus
    if wrong is not None and not wrong.devices:
        return False
    many = wrong is None or 3 * len(wrong.devices) >= len(gpus)
    divided = isinstance(number := nodes_per_socket(box), int) and number > 1
    if not (many or divided or nodes_below_roots(box)):
        return False
    by_tree = misplaced(gpus, gpus, box.topology, profile.wiring, lambda wiring: wiring.to_gpus, by_tree=True)
    return by_tree is not None and not by_tree.devices


def _numa_mode(box: Box, profile: Profile) -> Judgement:
    """The tree is the reference machine's: NPS, SNC or cluster-on-die is set in another way, for all devices alike."""
    nodes = {gpu.name: gpu.numa_node for gpu in box.topology.gpus if not isinstance(gpu.numa_node, Missing)}
    by_node = gathered((node, name) for name, node in nodes.items())
    at = "; ".join(f"{', '.join(names)} at node {node}" for node, names in sorted(by_node.items()))
    message = f"NUMA nodes of GPUs unlike {profile.name}; {at}"
    facts = (Evidence("/sys/bus/pci/devices/*/numa_node", {**nodes}),)
    remedy = remedy_of("topology.profile", "NUMA tables" if nodes_below_roots(box) else "NUMA mode")
    return judged(Fault.NUMA_MODE, message, len(by_node), None, "nodes", facts, warns=True, remedy=remedy)


def _nvml_agrees(box: Box) -> Judgement:
    """Warns if NVML reports another common ancestor for a pair of GPUs than the PCI tree shows. Pairs with an unknown
    class are left out.

    Source: nvmlDeviceGetTopologyCommonAncestor against the paths under /sys/devices
    """
    unless(nvml_unavailable(box))
    names = {gpu.bdf: gpu.name for gpu in box.topology.gpus}
    asked = {gpu.bdf for gpu in box.gpus}
    matrix = box.topology.links
    unknown: list[Judgement] = []
    differing: list[str] = []
    evidence: list[Evidence] = []
    compared = 0
    for pair in need(box.snapshot.gpu_pairs):
        if not {pair.a, pair.b} & asked or not {pair.a, pair.b} <= names.keys():
            continue
        level, link = pair.common_ancestor, matrix[names[pair.a], names[pair.b]]
        if isinstance(level, Missing) or link.pci is None:
            judged = unjudged if guest(box) is not None else unread
            unknown.append(judged(level) if isinstance(level, Missing) else skip("not-visible", link.pci_reason))
            continue
        compared += 1
        ancestor = ANCESTORS.get(level, f"level {level}")
        if ancestor != link.pci:
            differing.append(f"{link.a}-{link.b} ({ancestor}, not {link.pci})")
            evidence.append(answered(level, "nvmlDeviceGetTopologyCommonAncestor", f"{pair.a} {pair.b}"))
    if differing:
        message = f"NVML's common ancestor differs from the PCI tree: {first_of(differing)}"
        facts, fault = tuple(evidence), Fault.DISAGREEMENT
        return Judgement(Status.WARN, message, len(differing), 0, "pairs", facts, fault=fault)
    unless(next((judgement for judgement in unknown if judgement.status is Status.UNKNOWN), None))
    if compared:
        message = f"NVML and the PCI tree agree on {counted(compared, 'pair')}"
        return Judgement(Status.PASS, message, 0, 0, "pairs")
    return unknown[0] if unknown else NO_PAIR


def _blame_ancestors(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The driver, or NUMA tables that are wrong or new: the driver may have its own idea of these."""
    yield from driver(box, subject, judgement)
    profile = reference(box)
    if nodes_below_roots(box) or (
        isinstance(profile, Profile) and divided_otherwise(box, profile, wrong_gpus(box, profile))
    ):
        yield host_part(NUMA_SETTING)


def _numa(box: Box) -> Judged:
    """Warns if the host has several NUMA nodes and the firmware reports none (-1) for GPUs or HCAs; one finding per
    root bus, from which its devices have their node. Not judged in a virtual machine.

    Source: numa_node in /sys/bus/pci/devices/BDF, /sys/devices/system/node
    """
    nodes = need(box.snapshot.numa)
    if len(nodes) < 2:
        raise Instead(skip("not-supported", "this host has one NUMA node"))
    judged = [device for device in box.topology.devices if device.kind == "nic" or device in box.gpus]
    placed = [device for device in judged if device.function is not None and rows(device.path)]
    below = gathered((rows(device.path)[0], device) for device in placed)
    for root, devices in sorted(below.items()):
        yield Subject(kind="pci", name=root, bdf=None), ruled(_host_bridge_node, devices, guest(box))


def _host_bridge_node(devices: list[Device], vm: str | None) -> Judgement:
    """A host bridge gives its node to all devices below it, so that one without a node is one fault."""
    nodes = [(each, need(each.function.numa_node) if each.function is not None else 0) for each in devices]
    evidence = tuple(Evidence(pci_file(device.bdf, "numa_node"), node) for device, node in nodes)
    without = [device.name for device, node in nodes if node < 0]
    if without and vm is not None:
        return skip("not-visible", f"{vm} hides the NUMA node of {', '.join(without)} from its guest", *evidence)
    message = f"the NUMA node of {counted(len(devices), 'device')} is known"
    if without:
        message = f"firmware reports no NUMA node; for {', '.join(without)}"
    return judged(Fault.NUMA_UNKNOWN, message, len(without), 0, "devices", evidence, warns=bool(without))


def _blame_bridge(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """A host bridge; of several the firmware, whose tables (_PXM of ACPI) give each its node."""
    several = sum(found.status is Status.WARN for _, found in _numa(box)) > 1
    yield _NUMA if several else Component(kind="host-bridge", name=subject.name)


def is_reference_machine(box: Surveyed, choice: SelectedProfile) -> bool:
    """The user or the DMI product name says so, or the firmware names no other and all GPUs and HCAs are wired so.

    Boards of eight GPUs and virtual machines with the GPUs of a DGX are machines of other makers.
    """
    if choice.how != "gpus":
        return True
    profile = choice.profile
    product = box.snapshot.known_host.dmi.product_name
    if profile.products and not isinstance(product, Missing):
        return False
    gpus, adapters = box.topology.gpus, fabric_adapters(box)
    hcas = profile.numbers.get("network.hcas")
    if len(gpus) != sum(wiring.gpus for wiring in profile.wiring) or (hcas and len(adapters) < hcas.value):
        return False
    has_hcas = any(wiring.to_hcas for wiring in profile.wiring)
    return all_in_place(gpus, gpus, box.topology, profile.wiring, lambda wiring: wiring.to_gpus) and (
        not has_hcas or all_in_place(gpus, adapters, box.topology, profile.wiring, lambda wiring: wiring.to_hcas)
    )


CHECKS = (
    Check("topology.profile", per_host(_gpus_placed),
        lambda box, at, judgement: (_NUMA if judgement.fault is Fault.NUMA_MODE else _PLACEMENT,)),
    Check("topology.nvml-agrees", per_host(_nvml_agrees), _blame_ancestors),
    Check("topology.numa", _numa, _blame_bridge),
)  # fmt: skip
