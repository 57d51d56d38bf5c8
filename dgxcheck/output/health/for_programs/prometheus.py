"""All metrics of one run of ``dgxcheck health``, for Prometheus and as OpenMetrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dgxcheck import __version__
from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import BAD, Finding
from dgxcheck.checks.engine.run import counts
from dgxcheck.diagnosis.action import first_remedy
from dgxcheck.diagnosis.model import Diagnosis
from dgxcheck.facts.infiniband import RECEIVER, IbDevicePorts, blaming
from dgxcheck.facts.missing import Missing, rows, text_of
from dgxcheck.facts.nvml.nvlink import NvLinkErrors
from dgxcheck.facts.nvml.quantities import LINK_ERRORS
from dgxcheck.facts.pci import AerDevice
from dgxcheck.facts.typical import gathered
from dgxcheck.output import exposition
from dgxcheck.output.exposition import (
    STATES,
    Family,
    Reading,
    Series,
    bus_id,
    classic,
    gpu_labels,
    metric,
    now,
    subject_labels,
)
from dgxcheck.output.health import overview
from dgxcheck.output.health.finding_lines import component_name
from dgxcheck.output.health.for_programs.metrics import measurements
from dgxcheck.output.report import HealthReport

_Gpus = Mapping[str, Mapping[str, str]]


def render(report: HealthReport) -> str:
    """All metrics of one run in the classic format."""
    return classic(families(report))


def families(report: HealthReport) -> list[Family]:
    """Verdicts, causes and a few figures of each device; ``every_metric``: also every check that passed or was
    skipped, and all error counters, which for a DGX A100 are 1,900 series more.
    """
    assessment = report.assessment
    judged = [finding for finding in assessment.findings if report.every_metric or finding.status in BAD]
    gpus = labels_of_gpus(assessment)
    by_status = [({"status": status.value}, count) for status, count in counts(assessment.findings).items()]
    return [
        metric("up", [({}, 1)]),
        metric("build_info", [({"version": __version__}, 1)]),
        metric("gpu_info", _gpus(assessment, gpus)),
        now("run_timestamp_seconds"),
        metric("run_duration_seconds", [({}, round(assessment.seconds, 3))]),
        metric("verdict", [({}, STATES[assessment.verdict.value])]),
        *_score(assessment),
        metric("findings", by_status),
        metric("check_status", ((_of_check(finding, gpus), STATES[finding.status.value]) for finding in judged)),
        metric("device_verdict", _devices(assessment)),
        metric("check_acknowledged",
               ((_of_check(finding, gpus), 1) for finding in assessment.findings if finding.acknowledged)),
        *_causes(assessment.diagnosis),
        *_states(assessment, gpus),
        *_measured(assessment.findings, gpus),
        *(each for each in error_counters(assessment, gpus) if report.every_metric or each.name in _CORE),
    ]  # fmt: skip


def labels_of_gpus(assessment: Assessment) -> _Gpus:
    """By name, and by bus id."""
    return {name: gpu_labels(gpu) for gpu in assessment.topology.gpus for name in (gpu.name, gpu.bdf or gpu.name)}


_CORE = ("gpu_pcie_replays_total", "gpu_ecc_volatile_corrected_errors_total")
"""Error counters with one series for each GPU."""


def _devices(assessment: Assessment) -> Iterator[Series]:
    for device, status in overview.verdicts(assessment):
        gpu = device.kind == "gpu"
        yield {**gpu_labels(device), "device": "" if gpu and device.index is not None else device.name}, STATES[status]


def _gpus(assessment: Assessment, gpus: _Gpus) -> Iterator[Series]:
    """Those that NVML lists. No serial numbers: metrics are usually readable for the whole network."""
    facts = assessment.snapshot
    for gpu in facts.listed_gpus:
        more = {"model": gpu.name, "driver_version": facts.driver_version, "vbios": gpu.vbios}
        yield {**gpus.get(gpu.bdf, {}), **{key: text_of(value) for key, value in more.items()}}, 1


def _score(assessment: Assessment) -> list[Family]:
    """Without a reference there is neither."""
    score = assessment.score
    if score is None:
        return []
    labels = {"profile": assessment.choice.profile.name if assessment.choice else "", "level": assessment.level}
    total = [] if score.total is None else [(labels, score.total)]
    return [
        metric("score", total),
        metric("coverage", [(labels, score.coverage)]),
    ]


def _of_check(finding: Finding, gpus: _Gpus) -> dict[str, str]:
    return {"check": finding.id, **subject_labels(finding, gpus)}


def _causes(found: Diagnosis) -> list[Family]:
    """What is to blame and what to do first; the two counts are there on a healthy box too."""
    named = [
        ({"kind": cause.component.kind, "component": component_name(cause.component),
          "pci_bus_id": bus_id(cause.component.bdf), "action": first_remedy(cause.actions).step},
         STATES[cause.severity.value])
        for cause in found.causes
    ]  # fmt: skip
    return [
        metric("causes", [({}, len(found.causes))]),
        metric("unexplained_findings", [({}, len(found.unexplained))]),
        metric("cause_severity", named),
    ]


def _measured(findings: Iterable[Finding], gpus: _Gpus) -> list[Family]:
    """What was measured, a metric per quantity; a finding that measured nothing has no sample there."""
    found = gathered(
        (quantity.metric, (subject_labels(finding, gpus), value if quantity.scale == 1 else value * quantity.scale))
        for quantity, finding, value in measurements(findings) if quantity.metric not in _STATES
    )  # fmt: skip
    return [metric(name, samples) for name, samples in found.items()]


def _states(assessment: Assessment, gpus: _Gpus) -> list[Family]:
    """Temperatures and memory that was set aside, as they were read: whichever check judged them, and by what."""
    facts = assessment.snapshot
    thermal = [(gpus[row.bdf], row) for row in rows(facts.gpu_thermal) if row.bdf in gpus]
    memory = [(gpus[row.bdf], row) for row in rows(facts.gpu_ecc) if row.bdf in gpus]
    remapped = (
        ({**labels, "kind": kind}, number)
        for labels, row in memory
        for kind, number in (("corrected", row.remapped_corrected), ("uncorrected", row.remapped_uncorrected))
    )
    pages = ((labels, [row.retired_single_bit, row.retired_double_bit]) for labels, row in memory)
    retired = ((labels, sum(len(each) for each in both if not isinstance(each, Missing)))
               for labels, both in pages if not all(isinstance(each, Missing) for each in both))  # fmt: skip
    return [
        metric("gpu_temperature_celsius", ((labels, row.gpu_c) for labels, row in thermal)),
        metric("gpu_temperature_margin_celsius", ((labels, row.margin_c) for labels, row in thermal)),
        metric("gpu_retired_pages", retired),
        metric("gpu_remapped_rows", remapped),
    ]  # fmt: skip


_STATES = ("gpu_temperature_celsius", "gpu_retired_pages")
"""Of these performance data have what the check measured."""


_KINDS = ("correctable", "nonfatal", "fatal")


def error_counters(assessment: Assessment, gpus: _Gpus) -> list[Family]:
    """PCIe (AER and replays), NVLink, memory, ports of HCAs; each family is there without a series too."""
    facts = assessment.snapshot
    replays = ((gpus[row.bdf], row.pcie_replays) for row in rows(facts.gpu_counters) if row.bdf in gpus)
    corrected = ((gpus[row.bdf], row.volatile_corrected.total) for row in rows(facts.gpu_ecc) if row.bdf in gpus)
    return [
        metric("pcie_aer_errors_total", _aer(rows(facts.aer), gpus)),
        metric("pcie_aer_messages_total", _messages(rows(facts.aer))),
        metric("gpu_pcie_replays_total", replays),
        metric("gpu_ecc_volatile_corrected_errors_total", corrected),
        metric("nvlink_errors_total", _nvlinks(rows(facts.nvlink_errors), gpus)),
        metric("port_errors_total", _ports(rows(facts.ib_ports))),
    ]  # fmt: skip


def _aer(listed: Iterable[AerDevice], gpus: _Gpus) -> Iterator[Reading]:
    for row in listed:
        labels = gpus.get(row.bdf) or {"gpu": "", "UUID": "", "pci_bus_id": bus_id(row.bdf)}
        for kind, errors in zip(_KINDS, (row.correctable, row.nonfatal, row.fatal), strict=True):
            yield {**labels, "kind": kind}, errors if isinstance(errors, Missing) else errors.total


def _messages(listed: Iterable[AerDevice]) -> Iterator[Reading]:
    for row in listed:
        if port := row.root_port:
            for kind, number in zip(_KINDS, (port.correctable, port.nonfatal, port.fatal), strict=True):
                yield {"pci_bus_id": bus_id(row.bdf), "kind": kind}, number


def _nvlinks(listed: Iterable[NvLinkErrors], gpus: _Gpus) -> Iterator[Reading]:
    for row in listed:
        counts = (row.replay, row.recovery, row.crc_flit, row.crc_data, row.ecc_data)
        for name, number in zip(LINK_ERRORS, counts, strict=True):
            if row.bdf in gpus:
                yield {**gpus[row.bdf], "nvlink": str(row.link), "counter": name}, number


def _ports(listed: Iterable[IbDevicePorts]) -> Iterator[Reading]:
    for device in listed:
        for port in rows(device.ports):
            labels = {"device": device.device, "port": str(port.port)}
            for names, counters in ((blaming("cable"), port.counters), (blaming("path", RECEIVER), port.hw_counters)):
                readings = {} if isinstance(counters, Missing) else counters
                yield from (({**labels, "counter": name}, readings[name]) for name in names if name in readings)


def openmetrics(report: HealthReport) -> str:
    """All metrics of one run, ended by ``# EOF``."""
    return exposition.openmetrics(families(report))
