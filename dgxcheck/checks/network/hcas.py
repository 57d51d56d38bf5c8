"""The HCAs of a box: their number, and their PCI places against the reference machine."""

from __future__ import annotations

from collections import Counter

from dgxcheck.checks.driver.bound import models, without_rdma_device
from dgxcheck.checks.engine import host_limits
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, component_of, per_host
from dgxcheck.checks.engine.finding import (
    Evidence,
    Instead,
    Judged,
    Judgement,
    Status,
    as_evidence,
    counted,
    first_of,
    given,
    judged,
    skip,
)
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.host_limits import missing_socket
from dgxcheck.checks.network.lacking import gpus_short_of_hcas, nics_of, node_short_of_hcas
from dgxcheck.checks.network.ports import hcas, in_flash_recovery
from dgxcheck.checks.placement.misplaced import misplaced
from dgxcheck.checks.placement.missing import missing
from dgxcheck.checks.placement.placement import (
    by_classes,
    classes,
    divided_otherwise,
    fabric_adapters,
    other,
    reference,
    wrong_gpus,
)
from dgxcheck.components.component import host_part
from dgxcheck.components.locate import off_the_bus
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Gap, Missing, need, rows
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.sysfs import INFINIBAND
from dgxcheck.facts.typical import multimode
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import NEAR


def count(box: Box) -> int | Missing:
    """Number of HCAs, those in flash recovery (network.firmware) included; Missing where a container hides them."""
    if why := host_limits.hcas_hidden(box):
        return Missing(Gap.ABSENT, INFINIBAND, why)
    devices = hcas(box)
    if isinstance(devices, Missing) and devices.gap is not Gap.ABSENT:
        return devices
    return len(rows(hcas(box))) + len(in_flash_recovery(box))


def _not_started(box: Box) -> list[PciFunction]:
    """Adapters without an InfiniBand device whose driver gave up, by the kernel log."""
    trouble = {event.bdf: event.trouble for event in box.log.hcas if not event.past}
    listed = {device.bdf for device in rows(hcas(box))}
    functions = box.topology.functions.values()
    return [each for each in functions if trouble.get(each.bdf) == "not started" and each.bdf not in listed]


def _number(box: Box) -> Judgement:
    """Fails if there are fewer HCAs than in the profile, or if all HCAs are in their places and a GPU has fewer behind
    its PCIe switch (PIX, PXB) than every GPU of the profile. If the profile has no number, or only its GPUs are those
    of the machine, warns: if most GPUs, three quarters where several lack one, have HCAs of their own behind their
    switches and others none, or if of one model every NUMA node but one has an adapter for each of its GPUs; so of an
    imported nvidia-smi topo -m, where as many GPUs may share each HCA. Virtual functions are not counted; an HCA in
    flash recovery, or one that its driver gave up (kernel.hca), counts as present. More HCAs than expected are not a
    fault.

    Source: /sys/class/infiniband against the profile's network.hcas
    """
    number = box.number("network.hcas")
    idle = in_flash_recovery(box) or _not_started(box) or without_rdma_device(box)
    few = [] if idle else gpus_short_of_hcas(box, box.topology.adapters)
    node = None if idle else node_short_of_hcas(box, box.topology.adapters)
    if number is None and not few and node is None:
        return skip("no-reference", "no reference number of HCAs")
    if why := host_limits.hcas_hidden(box):
        return skip("not-visible", why)
    matrix = box.snapshot.stated
    nics = [] if isinstance(matrix, Missing) or box.topology.functions else nics_of(matrix)
    present, expected = len(nics) or need(count(box)), None if number is None else number.value
    names = ", ".join(nics or [device.name for device in rows(hcas(box))]) or "none"
    on_pci = without_rdma_device(box)
    not_started = [function for function in _not_started(box) if function not in (*in_flash_recovery(box), *on_pci)]
    message = f"{_of(present, expected)} ({names})"
    if not_started:
        message += f"; {first_of([function.bdf for function in not_started])} did not start (kernel.hca)"
    if on_pci:
        message += f"; {first_of([each.bdf for each in on_pci])} without an RDMA device (driver.bound, kernel.hca)"
    if few:
        lacking = f"too few behind the PCIe switch of {', '.join(few)}"
        enough = expected is not None and present >= expected  # in all: this machine had more than the reference has
        message = f"{lacking}; {message}" if enough else f"{message}; {lacking}"
    if node is not None:
        message += f"; NUMA node {node} has fewer than GPUs, unlike the others"
    fewer = expected is not None and present + len(not_started) + len(on_pci) < expected
    stated = fewer or (bool(few) and not isinstance(reference(box), Judgement))
    return judged(
        Fault.HCA_MISSING, message, present, expected, "HCAs", (Evidence(INFINIBAND, names),), fails=stated,
        warns=bool(few) or node is not None,
    )  # fmt: skip


def _of(present: int, expected: float | None) -> str:
    if expected is None:
        return f"{counted(present, 'HCA')} found"
    more = present > expected
    return f"{present} HCAs found, {expected:g} expected" if more else f"{present} of {expected:g} HCAs found"


def _placement(box: Box) -> Judged:
    """Warns on an HCA that more GPUs reach at some PCI class than in the reference machine: on the fewest HCAs that
    explain it, or on the host if that takes more than three. A missing HCA is not counted as misplaced. Adapters with
    Ethernet ports only are not judged; misplaced GPUs are reported by topology.profile.

    Source: the profile's wiring; PCI classes from the paths under /sys/devices
    """
    profile = given(reference(box))
    adapters = fabric_adapters(box)
    if not adapters or not any(wiring.to_hcas for wiring in profile.wiring):
        why = f"{profile.name} has no HCAs" if adapters else "no HCAs with an InfiniBand port"
        raise Instead(skip("not-supported", why))
    if any(device.bdf in off_the_bus(box) for device in box.topology.devices if device.kind != "gpu"):
        raise Instead(skip("dependency-failed", "an HCA does not respond on PCIe: see pcie.enabled"))
    wrong = wrong_gpus(box, profile)
    gpus = [gpu for gpu in box.reference_gpus if wrong is not None and gpu not in wrong.devices]
    if not gpus or divided_otherwise(box, profile, wrong):
        raise Instead(skip("dependency-failed", "the GPUs are not placed as in the reference machine"))
    wrong_hcas = misplaced(gpus, adapters, box.topology, profile.wiring, lambda wiring: wiring.to_hcas)
    reached = {nic: classes(box, nic, box.reference_gpus) for nic in adapters}
    paths = {nic: nic.path.reason if isinstance(nic.path, Missing) else "/".join(nic.path) for nic in adapters}
    evidence = {nic: Evidence(f"/sys/bus/pci/devices/{nic.bdf}", path) for nic, path in paths.items()}
    if wrong_hcas is None:
        message = f"not as in {profile.title}: {by_classes(box, adapters, box.reference_gpus, 'GPUs')}"
        raise Instead(Judgement(Status.WARN, message, evidence=(*evidence.values(),), fault=Fault.MISPLACED))
    for nic in adapters:
        place, classes_text = box.subject(nic), reached[nic]
        wrong_one = nic in wrong_hcas.devices
        message = f"misplaced: {classes_text} to GPUs; unlike {profile.title}{other(wrong_hcas)}"
        message = message if wrong_one else f"to GPUs: {classes_text}"
        judgement = judged(Fault.MISPLACED, message, classes_text, evidence=(evidence[nic],), warns=wrong_one)
        unknown = unjudged(nic.path) if isinstance(nic.path, Missing) else None
        nowhere = skip("not-visible", "no PCI function behind it") if nic.bdf is None else unknown
        yield place, judgement if wrong_one else nowhere or judgement


_FEWEST_GPUS = 3
"""With adapters of one model; of fewer it is not known which model is meant."""
_Model = tuple[object, object]

def _models(box: Box) -> Judged:
    """Warns on an HCA of another model than those behind the PCIe switches of the other GPUs (PIX, PXB), where most
    GPUs, at least three, have the same there and this one has as many. Nothing is known of the models that a machine is
    sold with.

    Source: device ids in /sys/bus/pci/devices; a ConnectX-6 in place of a ConnectX-7 halves the rate of its GPUs

    Where most GPUs have adapters of the same models behind their switch, another one in as many is the odd one.

    A GPU with more adapters than the others has one for another use, as a BlueField beside a ConnectX.
    """
    types = {device.name: device.hca_type for device in need(box.snapshot.infiniband)}
    near = {gpu: _near(box, gpu) for gpu in box.topology.gpus}
    sets = {gpu: frozenset(Counter(map(_model, found)).items()) for gpu, found in near.items() if found}
    usual = next(iter(multimode(sets.values())), frozenset())
    holders = sum(models == usual for models in sets.values())
    if holders < _FEWEST_GPUS or 2 * holders <= len(sets):
        raise Instead(skip("no-reference", "no majority of GPUs with adapters of the same model behind their switch"))
    wanted = dict(usual)
    alike = [gpu for gpu, models in sets.items() if sum(dict(models).values()) == sum(wanted.values())]
    odd = dict.fromkeys(
        nic for gpu in alike for nic in near[gpu] if dict(sets[gpu])[_model(nic)] > wanted.get(_model(nic), 0)
    )
    usual_types = {types[nic.name] for gpu in alike for nic in near[gpu] if _model(nic) in wanted}
    usually = first_of(sorted({_named(each) for each in usual_types}))
    for nic in odd:
        own = _named(types[nic.name])
        evidence = Evidence(f"{INFINIBAND}/{nic.name}/hca_type", as_evidence(types[nic.name]))
        message = f"{own}, unlike {usually} behind the switches of the other GPUs"
        judgement = Judgement(Status.WARN, message, own, usually, "", (evidence,), fault=Fault.WRONG_MODEL)
        yield box.subject(nic), judgement
    if not odd:
        yield HOST, Judgement(Status.PASS, f"{usually} behind the switches of {counted(holders, 'GPU')}")


def _named(hca_type: str | Missing) -> str:
    """``ConnectX-7 (MT4129)``"""
    if isinstance(hca_type, Missing):
        return "an unknown model"
    name = {f"MT{number}": name for number, name in models("working").items()}.get(hca_type)
    return f"{name} ({hca_type})" if name else hca_type


def _near(box: Box, gpu: Device) -> list[Device]:
    known = (nic for nic in box.topology.adapters if nic.function is not None)
    return [nic for nic in known if box.topology.link(nic, gpu).pci in NEAR]


def _model(nic: Device) -> _Model:
    return (None, None) if nic.function is None else (nic.function.vendor, nic.function.device)


_OF_ALL = host_part("placement of HCAs")


CHECKS = (
    Check("network.hca-count", per_host(_number),
        lambda box, at, judgement: (missing(box, "HCA"), *missing_socket(box))),
    Check("network.hca-placement", _placement,
        lambda box, at, judgement: (_OF_ALL if at.kind == "host" else component_of(box, at, "slot"),)),
    Check("network.hca-model", _models, lambda box, at, judgement: (component_of(box, at, "model"),)),
)  # fmt: skip
