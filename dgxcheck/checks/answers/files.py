"""Does sysfs tell of every adapter, NVSwitch and PCIe bridge what it tells of its equal siblings, and could everything
be read that the reference machine has numbers of?"""

from __future__ import annotations

from collections.abc import Callable

from dgxcheck.checks.answers.gpus import Facts, Group, gaps_in
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, remedy_of
from dgxcheck.checks.engine.finding import Evidence, Instead, Judged, Judgement, Status, Subject, counted, of_gaps, skip
from dgxcheck.checks.engine.gaps import is_driver_query
from dgxcheck.checks.engine.host_limits import is_assigned
from dgxcheck.components.device_facts import facts_of
from dgxcheck.facts.missing import Gap, Missing, rows
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import replace
from dgxcheck.facts.sysfs import INFINIBAND, PCI_DEVICES
from dgxcheck.survey import Snapshot
from dgxcheck.topology.nvlinks import nvswitches

_FIELDS = ("pci", "infiniband", "ib_ports", "aer")
_VARIES = ("pci.driver", "infiniband.node_guid", "infiniband.sys_image_guid", "aer.")
"""A function may have no driver; a GUID of zeros is read as a gap, which network.hca-identity reports; the firmware may
keep AER for itself."""
_LAYER = ".link_layer"
"""InfiniBand and Ethernet ports have other files."""
_REPORTED = (Gap.UNRECORDED, Gap.UNASKED)
_OF_DEVICES = (PCI_DEVICES, INFINIBAND)
"""Of these files the checks of the devices judge whether they could be read."""
_OF_KERNEL = ("/proc/", "/sys/")


def _of_devices(box: Box) -> Judged:
    """Unknown if sysfs has no value of an HCA, an NVSwitch or a bridge above a GPU or HCA where at least half of the
    others of its model and place have one.

    Source: /sys/bus/pci/devices, /sys/class/infiniband
    """
    adapters = {device.bdf: device.name for device in box.topology.nics if device.bdf}
    names = {bdf: adapters.get(bdf, "") for bdf in _of_interest(box)}
    facts = {bdf: facts_of(box.snapshot, bdf, name, _FIELDS) for bdf, name in names.items()}
    models = {bdf: (*_model(box, bdf), *_layers(facts[bdf])) for bdf in names}
    groups: dict[tuple[object, ...], Group] = {}
    for bdf, model in models.items():
        groups.setdefault(model, Group()).add(facts[bdf], gaps_in(facts[bdf]))
    for bdf, model in models.items():
        silent = _silent(facts[bdf], groups[model]) if None not in model else []
        if silent or bdf in adapters:
            name = names[bdf]
            yield Subject(kind="hca" if name else "pci", name=name or bdf, bdf=bdf), _judgement(silent)
    if not adapters:
        yield HOST, skip("not-visible", "no HCA is present")


def _of_interest(box: Box) -> list[str]:
    """HCAs, the bridges on the paths of GPUs and HCAs, and NVSwitches but those off the bus (nvlink.nvswitches)."""
    functions = box.topology.functions
    above = {bdf for device in box.topology.devices for bdf in rows(device.path)[1:-1]}
    own = {device.bdf for device in box.topology.nics if device.bdf is not None}
    switches = {function.bdf for function in nvswitches(box.topology)}
    controls = ((row.bdf, row.control) for row in rows(box.snapshot.config_space))
    lost = {bdf for bdf, control in controls if isinstance(control, Missing) and control.gap is Gap.LOST}
    return sorted(bdf for bdf in above | own | (switches - lost) if bdf in functions)


def _model(box: Box, bdf: str) -> tuple[object, ...]:
    """What equal devices have in common, with None for what is not known; bridges as far from the root."""
    function: PciFunction = box.topology.functions[bdf]
    ids = (function.vendor, function.device, function.class_code)
    depth = len(function.path) if isinstance(function.path, tuple) else None
    return tuple(None if isinstance(each, Missing) else each for each in (*ids, depth))


def _layers(facts: Facts) -> tuple[str, ...]:
    """The link layers of an adapter's ports; one that cannot be read makes no other model."""
    return tuple(sorted({fact for path, fact in facts.items() if path.endswith(_LAYER) and isinstance(fact, str)}))


def _silent(own: Facts, group: Group) -> list[Missing]:
    return [
        fact for path, fact in own.items()
        if isinstance(fact, Missing) and path in group.usual
        and (fact.gap is Gap.GARBLED if path.startswith(_VARIES) else fact.gap not in _REPORTED)
    ]  # fmt: skip


def _judgement(silent: list[Missing]) -> Judgement:
    if not silent:
        return Judgement(Status.PASS, "sysfs has the same values as for the other devices of its model")
    values = counted(len(silent), "value")
    message = f"{values} missing that other devices of its model have, first {silent[0].where}: {silent[0]}"
    return Judgement(Status.UNKNOWN, message, len(silent), 0, "values", of_gaps(silent))


Layer = Callable[[Snapshot], object]


LAYERS: tuple[tuple[str, str, Layer], ...] = (
    ("CPUs", "host.cores", lambda facts: facts.known_host.cpu),
    ("memory", "host.memory", lambda facts: facts.known_host.memory_kb),
    ("NUMA nodes", "host.sockets", lambda facts: facts.numa),
    ("disks", "host.data", lambda facts: facts.disks),
    ("network interfaces", "host.ethernet", lambda facts: facts.network),
    ("HCAs", "network.hcas", lambda facts: facts.infiniband),
)
"""What is read, the number of the profile that is about it, and its facts."""


def _of_host(box: Box) -> Judged:
    """Unknown if CPUs, memory, NUMA nodes, disks, network interfaces or HCAs of a machine that has a reference machine
    cannot be read, which is not judged in containers and virtual machines; and if a file of the host holds what no
    kernel writes there.

    Source: /proc, /sys; the profile's numbers of the host
    """
    if garbled := [*{gap.where: gap for gap in box.gaps if _is_garbled(gap)}.values()]:
        message = f"{counted(len(garbled), 'file')} that no kernel writes so, first {garbled[0].where}: {garbled[0]}"
        figures, remedy = (len(garbled), 0, "files", of_gaps(garbled)), remedy_of("host.answers", "garbled")
        yield replace(HOST, part="files"), Judgement(Status.UNKNOWN, message, *figures, remedy=remedy)
    if box.choice is None or box.choice.how == "gpus":
        raise Instead(skip("no-reference", "no matching reference machine"))
    for words, key, layer in LAYERS:
        number, facts = box.choice.number(key), layer(box.snapshot)
        if number is not None and number.value:
            yield replace(HOST, part=words), _of_layer(box, words, facts)


def _is_garbled(gap: Missing) -> bool:
    """Is it of a file of which no check of a device tells that it cannot be read?"""
    of_host = gap.where.startswith(_OF_KERNEL) and not gap.where.startswith(_OF_DEVICES)
    return gap.gap is Gap.GARBLED and of_host and not is_driver_query(gap)


def _of_layer(box: Box, words: str, facts: object) -> Judgement:
    if not isinstance(facts, Missing):
        return Judgement(Status.PASS, f"{words} readable")
    evidence = Evidence(facts.where, facts.reason)
    if facts.gap in (Gap.UNRECORDED, Gap.UNASKED):
        return skip("not-recorded", f"{words}: {facts.where}: {facts}", evidence)
    if is_assigned(box):
        return skip("not-visible", f"a container or virtual machine may hide {words}: {facts}", evidence)
    message = f"{words} could not be read: {facts.where}: {facts}"
    return Judgement(Status.UNKNOWN, message, evidence=(evidence,))


CHECKS = (
    Check("pcie.answers", _of_devices),
    Check("host.answers", _of_host),
)  # fmt: skip
