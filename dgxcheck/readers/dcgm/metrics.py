"""``/metrics`` of dcgm-exporter: the fields of every GPU as Prometheus text, by host, number, UUID and bus id."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.record import Record
from dgxcheck.readers import prometheus
from dgxcheck.readers.dcgm.device_fields import NAMES, XID, Gpu, report, section, value_of
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi.answers import imported
from dgxcheck.readers.reports import Reports
from dgxcheck.readers.values import bounded
from dgxcheck.readers.values import gpu as number_of

TOOL = "dcgm-exporter"
_PREFIXES = ("DCGM_FI_", "DCGM_EXP_", "dcgm_")
_COUNTED = "DCGM_EXP_XID_ERRORS_COUNT"
_DRIVER = "DCGM_FI_DRIVER_VERSION"


class _Host(Record):
    """The GPUs of one host by number, what is known of it as a whole, and its lines."""

    gpus: dict[int, Gpu]
    system: dict[str, str]
    lines: set[int]


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """One output for each host; a metric that comes twice, as for the instances of MIG, counts once."""
    hosts: dict[str, _Host] = {}
    comments: set[int] = set()
    for number, line in enumerate(bounded(lines)):
        text = line.strip()
        if prometheus.commented(text).startswith(_PREFIXES):
            comments.add(number)
        elif (found := prometheus.sample(text)) and found.labels and found.name.startswith(_PREFIXES):
            host = hosts.setdefault(found.labels.get("Hostname", ""), _Host(gpus={}, system={}, lines=set()))
            host.lines.add(number)
            _take(host, found.name, found.labels, found.value)
    outputs = []
    for name, host in hosts.items():
        reports = Reports(TOOL)
        for gpu in host.gpus.values():
            report(reports, gpu)
        output = imported(TOOL, [section(gpu) for gpu in host.gpus.values()], host.system, frozenset())
        understood = frozenset(host.lines | comments)
        facts = {**output.facts, **reports.facts()}
        outputs.append(Imported(tool=output.tool, facts=facts, understood=understood, host=name.partition(".")[0]))
    return tuple(outputs)


def _take(host: _Host, metric: str, labels: Mapping[str, str], text: str) -> None:
    """One sample; one of no GPU, as of a switch or a CPU, is not used."""
    index, value = number_of(labels.get("gpu", "")), value_of(text)
    if version := labels.get(_DRIVER):
        host.system.setdefault("driver version", version)
    if index is None or value is None:
        return
    model, uuid = labels.get("modelName", ""), labels.get("UUID", labels.get("uuid", ""))
    new = Gpu(index=index, bdf=labels.get("pci_bus_id"), values={}, model=model, uuid=uuid)
    gpu = host.gpus.setdefault(index, new)
    if metric == _COUNTED:
        last = value_of(labels.get("xid", ""))
        if value and last is not None:
            gpu.values.setdefault(XID, last)
        return
    name = metric.lower().removeprefix("dcgm_fi_dev_").removeprefix("dcgm_")
    if (path := NAMES.get(name)) is not None:
        gpu.values.setdefault(path, value)
