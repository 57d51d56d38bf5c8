"""What follows from the facts of several outputs together, or from one for the files of the machine."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.bdf import bus_order, is_unplaced
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import STATED_CONTAINER, STATED_NAMED
from dgxcheck.facts.missing import Json, items_of, members_of, text_of
from dgxcheck.facts.sysfs import INFINIBAND, NODES, PCI_DEVICES, ranges
from dgxcheck.facts.typical import gathered
from dgxcheck.readers.kernel_log.excerpt import DOMAIN
from dgxcheck.readers.listing import (
    COUNT,
    NO_HANDLE,
    WITHOUT_NUMBER,
    answers,
    count_of,
    gpu_function,
    gpus_of_matrix,
    handles,
    numberless,
    of_functions,
)
from dgxcheck.readers.lspci.files import SERIAL
from dgxcheck.readers.model import Reports
from dgxcheck.readers.network.adapters import PCI_OF
from dgxcheck.readers.network.counters import COUNTERS, files_of
from dgxcheck.readers.onto import nvml_gpus

_OF_DRIVER = "text /proc/driver/nvidia/gpus/"
_OF_PCI = (_OF_DRIVER, f"link {PCI_DEVICES}/", f"text {PCI_DEVICES}/", f"names {PCI_DEVICES}")
_FOR_GOOD = "GPU is lost"
_TO_RESET = "GPU requires reset"
_LOST = (_FOR_GOOD, "Unknown Error", _TO_RESET)
_ONLY_HERE = (NO_HANDLE, DOMAIN, f"stated {SERIAL} ", f"{PCI_OF} ", f"{COUNTERS} ")
"""Beginnings of keys that serve to put outputs together."""
_MOST_NODES = 1024


def completed(facts: Mapping[str, Json]) -> dict[str, Json]:
    """The facts, what follows from them, and none that only served to put outputs together."""
    facts = {**_measured(facts), **facts}
    opened = _without_handle(facts)
    derived = (
        _nodes(facts) | _functions_of_hcas(facts) | _domains(facts) | _shown_functions(facts) | files_of(facts)
        | _container(facts)
    )  # fmt: skip
    aside = (*_ONLY_HERE, WITHOUT_NUMBER) if COUNT in opened else _ONLY_HERE  # a new list of GPUs
    return derived | {key: fact for key, fact in facts.items() if not key.startswith(aside)} | opened


def _measured(facts: Mapping[str, Json]) -> dict[str, Json]:
    """PCI functions of the GPUs whose bus ids a benchmark printed; none if a matrix shows that there are more."""
    bdfs = {str(bdf) for key, fact in facts.items()
            if key.startswith("measure device ") and (bdf := members_of(fact).get("bdf"))}  # fmt: skip
    if 0 < len(bdfs) < len(gpus_of_matrix(facts)) and not any(key.startswith(_OF_PCI) for key in facts):
        return {}
    return {key: fact for bdf in bdfs for key, fact in gpu_function(bdf).items()}


def _shown_functions(facts: Mapping[str, Json]) -> dict[str, Json]:
    """The PCI functions that some outputs show, and NVML's GPUs, where no output lists all that there are."""
    shown = of_functions(facts, "text", "class")
    listed = {bdf for bdf in (*nvml_gpus(facts), *numberless(facts)) if not is_unplaced(bdf)}
    has_gpu = any(kind.startswith(("0x03", "0x12")) for kind in shown.values())
    if not (has_gpu or (shown and listed)) or f"names {PCI_DEVICES}" in facts:
        return {}  # of adapters alone nobody says that there is no GPU
    whole = COUNT in facts or any(key.startswith(_OF_DRIVER) for key in facts)
    named: dict[str, Json] = {} if whole else {STATED_NAMED: True}
    return {f"names {PCI_DEVICES}": [*sorted({*shown} | listed)], **named}


def _functions_of_hcas(facts: Mapping[str, Json]) -> dict[str, Json]:
    """The PCI function of each InfiniBand device, as mst lists it, or the one whose serial number is its node GUID."""
    bdfs = gathered((text_of(fact), key.rpartition(" ")[2]) for key, fact in facts.items()
                    if key.startswith(f"stated {SERIAL} "))  # fmt: skip
    found: dict[str, Json] = {}
    for name in items_of(facts.get(f"names {INFINIBAND}")):
        guid = text_of(facts.get(f"text {INFINIBAND}/{name}/node_guid"))
        same = bdfs.get(guid.strip().replace(":", ""), [])
        listed = facts.get(f"{PCI_OF} {name}")
        if isinstance(listed, str) or len(same) == 1:
            found[f"link {INFINIBAND}/{name}/device"] = f"../../../{listed if isinstance(listed, str) else same[0]}"
    return found


def _nodes(facts: Mapping[str, Json]) -> dict[str, Json]:
    """The NUMA nodes that are online, where nothing lists them one by one."""
    online = facts.get(f"text {NODES}/online")
    numbers = ranges(online.strip()) if isinstance(online, str) and f"names {NODES}" not in facts else None
    if not numbers or sum(map(len, numbers)) > _MOST_NODES:
        return {}
    return {f"names {NODES}": [f"node{node}" for run in numbers for node in run]}


def _domains(facts: Mapping[str, Json]) -> dict[str, Json]:
    """The type of each IOMMU group: that which the kernel gives by default."""
    if DOMAIN not in facts:
        return {}
    groups = {target.rpartition("/")[2] for target in of_functions(facts, "link", "iommu_group").values()}
    return {f"text /sys/kernel/iommu_groups/{group}/type": f"{facts[DOMAIN]}\n" for group in groups}


def _bound(facts: Mapping[str, Json]) -> set[str]:
    """The GPUs that the driver is bound to."""
    kinds, drivers = of_functions(facts, "text", "class"), of_functions(facts, "link", "driver")
    return {bdf for bdf, kind in kinds.items() if kind.startswith("0x03") and drivers.get(bdf, "").endswith("/nvidia")}


def _of_driver(facts: Mapping[str, Json]) -> set[str]:
    """Bus ids of the GPUs that the kernel module lists."""
    return {key[len(_OF_DRIVER) :].partition("/")[0] for key in facts if key.startswith(_OF_DRIVER)}


def _container(facts: Mapping[str, Json]) -> dict[str, Json]:
    """Were these outputs made in a container that has not been given all GPUs?

    The kernel module lists every GPU that it is bound to. NVIDIA's container runtime mounts a directory of its own over
    that list, with the GPUs of the container: https://github.com/canonical/lxd/issues/7840
    """
    listed = _of_driver(facts)
    hidden = _bound(facts) - listed
    return {STATED_CONTAINER: True} if listed and hidden and listed == set(nvml_gpus(facts)) else {}


def _slot(numbers: Mapping[int, Json], bdf: str) -> int:
    """The number of a GPU that did not open: the one that the others leave free at its place, else the next."""
    free = (number for number in range(max(numbers, default=-1)) if number not in numbers)
    fits = [
        slot for slot in free
        if all((number < slot) == (bus_order(str(other)) < bus_order(bdf))
               for number, other in numbers.items() if isinstance(other, str))
    ]  # fmt: skip
    return fits[0] if len(fits) == 1 else max(numbers, default=-1) + 1


def _gpu(bdf: str) -> str:
    return "the GPU" if is_unplaced(bdf) else f"GPU {bdf}"


def _without_handle(facts: Mapping[str, Json]) -> dict[str, Json]:
    """The list of GPUs where nvidia-smi stopped at one that it could not open, or what it said of one of which no
    output tells anything else.

    The driver's directory has every GPU that it holds; nvidia-smi numbers them in the order of their bus ids.
    """
    lost = {key.rpartition(" ")[2]: str(fact) for key, fact in facts.items() if key.startswith(NO_HANDLE)}
    if not lost:
        return {}
    numbers: dict[int, Json] = {**handles(facts)}
    without, attached = numberless(facts), count_of(facts)
    reports = Reports("nvidia-smi")
    for bdf in [bdf for bdf, why in lost.items() if bdf in numbers.values() and not why.startswith(_FOR_GOOD)]:
        text = f"a run cannot open {_gpu(bdf)}, which another lists: {lost.pop(bdf)[:80]}"
        reports.add(bdf, "handle", "fail", Fault.GPU_UNREADABLE, text)
    if not lost:
        return reports.facts()
    everyone = sorted({*map(str, numbers.values()), *without, *lost}, key=bus_order)
    if without and attached == len(everyone) and not any(map(is_unplaced, everyone)):
        numbers, without = {**dict(enumerate(everyone))}, []
    if not any(key.startswith(_OF_PCI) for key in facts):
        for bdf, why in lost.items():
            if why.startswith(_LOST):
                fault = Fault.RESET_REQUIRED if why.startswith(_TO_RESET) else Fault.GPU_LOST
                reports.add(bdf, "handle", "fail", fault, f"cannot open {_gpu(bdf)}: {why[:80]}")
        if reports:
            opened = {number: bdf for number, bdf in numbers.items() if bdf not in lost}
            return reports.facts() | answers(opened, without, attached)
    if not (numbers or without):
        numbers = dict(enumerate(sorted((_of_driver(facts) or _bound(facts)) | set(lost))))
    of_bdf = {str(bdf): number for number, bdf in numbers.items()}
    for bdf, why in lost.items():
        gap: Json = {"missing": "lost" if why.startswith(_LOST) else "garbled",
                     "detail": f"nvidia-smi: no handle for GPU {bdf}: {why[:80]}"}  # fmt: skip
        numbers[of_bdf[bdf] if bdf in of_bdf else _slot(numbers, bdf)] = gap
    return answers(numbers, without, attached)
