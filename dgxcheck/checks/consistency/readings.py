"""Can the readings of a GPU, and those of the host, be true together?

Tools that report one value a device show each of them as it is; which of two that exclude each other is wrong nobody
knows, so that nothing that depends on them is judged: unknown. Identities that disagree are a warning about what was
swapped, cloned or flashed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dgxcheck.checks.consistency import bounds, host, identity, load, permanent
from dgxcheck.checks.consistency.contradiction import Contradiction, ReadingRule, judged
from dgxcheck.checks.engine.blame import part
from dgxcheck.checks.engine.box import HOST, Box, gpu_unavailable
from dgxcheck.checks.engine.check import Check, Judge
from dgxcheck.checks.engine.device_facts import facts_of
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.host_limits import NUMA_SETTING
from dgxcheck.components.component import Component, host_part
from dgxcheck.topology.model import Device

READINGS: tuple[ReadingRule, ...] = (
    bounds.never_above, bounds.told_twice, bounds.ranges, bounds.parts, bounds.spare_rows, load.at_load,
    permanent.fallen,
)  # fmt: skip
IDENTITIES: tuple[ReadingRule, ...] = (identity.pci_ids, identity.model, identity.far_ends)
NOTHING_TO_COMPARE = skip("not-recorded", "nothing was read that could be compared")
OF_THE_HOST = (host.memory, host.nodes, host.ports)


def _per_gpu(rules: tuple[ReadingRule, ...], is_compared: Callable[[Box, Device], bool], status: Status) -> Judge:
    """``is_compared``: have the rules anything to compare?"""

    def judge(box: Box) -> Judged:
        for gpu in box.gpus:
            unavailable = gpu_unavailable(box, gpu)
            if unavailable is not None:
                yield box.subject(gpu), unavailable
                continue
            facts = facts_of(box.snapshot, gpu.bdf or "")
            found = [contradiction for rule in rules for contradiction in rule(box, gpu, facts)]
            yield box.subject(gpu), judged(found, status) if found or is_compared(box, gpu) else NOTHING_TO_COMPARE

    return judge


def _host(box: Box) -> Judged:
    found: list[Contradiction] = [each for rule in OF_THE_HOST for each in rule(box)]
    nothing = not isinstance(box.snapshot.numa, tuple) and not isinstance(box.snapshot.edac, tuple)
    if nothing and not found:
        yield HOST, skip("not-recorded", "neither NUMA nodes nor memory controllers were read")
    else:
        yield HOST, judged(found)


def _places(box: Box) -> Judged:
    placed = any(isinstance(each.numa_node, int) for each in box.topology.functions.values())
    yield HOST, judged([*host.places(box)], Status.WARN) if placed else NOTHING_TO_COMPARE


def _blame_host(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The NUMA setting of the firmware, where CPUs and NUMA nodes exclude each other; else the host."""
    of_numa = any(each.where.endswith(("numa_node", "cpulist")) for each in judgement.evidence)
    yield host_part(NUMA_SETTING) if of_numa else host_part("")


CHECKS = (
    Check(
        id="consistency.readings",
        rule="Unknown if readings of a GPU cannot be true together: more than the whole or the highest (PCIe link,"
        " memory, BAR1, clocks, power limits, errors by location), values that no GPU has (0 °C, 0 W, more than 100 %),"
        " a PCIe link that is another for NVML than for sysfs, full utilisation with an idle performance state, clock"
        " or power, retired pages or remapped rows that become fewer.",
        source="dgxcheck/checks/consistency; the functions' documentation in nvml-api",
        remedy="run nvidia-smi -q -i BDF and dgxcheck again; if the values persist, update driver and VBIOS; if that"
        " does not help, run the field diagnostic (dcgmi diag -r 3)",
        judge=_per_gpu(READINGS, bounds.is_compared, Status.UNKNOWN),
    ),
    Check(
        id="consistency.identity",
        rule="Warns if NVML, the PCI bus, the name, the VBIOS version and the compute capability of a GPU are not those"
        " of one model.",
        source="boards.toml; https://developer.nvidia.com/cuda-gpus; dgxcheck/checks/consistency/identity.py",
        remedy="find out whether the board was flashed or replaced; ask the vendor for the VBIOS of its part number",
        judge=_per_gpu(IDENTITIES, identity.is_compared, Status.WARN),
        blames=part("versions and settings"),
    ),
    Check(
        id="consistency.place",
        rule="Warns if a PCI function is at another NUMA node than most functions below its root bus, or at other CPUs"
        " than most of its node. A node of -1 says nothing.",
        source="numa_node and local_cpulist of /sys/bus/pci/devices; Linux gives each root bus the node of its bridge",
        remedy="check the NUMA settings of the system firmware (node interleaving, NPS, SNC), update it, and look for"
        " numa= on the kernel command line",
        judge=_places,
        blames=_blame_host,
    ),
    Check(
        id="consistency.host",
        rule="Unknown if the kernel's memory differs from the sum of the DIMMs by more than {consistency.memory}, if a"
        " CPU is in two NUMA nodes, a device not at the CPUs of its node, or a port active on a link that is not up"
        " or with a rate that is not that of its lanes.",
        source="/proc/meminfo, /sys/devices/system/edac, /sys/devices/system/node, /sys/class/infiniband",
        remedy="check the firmware's memory map and NUMA settings (dmesg: e820, SRAT); run dgxcheck again",
        judge=_host,
        blames=_blame_host,
    ),
)
