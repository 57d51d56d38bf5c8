"""DCGM's fields of a GPU: ``dcgmi dmon`` and the metrics of dcgm-exporter, under the names of all releases.

DCGM's fields of a GPU, under the names of all its releases, as fields of ``nvidia-smi -q`` and as reports.

Sources: dcgm_fields.cpp and dcgm_fields.h of DCGM 1.7 to 4.6 (https://github.com/NVIDIA/DCGM), the metrics of
dcgm-exporter 1 (https://github.com/NVIDIA/gpu-monitoring-tools).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.record import Record
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers import formats
from dgxcheck.readers.dcgm.messages import architecture, of_xid
from dgxcheck.readers.model import Imported, Reports
from dgxcheck.readers.nvidia_smi.answers import NOWHERE, GpuDump, imported
from dgxcheck.readers.nvidia_smi.fields import RECOVERY_ACTIONS
from dgxcheck.readers.values import gpu as number_of
from dgxcheck.readers.values import numbered
from dgxcheck.readers.wording import rows
from dgxcheck.xid.table import meaning

XID = "xid"
"""Path of the last Xid; it is no field of a dump."""
RECOVERY = "gpu recovery action"
_C2C = "c2c link status"
"""1 is active: https://github.com/NVIDIA/dcgm-exporter/issues/581."""
_NVLINK = "nvlink "
"""Begins the path of a sum of error counters over all NVLinks of a GPU."""
_MASK = "clocks event reasons mask"
_PAGES, _ROWS = "retired pages/", "remapped rows/"
_TABLE = (*rows("dcgm/fields"),)
TAGS: Mapping[str, str] = {row["tag"]: row["path"] for row in _TABLE if row["tag"]}
"""Path by the short name above a column of ``dcgmi dmon``."""
_FAILED = f"{_NVLINK}failed link recoveries"
NAMES: Mapping[str, str] = {name: row["path"] for row in _TABLE for name in row["names"].split()}
"""Path by the name of a metric, in small letters and without ``DCGM_FI_DEV_``, ``dcgm_`` or ``nvidia_smi_``."""
_OF_TOTALS: Mapping[str, tuple[Outcome, FaultKind | None]] = {_FAILED: ("warn", Fault.NVLINK_ERRORS)}
"""Of errors that no healthy link has."""
_BLANK = 2_147_483_632.0
"""DCGM_INT32_BLANK: values from here on stand for none, or for the reason why there is none."""
_WORDS = {"persistence mode": ("Disabled", "Enabled"), f"{_ROWS}pending": ("No", "Yes"),
          f"{_PAGES}pending": ("No", "Yes"), f"{_ROWS}remapping failure occurred": ("No", "Yes")}  # fmt: skip
_RECOVERY_WORDS = {code: words for words, code in RECOVERY_ACTIONS.items()}


class Gpu(Record):
    """DCGM's values of one GPU as numbers, by path."""

    index: int | None
    bdf: str | None
    values: dict[str, float]
    model: str = ""
    uuid: str = ""

    def take(self, path: str | None, text: str) -> None:
        """A value of a known path; of several the first counts."""
        if path is not None and (value := value_of(text)) is not None:
            self.values.setdefault(path, value)


def value_of(text: str) -> float | None:
    """A value that is one; None for ``N/A``, ``NaN``, a negative one, and what DCGM calls blank."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value < _BLANK else None


def section(gpu: Gpu) -> GpuDump:
    """The GPU as in a dump of nvidia-smi."""
    fields = {path: word for path, value in gpu.values.items() if (word := _word(path, value)) is not None}
    fields |= {name: text for name, text in (("product name", gpu.model), ("gpu uuid", gpu.uuid)) if text}
    return GpuDump(as_bdf(gpu.bdf or "") or NOWHERE, {**fields, "": ""}, gpu.index)


_COHERENT = LazyPattern(r"\bG[HB]\d{2,3}\b")
"""A GPU beside its Grace; others have no C2C link that could be up."""


def report(reports: Reports, gpu: Gpu) -> None:
    """The last Xid, which DCGM keeps until it is restarted, and totals of NVLink errors, which may be old."""
    for path, value in gpu.values.items():
        if path.startswith(_NVLINK) and value:
            text = f"NVLink {path.removeprefix(_NVLINK)} since the last reset: {value:.0f}"
            outcome, fault = _OF_TOTALS.get(path, ("note", None))
            reports.add(f"GPU{gpu.index}", path.replace(" ", "-").lower(), outcome, fault, text)
    if gpu.values.get(_C2C) == 0 and _COHERENT.search(gpu.model):
        reports.add(f"GPU{gpu.index}", "c2c", "warn", Fault.C2C_DOWN, "its C2C link is inactive")
    if number := int(gpu.values.get(XID, 0)):
        outcome, fault = of_xid(number, gpu.model)
        text = f"last Xid: {number} ({meaning(number, architecture(gpu.model)).text})"
        reports.add(f"GPU{gpu.index}", f"xid-{number}", outcome, fault, text)


def _word(path: str, value: float) -> str | None:
    """A value as a dump has it; None for one that a dump does not have."""
    if path in (XID, _C2C) or path.startswith(_NVLINK) or (path.startswith("temperature/memory") and not value):
        return None  # 0 degrees: a GPU without that sensor
    if path in _WORDS:
        return _WORDS[path][bool(value)]
    if path == RECOVERY:
        return _RECOVERY_WORDS.get(int(value))
    if path == _MASK:
        return f"{int(value):#x}"
    return f"{value:.2f}" if path.startswith("power") else f"{value:.0f}"


DMON_TOOL = "dcgmi dmon"
_HEAD = LazyPattern(r"# ?Entity(?P<tags>(?:\s{1,40}[A-Z][A-Z0-9#]{1,14}){1,64})")
_UNITS = LazyPattern(r"I[dD](?:\s{1,40}[\w/%]{1,8}){0,64}")
_ROW = LazyPattern(
    r"(?:(?P<kind>GPU(?:-I|-CI)?|Switch|CPU|Core|Link)[ /]{1,8})?(?P<id>\d{1,4})(?P<cells>(?:\s{1,40}\S{1,30}){1,64})"
)


def read_dmon(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """All tables of a text as one output; of several samples of a GPU the first counts."""
    lines_of, of_table = set[int](), set[int]()
    gpus: dict[int | str, Gpu] = {}
    tags: list[str] = []
    for number, text in numbered(lines):
        if head := _HEAD.fullmatch(text):
            tags, of_table = head["tags"].split(), {number}
        elif not tags or not text:
            continue
        elif (row := _ROW.fullmatch(text)) and len(cells := row["cells"].split()) == len(tags):
            index = number_of(row["id"]) if row["kind"] in (None, "GPU") else None
            if index is not None:
                gpu = gpus.setdefault(index, Gpu(index=index, bdf=None, values={}))
                for tag, cell in zip(tags, cells, strict=True):
                    gpu.take(TAGS.get(tag), cell)
            of_table.add(number)
            lines_of |= of_table
        elif _UNITS.fullmatch(text):
            of_table.add(number)
        else:
            tags = []
    return (_output(DMON_TOOL, _Host(gpus=gpus, system={}, lines=lines_of)),) if lines_of else ()


class _Host(Record):
    """The GPUs of one host by number or UUID, what is known of it as a whole, and its lines."""

    gpus: dict[int | str, Gpu]
    system: dict[str, str]
    lines: set[int]


def _output(tool: str, host: _Host, name: str = "") -> Imported:
    reports = Reports(tool)
    for gpu in host.gpus.values():
        report(reports, gpu)
    sections = [*map(section, host.gpus.values())]
    return imported(tool, sections, host.system, frozenset(host.lines), reports=reports, host=name)


METRICS_TOOL = "dcgm-exporter"
_PREFIXES = ("DCGM_FI_", "DCGM_EXP_", "dcgm_")
_DRIVER = "DCGM_FI_DRIVER_VERSION"


def read_metrics(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """One output for each host; a metric that comes twice, as for the instances of MIG, counts once."""
    hosts: dict[str, _Host] = {}
    comments: set[int] = set()
    for number, text in numbered(lines):
        if formats.commented(text).startswith(_PREFIXES):
            comments.add(number)
        elif (found := formats.sample(text)) and found.labels and found.name.startswith(_PREFIXES):
            host = hosts.setdefault(found.labels.get("Hostname", ""), _Host(gpus={}, system={}, lines=set()))
            host.lines.add(number)
            _metrics_take(host, found.name, found.labels, found.value)
    for host in hosts.values():
        host.lines.update(comments)
    return tuple(_output(METRICS_TOOL, host, name.partition(".")[0]) for name, host in hosts.items())


def _metrics_take(host: _Host, metric: str, labels: Mapping[str, str], text: str) -> None:
    """One sample; one of no GPU, as of a switch or a CPU, is not used."""
    index, value = number_of(labels.get("gpu", "")), value_of(text)
    if version := labels.get(_DRIVER):
        host.system.setdefault("driver version", version)
    if index is None or value is None:
        return
    model, uuid = labels.get("modelName", ""), labels.get("UUID", labels.get("uuid", ""))
    new = Gpu(index=index, bdf=labels.get("pci_bus_id"), values={}, model=model, uuid=uuid)
    gpu = host.gpus.setdefault(index, new)
    if metric == "DCGM_EXP_XID_ERRORS_COUNT":
        gpu.take(XID if value else None, labels.get("xid", ""))
        return
    name = metric.lower().removeprefix("dcgm_fi_dev_").removeprefix("dcgm_")
    gpu.take(NAMES.get(name), text)


_SMI = "nvidia_smi_"


def read_smi_metrics(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The metrics of nvidia_gpu_exporter (https://github.com/utkuozdemir/nvidia_gpu_exporter, docs/METRICS.md): fields
    of ``nvidia-smi --query-gpu`` by UUID, in their own units."""
    host = _Host(gpus={}, system={}, lines=set())
    samples: list[tuple[str, str, str]] = []
    for number, text in numbered(lines):
        if formats.commented(text).startswith(_SMI):
            host.lines.add(number)
        elif (found := formats.sample(text)) and found.name.startswith(_SMI):
            host.lines.add(number)
            uuid, labels = found.labels.get("uuid", ""), found.labels
            if found.name == f"{_SMI}gpu_info":
                index, model = number_of(labels.get("index", "")), labels.get("name", "")
                host.gpus[uuid] = Gpu(index=index, bdf=labels.get("pci_bus_id"), values={}, model=model,
                                      uuid=f"GPU-{uuid}")  # fmt: skip
                host.system.setdefault("driver version", labels.get("driver_version", ""))
            elif uuid:
                samples.append((uuid, found.name.removeprefix(_SMI), found.value))
    for uuid, name, text in samples:
        if name in NAMES and value_of(text) is not None:
            gpu = host.gpus.setdefault(uuid, Gpu(index=None, bdf=None, values={}, uuid=f"GPU-{uuid}"))
            gpu.take(NAMES[name], text)
    if not host.gpus:
        return ()
    return (imported("nvidia_gpu_exporter", [*map(section, host.gpus.values())], host.system, frozenset(host.lines)),)
