"""The PCIe link of each GPU: its width, its generation, and why a link is slower than both its ends."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, asked, device_of, host_if_all, own_link, per_listed_gpu, ruled
from dgxcheck.checks.engine.expected import is_on_package, siblings
from dgxcheck.checks.engine.finding import (
    Evidence,
    Judged,
    Judgement,
    Status,
    Subject,
    as_evidence,
    judged,
    skip,
)
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.pcie.isolation import config_space_of
from dgxcheck.checks.pcie.unseen_slot import FEWEST, without_slot
from dgxcheck.components.component import Component
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.ids import GPU_IDLE
from dgxcheck.facts.missing import Missing, known, need, or_none, rows
from dgxcheck.facts.nvml.readings import GpuPcie
from dgxcheck.facts.record import replace
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import NO_LINK, Hop, hops_above, is_virtual, sharers


def under_load(box: Box, bdf: str | None, member: str) -> tuple[int, Evidence] | None:
    """``link_gen`` or ``link_width`` of a GPU under load, with its evidence; None if not read, or of simulated load."""
    for row in rows(box.snapshot.measurement):
        if (row.kind, row.a) == ("under-load", bdf) and row.how != "simulated":
            value = row.more.get(member)
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 32:
                return value, Evidence(f"measure under-load {bdf}", {member: value})
    return None


def own_hop(box: Box, path: tuple[str, ...] | Missing) -> Hop | Judgement:
    """The link that ends at a device, or why there is none to judge."""
    if isinstance(path, Missing):
        return unjudged(path)
    hops = hops_above(path, box.topology.functions)
    return hops[-1] if hops else skip("not-visible", "no bridge is visible above it, as in a virtual machine")


def _width(box: Box) -> Judged:
    """Fails if a GPU's own link is trained at fewer lanes than the profile expects; without a profile, warns if it has
    fewer lanes than both its ends support, and fails if most GPUs of its model have more. The same applies if it loses
    lanes while copies are measured. On a K80 this is the link to the switch on the board. Where the PCI tree is not
    visible, fails if NVML reports fewer lanes than GPU and slot support and most GPUs of the model have; of a text that
    shows no slots, warns if a data-center GPU has fewer lanes than it supports and most of its kind have all, or any
    GPU, that of a guest too, a quarter of its lanes or fewer, or a module (SXM, from A100 on) fewer than its model has,
    and is unknown for any other GPU with fewer.

    Source: current_link_width against the profile's pcie.link_width, else max_link_width of both ends
    """
    for gpu in box.gpus:
        hop = own_hop(box, gpu.path)
        if isinstance(hop, Judgement):
            yield box.subject(gpu), without_slot(box, gpu) or hop
        else:
            yield box.subject(gpu), _under_load(box, gpu, ruled(_own, box, gpu, hop))


def _under_load(box: Box, gpu: Device, at_rest: Judgement) -> Judgement:
    """A link that has its width at rest may lose lanes while copies run."""
    loaded = under_load(box, gpu.bdf, "link_width")
    if loaded is None or at_rest.status is not Status.PASS or not isinstance(at_rest.measured, int):
        return at_rest
    width, evidence = loaded
    if width >= at_rest.measured:
        return at_rest
    fails = box.number("pcie.link_width", gpu) is not None
    message = f"PCIe drops from x{at_rest.measured} to x{width} while copies run"
    facts = (width, at_rest.measured, "lanes", (*at_rest.evidence, evidence))
    return judged(Fault.LINK_NARROW, message, *facts, warns=True, fails=fails)


def _own(box: Box, gpu: Device, hop: Hop) -> Judgement:
    number = box.number("pcie.link_width", gpu)
    if number is None or hop.skip_reason or isinstance(hop.width, Missing):
        others = (own_hop(box, other.path) for other in siblings(box, gpu))
        outdone = is_outdone(hop, [other for other in others if isinstance(other, Hop)], "width")
        return trained_width(box, hop, Status.FAIL if outdone else Status.WARN)
    supported = "" if isinstance(hop.max_width, Missing) else f", {_supports(box, hop)}"
    message = f"{lanes(hop.width, number.value)}; link {hop}{supported}"
    return _judgement(box, hop, Status.FAIL if hop.width < number.value else Status.PASS, message, number.value)


def is_outdone(hop: Hop, others: Collection[Hop], what: Literal["gen", "width"]) -> bool:
    """Do most of at least two other links of this kind have more generations or lanes? Then it is no slot's design."""
    own: int | Missing = getattr(hop, what)
    values: list[int | Missing] = [getattr(other, what) for other in others]
    if isinstance(own, Missing) or len(values) < FEWEST:
        return False
    return 2 * sum(isinstance(value, int) and value > own for value in values) > len(values)


def lanes(width: int, expected: float) -> str:
    """``PCIe x8 instead of x16``"""
    return f"PCIe x{width} instead of x{expected:g}" if width < expected else f"PCIe x{width}"


def trained_width(box: Box, hop: Hop, severity: Status) -> Judgement:
    """Against what both ends support."""
    narrow = need(hop.narrow)
    widths = lanes(need(hop.width), need(hop.max_width))
    message = f"{widths}; link {hop}, {_supports(box, hop)}{shared_by(box, hop)}"
    return _judgement(box, hop, severity if narrow else Status.PASS, message, need(hop.max_width))


def shared_by(box: Box, hop: Hop) -> str:
    """``; shared by GPU0, GPU1``: the end of a message; empty for a link of one device."""
    names = sharers(hop, box.topology)
    return f"; shared by {', '.join(names)}" if len(names) > 1 else ""


_NO_SLOT = "what its slot supports is not shown"


def _supports(box: Box, hop: Hop) -> str:
    """What the ends of a link support, in words."""
    port, device = (box.topology.functions.get(bdf) for bdf in (hop.port, hop.device))
    if is_virtual(port):
        return f"the device supports x{hop.max_width}; {_NO_SLOT}"
    ends = [end.max_link_width for end in (port, device) if end is not None]
    if len({*map(str, ends)}) < 2:
        return f"both ends support x{hop.max_width}"
    return f"the port supports x{ends[0]}, the device x{ends[1]}"


def _judgement(box: Box, hop: Hop, status: Status, message: str, expected: float) -> Judgement:
    fault = None if status is Status.PASS else Fault.LINK_NARROW
    evidence = both_ends(box, hop, "link_width", "current_link_width")
    return Judgement(status, message, need(hop.width), expected, "lanes", evidence, fault=fault)


def both_ends(box: Box, hop: Hop, fact: str, file: str) -> tuple[Evidence, ...]:
    """What the upper and the lower end of a link say."""
    functions = [(bdf, box.topology.functions.get(bdf)) for bdf in (hop.port, hop.device)]
    return tuple(Evidence(pci_file(bdf, file), as_evidence(getattr(each, fact, "absent"))) for bdf, each in functions)


@or_none
def target_gen(box: Box, hop: Hop) -> int | None:
    """The generation to which a setting limits the link: Target Link Speed of its upper end; None if unknown."""
    return need(need(need(config_space_of(box, hop.port)).control).target_gen)


def slow_fault(box: Box, hop: Hop) -> FaultKind:
    """Of a link that is slow: held by a setting, trained below it, or LINK_SLOW where the setting cannot be read."""
    target = target_gen(box, hop)
    if target is None or isinstance(hop.max_gen, Missing):
        return Fault.LINK_SLOW
    held = target < hop.max_gen and not isinstance(hop.gen, Missing) and target <= hop.gen
    return Fault.LINK_LIMITED if held else Fault.LINK_DEGRADED


def target_evidence(box: Box, hop: Hop) -> Iterator[Evidence]:
    """The setting, where it can be read."""
    if (target := target_gen(box, hop)) is not None:
        yield Evidence(pci_file(hop.port, "config"), f"Target Link Speed gen{target}")


def port_setting(hop: Hop) -> Component:
    """The link speed setting of the port above a link."""
    return Component(kind="bridge", name=hop.port, bdf=hop.port, part="PCIe setting")


_AT_WORK = (0, 1, 2)


def _trained(box: Box, gpu: Device) -> Judgement:
    """Warns if GPU and slot together support a lower generation than the profile expects, and if the link is at a lower
    generation than both support while the GPU is under load: in P0 to P2, not idle, with utilisation or a process, or
    while copies are measured. Of an idle GPU a lower one is judged only in P0 to P2, where most others of its model are
    as idle, in the same state, and have a higher one. Below a hypervisor's virtual port it is judged against other GPUs
    of the model alone. Unknown if a text without the slot shows a module (SXM) with less than its model supports.

    Source: nvmlDeviceGetMaxPcieLinkGeneration and max_link_speed of both ends against
    nvmlDeviceGetCurrPcieLinkGeneration and the profile's pcie.link_gen; nvidia-smi(1) on idle links
    """
    if is_on_package(box, gpu):
        return skip("not-supported", NO_LINK)
    pcie = need(box.gpu(gpu).pcie)
    supported = need(_supported(box, gpu, pcie))
    number = box.number("pcie.link_gen", gpu)
    evidence = asked(pcie, "max_link_gen", "link_gen")
    if number is not None and supported < number.value:
        expected = int(number.value)
        message = f"PCIe gen{supported} at most, gen{expected} expected; what GPU and slot support together"
        return Judgement(Status.WARN, message, supported, expected, "generation", evidence, fault=Fault.LINK_SLOW)
    of_model = box.board_number(gpu, "link_gen")
    if of_model is not None and supported < of_model.value and isinstance(gpu.path, Missing):
        message = f"PCIe gen{supported} at most, its model supports gen{of_model.value}; {_NO_SLOT}"
        return Judgement(Status.UNKNOWN, message, supported, of_model.value, "generation", evidence)
    loaded = under_load(box, pcie.bdf, "link_gen")
    gen = need(pcie.link_gen) if loaded is None else loaded[0]
    evidence = evidence if loaded is None else (*evidence, loaded[1])
    hop = own_hop(box, gpu.path)
    is_seen = isinstance(hop, Judgement) or not is_virtual(box.topology.functions.get(hop.port))
    which = f"GPU and slot support gen{supported}" if is_seen else f"the GPU supports gen{supported}"
    message = f"link at gen{gen}, {which}"
    if gen >= supported:
        return Judgement(Status.PASS, message, gen, supported, "generation", evidence)
    idle = _idle_state(box, gpu)
    alike = [other for other in siblings(box, gpu) if idle is not None and _idle_state(box, other) == idle]
    faster = [other.name for other in alike if _gen_of(box, other) > gen]
    outdone = loaded is None and len(faster) >= FEWEST and 2 * len(faster) > len(alike) + 1
    if not outdone and loaded is None and not _is_loaded(box, gpu):
        return skip("not-in-level", f"{message}: not a fault while the GPU is not under load", *evidence)
    if not is_seen:
        if (reached := max((_gen_of(box, other) for other in siblings(box, gpu)), default=0)) <= gen:
            return skip("not-visible", f"{message}; {_NO_SLOT}", *evidence)
        which, supported = "others of its model have it", min(reached, supported)
    when = f"; idle as it is, {faster[0]} has more" if outdone else " under load"
    message = f"PCIe gen{gen} instead of gen{supported}{when}; {which}"
    fault = Fault.LINK_SLOW if isinstance(hop, Judgement) else slow_fault(box, replace(hop, gen=gen))
    return Judgement(Status.WARN, message, gen, supported, "generation", evidence, fault=fault)


def _gen_of(box: Box, gpu: Device) -> int:
    """0 where it is not known."""
    pcie = box.gpu(gpu).pcie
    return pcie.link_gen if isinstance(pcie, GpuPcie) and isinstance(pcie.link_gen, int) else 0


@or_none
def _idle_state(box: Box, gpu: Device) -> int | None:
    """Of an idle GPU its performance state, if links keep their generation in it: P100 to H100 do, a K80 not in P8."""
    clocks = need(box.gpu(gpu).clocks)
    state = need(clocks.performance_state)
    return state if need(clocks.reasons).mask & GPU_IDLE and state in _AT_WORK else None


def _supported(box: Box, gpu: Device, pcie: GpuPcie) -> int | Missing:
    """The lowest generation that NVML and both ends of the link support, without a profile: a card that supports more
    than its host is not at fault.
    """
    hop = own_hop(box, gpu.path)
    maxima = [pcie.max_link_gen]
    if not isinstance(hop, Judgement) and not hop.skip_reason:
        maxima.append(hop.max_gen)
    readable = [gen for gen in maxima if not isinstance(gen, Missing)]
    return min(readable) if readable else maxima[0]


def _is_loaded(box: Box, gpu: Device) -> bool:
    """In P0 to P2, not idle, and with utilisation or a process: only then is the link at its full generation.

    A GeForce computes in P2.
    """
    clocks, processes = known(box.gpu(gpu).clocks), known(box.gpu(gpu).processes)
    reasons = known(clocks.reasons) if clocks is not None else None
    if clocks is None or processes is None or reasons is None:
        return False
    used = (known(processes.gpu_percent) or 0) > 0 or bool(rows(processes.compute))
    return used and clocks.performance_state in _AT_WORK and not reasons.mask & GPU_IDLE


def setting_or_link(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """A device's own link; first the setting of the port above it, where that is what holds the link."""
    device = device_of(box, subject)
    hop = own_hop(box, device.path) if device is not None else None
    if judgement.fault is Fault.LINK_LIMITED and isinstance(hop, Hop):
        yield port_setting(hop)
    yield from own_link(box, subject, judgement)


CHECKS = (
    Check("pcie.width", _width, own_link, host_if_all("PCIe setting")),
    Check("pcie.generation", per_listed_gpu(_trained), setting_or_link, host_if_all("PCIe setting")),
)  # fmt: skip
