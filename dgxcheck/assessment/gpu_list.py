"""Every GPU of a machine by all its names, and which device a user means by one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dgxcheck.assessment.machine import topology_of
from dgxcheck.facts.bdf import as_bdf, shown
from dgxcheck.facts.missing import BadInput, Gap, Missing
from dgxcheck.facts.record import Record
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.survey import Snapshot, survey
from dgxcheck.topology.model import Device, Topology, slot_of

NO_BUS_ID = Missing(Gap.UNRECORDED, "nvidia-smi", "the text has no bus id")


class ListedGpu(Record):
    """One GPU; ``index`` None for one that NVML does not list, Missing where a text does not prove it."""

    index: int | Missing | None
    bdf: str | Missing
    name: str | Missing
    uuid: str | Missing
    serial: str | Missing
    slot: str | Missing
    vbios: str | Missing


class GpuList(Record):
    """All GPUs, those that only the PCI tree shows last."""

    origin: Origin
    topology: Topology
    rows: tuple[ListedGpu, ...]
    gaps: tuple[Missing, ...]
    """What a GPU that NVML lists should say and does not."""

    @property
    def complete(self) -> bool:
        """Does NVML list every GPU, and is all known of it?"""
        return not self.gaps and not self.topology.gaps and all(isinstance(row.index, int) for row in self.rows)


def gpu_list(source: Source) -> GpuList:
    """The GPUs of a source."""
    facts = survey(source, ("pci", "gpu", "slots", "pci_names"))
    topology = topology_of(facts)
    rows = [_row(device, facts) for device in topology.gpus]
    return GpuList(origin=source.origin, topology=topology, rows=tuple(rows), gaps=tuple(_gaps(rows)))


def _row(device: Device, facts: Snapshot) -> ListedGpu:
    gpu = next((gpu for gpu in facts.listed_gpus if gpu.bdf == device.bdf), None)
    gap = device.uuid if isinstance(device.uuid, Missing) else Missing(Gap.ABSENT, "nvmlDeviceGetHandleByIndex")
    name = _pci_name(device, facts) if gpu is None else gpu.name
    uuid, serial, vbios = (gap, gap, gap) if gpu is None else (gpu.uuid, gpu.serial, gpu.vbios)
    return ListedGpu(index=device.index, bdf=shown(device.bdf) or NO_BUS_ID, name=name, uuid=uuid, serial=serial,
                     slot=slot_of(device, facts.slots), vbios=vbios)


def _pci_name(device: Device, facts: Snapshot) -> str | Missing:
    """What pci.ids calls a GPU that NVML does not name."""
    function = device.function
    if function is None or not function.ids:
        return function.device if function and isinstance(function.device, Missing) else Missing(Gap.ABSENT, "pci.ids")
    return facts.pci_names if isinstance(facts.pci_names, Missing) else facts.pci_names[function.ids]


def _gaps(rows: Sequence[ListedGpu]) -> list[Missing]:
    """Of GPUs that NVML lists; what a board or chassis does not have is no gap."""
    listed = (row for row in rows if row.index is not None)
    values = (value for row in listed for value in (row.name, row.uuid, row.serial, row.slot, row.vbios))
    return [value for value in values if isinstance(value, Missing) and value.gap not in (Gap.ABSENT, Gap.UNSUPPORTED)]


def gpus(topology: Topology, ids: str) -> list[Device]:
    """The GPUs of a comma-separated list; BadInput for an id that no GPU has."""
    return [_one(topology, topology.gpus, word.strip(), "GPU") for word in ids.split(",")]


def devices(topology: Topology, ids: Iterable[str]) -> list[Device]:
    """GPUs and NICs, the latter also as ``NICn``; BadInput for an id that no device has."""
    return [_one(topology, topology.devices, word.strip(), "device") for word in ids]


def _one(topology: Topology, devices: Sequence[Device], word: str, kind: str) -> Device:
    wanted = as_bdf(word, short=True)
    index = f"GPU{int(word)}" if word.isdecimal() and len(word) < 10 else None
    for found in devices:
        names = (found.name.lower(), found.uuid.lower() if isinstance(found.uuid, str) else None)
        if word.lower() in names or found.name == index or (wanted is not None and found.bdf == wanted):
            return found
    nics = [device for device in topology.devices if device.kind != "gpu"]
    for number, nic in enumerate(nics):
        if word.lower() == f"nic{number}" and nic in devices:
            return nic
    closed = [gap for gap in topology.gaps if gap.where.startswith("nvmlDeviceGetHandleByIndex ")]
    unlisted = [found for found in devices if found.kind == "gpu" and found.index is None]
    for lost in closed:
        if word.isdecimal() and lost.where == f"nvmlDeviceGetHandleByIndex {int(word[:9])}":
            if len(unlisted) == len(closed) == 1:
                return unlisted[0]
            raise BadInput(f"GPU {word} cannot be accessed: {lost}; 'dgxcheck topo' shows what is known about it")
    choices = ", ".join(f"{found.name} ({found.bdf})" if found.bdf else found.name for found in devices)
    hint = f"give the index, name, bus id or UUID of one of {choices}" if choices else f"the machine has no {kind}s"
    raise BadInput(f"no {kind} {word!r}; {hint}")
