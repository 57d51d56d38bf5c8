"""Error counters as metrics, for rates over time; a counter that was not read has no series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.network import transport_errors
from dgxcheck.checks.network.port_errors import DOWNED, OF_THE_LINK
from dgxcheck.facts.gpu import GpuCounters, GpuEcc
from dgxcheck.facts.infiniband import IbDevicePorts
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.nvlink import NvLinkErrors
from dgxcheck.facts.nvml_quantities import LINK_ERRORS
from dgxcheck.facts.pci import AerDevice
from dgxcheck.output.exposition import Family, Sample, metric
from dgxcheck.output.health.labels import bus_id, gpu_labels

_Gpus = Mapping[str, Mapping[str, str]]
_KINDS = ("correctable", "nonfatal", "fatal")
_PORT_COUNTERS = (DOWNED, *OF_THE_LINK)


def error_counters(assessment: Assessment) -> list[Family]:
    """PCIe (AER and replays), NVLink, memory, ports of HCAs; each family is there without a series too."""
    facts = assessment.snapshot
    gpus = {gpu.bdf: gpu_labels(gpu) for gpu in assessment.topology.gpus if gpu.bdf is not None}
    return [
        metric("pcie_aer_errors_total", "PCIe errors that a device or bridge counts, since boot.",
               _aer(rows(facts.aer), gpus)),
        metric("pcie_aer_messages_total", "PCIe error messages that a root port received, since boot.",
               _messages(rows(facts.aer))),
        metric("gpu_pcie_replays_total", "PCIe packets that were sent again, since the driver was loaded.",
               _replays(rows(facts.gpu_counters), gpus)),
        metric("gpu_ecc_volatile_corrected_errors_total", "Corrected memory errors since the driver was loaded.",
               _corrected(rows(facts.gpu_ecc), gpus)),
        metric("nvlink_errors_total", "Errors that a GPU counts at an NVLink, since the driver was loaded.",
               _nvlinks(rows(facts.nvlink_errors), gpus)),
        metric("port_errors_total", "Errors that a port of an HCA counts, since the driver was loaded.",
               _ports(rows(facts.ib_ports))),
    ]  # fmt: skip


def _aer(listed: Iterable[AerDevice], gpus: _Gpus) -> Iterator[Sample]:
    for row in listed:
        labels = gpus.get(row.bdf) or {"gpu": "", "UUID": "", "pci_bus_id": bus_id(row.bdf)}
        for kind, errors in zip(_KINDS, (row.correctable, row.nonfatal, row.fatal), strict=True):
            if not isinstance(errors, Missing) and not isinstance(errors.total, Missing):
                yield {**labels, "kind": kind}, errors.total


def _messages(listed: Iterable[AerDevice]) -> Iterator[Sample]:
    for row in listed:
        if row.root_port is not None:
            counts = (row.root_port.correctable, row.root_port.nonfatal, row.root_port.fatal)
            for kind, number in zip(_KINDS, counts, strict=True):
                if not isinstance(number, Missing):
                    yield {"pci_bus_id": bus_id(row.bdf), "kind": kind}, number


def _replays(listed: Iterable[GpuCounters], gpus: _Gpus) -> Iterator[Sample]:
    for row in listed:
        if row.bdf in gpus and not isinstance(row.pcie_replays, Missing):
            yield gpus[row.bdf], row.pcie_replays


def _corrected(listed: Iterable[GpuEcc], gpus: _Gpus) -> Iterator[Sample]:
    for row in listed:
        counts = row.volatile_corrected
        if row.bdf in gpus and not isinstance(counts, Missing) and not isinstance(counts.total, Missing):
            yield gpus[row.bdf], counts.total


def _nvlinks(listed: Iterable[NvLinkErrors], gpus: _Gpus) -> Iterator[Sample]:
    for row in listed:
        counts = (row.replay, row.recovery, row.crc_flit, row.crc_data, row.ecc_data)
        for name, number in zip(LINK_ERRORS, counts, strict=True):
            if row.bdf in gpus and not isinstance(number, Missing):
                yield {**gpus[row.bdf], "nvlink": str(row.link), "counter": name}, number


def _ports(listed: Iterable[IbDevicePorts]) -> Iterator[Sample]:
    for device in listed:
        for port in rows(device.ports):
            labels = {"device": device.device, "port": str(port.port)}
            for names, counters in ((_PORT_COUNTERS, port.counters), (transport_errors.COUNTERS, port.hw_counters)):
                known = {} if isinstance(counters, Missing) else counters
                for name in names:
                    if (number := known.get(name)) is not None and not isinstance(number, Missing):
                        yield {**labels, "counter": name}, number
