"""Does sysfs tell of every adapter, NVSwitch and PCIe bridge what it tells of its equal siblings?"""

from __future__ import annotations

from dgxcheck.checks.answers.gpus import Facts, Group, most_have
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.device_facts import facts_of
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, of_gaps, skip
from dgxcheck.checks.engine.wording import counted
from dgxcheck.components.locate import is_nvswitch
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import PciFunction

_FIELDS = ("pci", "infiniband", "ib_ports")
_VARIES = ("pci.driver", "infiniband.node_guid", "infiniband.sys_image_guid")
"""A function may have no driver; a GUID of zeros is read as a gap, which network.hca-identity reports."""
_LAYER = ".link_layer"
"""InfiniBand and Ethernet ports have other files."""
_REPORTED = (Gap.UNRECORDED, Gap.UNASKED)


def _answers(box: Box) -> Judged:
    adapters = {device.bdf: device.name for device in box.topology.devices if device.kind == "nic" and device.bdf}
    names = {bdf: adapters.get(bdf, "") for bdf in _of_interest(box)}
    facts = {bdf: facts_of(box.snapshot, bdf, name, _FIELDS) for bdf, name in names.items()}
    models = {bdf: (*_model(box, bdf), *_layers(facts[bdf])) for bdf in names}
    groups: dict[tuple[object, ...], Group] = {}
    for bdf, model in models.items():
        groups.setdefault(model, Group()).members.append(facts[bdf])
    for bdf, model in models.items():
        silent = _silent(facts[bdf], groups[model]) if None not in model else []
        if silent or bdf in adapters:
            name = names[bdf]
            yield Subject(kind="hca" if name else "pci", name=name or bdf, bdf=bdf), _judgement(silent)
    if not adapters:
        yield HOST, skip("not-visible", "no HCA is present")


def _of_interest(box: Box) -> list[str]:
    """HCAs, NVSwitches and the bridges on the paths of GPUs and HCAs."""
    functions = box.topology.functions
    above = {bdf for device in box.topology.devices if isinstance(device.path, tuple) for bdf in device.path[1:-1]}
    own = {device.bdf for device in box.topology.devices if device.kind == "nic" and device.bdf is not None}
    switches = {bdf for bdf, function in functions.items() if is_nvswitch(function)}
    return sorted(bdf for bdf in above | own | switches if bdf in functions)


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
        if isinstance(fact, Missing) and "." in path and not path.startswith(_VARIES)
        and fact.gap not in _REPORTED and most_have([group], path)
    ]  # fmt: skip


def _judgement(silent: list[Missing]) -> Judgement:
    if not silent:
        return Judgement(Status.PASS, "sysfs has the same values as for the other devices of its model")
    values = counted(len(silent), "value")
    message = f"{values} missing that other devices of its model have, first {silent[0].where}: {silent[0]}"
    return Judgement(Status.UNKNOWN, message, len(silent), 0, "values", of_gaps(silent))


CHECKS = (
    Check(
        id="pcie.answers",
        rule="Unknown if sysfs has no value of an HCA, an NVSwitch or a bridge above a GPU or HCA where at least half"
        " of the others of its model and place have one.",
        source="/sys/bus/pci/devices, /sys/class/infiniband",
        remedy="read the file by hand, as root; if it is not there, check the kernel log for this device"
        " (AER, link down, firmware) and power state",
        judge=_answers,
    ),
)
