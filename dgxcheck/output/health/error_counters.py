"""Error counters as metrics, for rates over time; a counter that was not read has no series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.network import transport_errors
from dgxcheck.checks.network.port_errors import DOWNED, OF_THE_LINK
from dgxcheck.facts.gpu import GpuCounters, GpuEcc
from dgxcheck.facts.infiniband import IbDevicePorts
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nvlink import NvLinkErrors
from dgxcheck.facts.nvml_quantities import LINK_ERRORS
from dgxcheck.facts.pci import AerDevice
from dgxcheck.output.exposition import Family, Sample, metric
from dgxcheck.output.health.labels import bus_id, gpu_labels

R = TypeVar("R")
_Gpus = Mapping[str, Mapping[str, str]]
_KINDS = ("correctable", "nonfatal", "fatal")
_PORT_COUNTERS = (DOWNED, *OF_THE_LINK)


def error_counters(assessment: Assessment) -> list[Family]:
    """PCIe (AER and replays), NVLink, memory, ports of HCAs; each family is there without a series too."""
    facts = assessment.snapshot
    gpus = {gpu.bdf: gpu_labels(gpu) for gpu in assessment.topology.gpus if gpu.bdf is not None}
    return [
        metric("pcie_aer_errors_total", "PCIe errors that a device or bridge counts, since boot.",
               _aer(_rows(facts.aer), gpus)),
        metric("pcie_aer_messages_total", "PCIe error messages that a root port received, since boot.",
               _messages(_rows(facts.aer))),
        metric("gpu_pcie_replays_total", "PCIe packets that were sent again, since the driver was loaded.",
               _replays(_rows(facts.gpu_counters), gpus)),
        metric("gpu_ecc_volatile_corrected_errors_total", "Corrected memory errors since the driver was loaded.",
               _corrected(_rows(facts.gpu_ecc), gpus)),
        metric("nvlink_errors_total", "Errors that a GPU counts at an NVLink, since the driver was loaded.",
               _nvlinks(_rows(facts.nvlink_errors), gpus)),
        metric("port_errors_total", "Errors that a port of an HCA counts, since the driver was loaded.",
               _ports(_rows(facts.ib_ports))),
    ]  # fmt: skip


def _rows(rows: tuple[R, ...] | Missing) -> tuple[R, ...]:
    return () if isinstance(rows, Missing) else rows


def _aer(rows: Iterable[AerDevice], gpus: _Gpus) -> Iterator[Sample]:
    for row in rows:
        labels = gpus.get(row.bdf) or {"gpu": "", "UUID": "", "pci_bus_id": bus_id(row.bdf)}
        for kind, errors in zip(_KINDS, (row.correctable, row.nonfatal, row.fatal), strict=True):
            if not isinstance(errors, Missing) and not isinstance(errors.total, Missing):
                yield {**labels, "kind": kind}, errors.total


def _messages(rows: Iterable[AerDevice]) -> Iterator[Sample]:
    for row in rows:
        if row.root_port is not None:
            counts = (row.root_port.correctable, row.root_port.nonfatal, row.root_port.fatal)
            for kind, number in zip(_KINDS, counts, strict=True):
                if not isinstance(number, Missing):
                    yield {"pci_bus_id": bus_id(row.bdf), "kind": kind}, number


def _replays(rows: Iterable[GpuCounters], gpus: _Gpus) -> Iterator[Sample]:
    for row in rows:
        if row.bdf in gpus and not isinstance(row.pcie_replays, Missing):
            yield gpus[row.bdf], row.pcie_replays


def _corrected(rows: Iterable[GpuEcc], gpus: _Gpus) -> Iterator[Sample]:
    for row in rows:
        counts = row.volatile_corrected
        if row.bdf in gpus and not isinstance(counts, Missing) and not isinstance(counts.total, Missing):
            yield gpus[row.bdf], counts.total


def _nvlinks(rows: Iterable[NvLinkErrors], gpus: _Gpus) -> Iterator[Sample]:
    for row in rows:
        counts = (row.replay, row.recovery, row.crc_flit, row.crc_data, row.ecc_data)
        for name, number in zip(LINK_ERRORS, counts, strict=True):
            if row.bdf in gpus and not isinstance(number, Missing):
                yield {**gpus[row.bdf], "nvlink": str(row.link), "counter": name}, number


def _ports(rows: Iterable[IbDevicePorts]) -> Iterator[Sample]:
    for device in rows:
        for port in _rows(device.ports):
            labels = {"device": device.device, "port": str(port.port)}
            for names, counters in ((_PORT_COUNTERS, port.counters), (transport_errors.COUNTERS, port.hw_counters)):
                known = {} if isinstance(counters, Missing) else counters
                for name in names:
                    if (number := known.get(name)) is not None and not isinstance(number, Missing):
                        yield {**labels, "counter": name}, number
