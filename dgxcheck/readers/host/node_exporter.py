"""``/metrics`` of node_exporter, and monitors of GPUs whose screens and metrics are not used.

``/metrics`` of node_exporter: InfiniBand ports and counters, memory errors (EDAC), DMI; all else is not used.

Source: https://github.com/prometheus/node_exporter, collectors infiniband, edac and dmi.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dgxcheck.facts.infiniband import PHYS_STATES, PortState
from dgxcheck.facts.missing import Json
from dgxcheck.facts.sysfs import EDAC
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers import formats
from dgxcheck.readers.model import Form, Imported, ToolPart, recognised
from dgxcheck.readers.network.files import NAME, device_files, listed, port_files
from dgxcheck.readers.values import numbered

TOOL = "node_exporter"
_PREFIX = "node_"
_IDS: Mapping[str, tuple[str, Mapping[int, str]]] = {
    "state_id": ("state", {state.value: state.name for state in PortState}),
    "physical_state_id": ("phys_state", {state.value: name for state, name in PHYS_STATES.items()}),
}
"""File and its words by number, by metric."""
_COUNTERS = {
    "link_downed_total": "link_downed", "link_error_recovery_total": "link_error_recovery",
    "symbol_error_total": "symbol_error", "port_errors_received_total": "port_rcv_errors",
    "port_discards_transmitted_total": "port_xmit_discards", "vl15_dropped_total": "VL15_dropped",
    "local_link_integrity_errors_total": "local_link_integrity_errors",
    "excessive_buffer_overrun_errors_total": "excessive_buffer_overrun_errors",
    "port_receive_remote_physical_errors_total": "port_rcv_remote_physical_errors",
    "port_constraint_errors_received_total": "port_rcv_constraint_errors",
    "port_constraint_errors_transmitted_total": "port_xmit_constraint_errors",
}  # fmt: skip
"""Names of sysfs below ``counters`` by those of the collector, without ``node_infiniband_``."""
_EDAC_FILES = {"node_edac_correctable_errors_total": "ce_count", "node_edac_uncorrectable_errors_total": "ue_count"}
_DMI = ("product_name", "system_vendor", "board_name", "board_vendor", "bios_version")
_DMI_FILES = {"system_vendor": "sys_vendor"}
_MOST = 1e15


def read_node_exporter(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The files of sysfs that the collectors read; numbers are written as the files have them."""
    part = ToolPart(TOOL)
    ports: dict[str, list[int]] = {}
    controllers: set[str] = set()
    for at, text in numbered(lines):
        if formats.commented(text).startswith(_PREFIX):
            part.lines.add(at)
        elif (sample := formats.sample(text)) and sample.name.startswith(_PREFIX):
            part.lines.add(at)
            name, labels, value = sample.name, sample.labels, _whole(sample.value)
            if name.startswith("node_infiniband_"):
                part.found |= _infiniband(name.removeprefix("node_infiniband_"), labels, value, ports)
            elif name in _EDAC_FILES and labels.get("controller", "").isdecimal() and value is not None:
                controllers.add(f"mc{labels['controller']}")
                part.found[f"text {EDAC}/mc{labels['controller']}/{_EDAC_FILES[name]}"] = f"{value}\n"
            elif name == "node_dmi_info":
                part.found |= {f"text /sys/class/dmi/id/{_DMI_FILES.get(key, key)}": f"{labels[key]}\n"
                          for key in _DMI if labels.get(key)}  # fmt: skip
    if controllers:
        part.found[f"names {EDAC}"] = [*sorted(controllers)]
    return part.imported(listed(ports))


def _infiniband(
    metric: str, labels: Mapping[str, str], value: int | None, ports: dict[str, list[int]]
) -> dict[str, Json]:
    """The files of one sample; a counter is of a port, the firmware of a device."""
    device, port = labels.get("device", ""), labels.get("port", "")
    if re.fullmatch(NAME, device, re.ASCII) is None:
        return {}
    if metric == "info":
        ports.setdefault(device, [])
        names = {"fw_ver": labels.get("firmware_version"), "hca_type": labels.get("hca_type"),
                 "board_id": labels.get("board_id")}  # fmt: skip
        return device_files(device, names)
    if value is None or re.fullmatch(r"\d{1,2}", port, re.ASCII) is None:
        return {}
    if int(port) not in (numbers := ports.setdefault(device, [])):
        numbers.append(int(port))
    file, words = _IDS.get(metric, ("", {}))
    if value in words:
        return port_files(device, int(port), {file: f"{value}: {words[value]}"})
    return port_files(device, int(port), {f"counters/{_COUNTERS[metric]}": str(value)}) if metric in _COUNTERS else {}


def _whole(text: str) -> int | None:
    """``2.5e+10`` as a whole number; None for ``NaN``, ``+Inf`` and fractions."""
    if re.fullmatch(r"\d{1,15}(?:\.\d{1,15})?(?:[eE]\+?\d{1,2})?", text, re.ASCII) is None:
        return None
    value = float(text)
    return int(value) if value <= _MOST and value.is_integer() else None


_DUMP = "nvidia-smi -q"
_GPUSTAT = (r"\[\d{1,2}\] .{2,60} \| {1,4}(?:\d{1,3}|\?\?)['°] ?C.{0,40}\| {1,8}[\d?]{1,6} / {1,8}[\d?]{1,6} MB"
            r" \|.{0,300}")  # fmt: skip
_GPUSTAT_HEAD = r"\S{1,64} {2,40}[A-Z][a-z]{2} [A-Z][a-z]{2} .{10,30} {1,4}\d{3}\.[\d.]{2,12}"
_NVTOP = (r"Device \d{1,2} ?\[.{2,60}\] PCIe GEN ?\d@ ?\d{1,2}x.{0,100}"
          r"|GPU {1,4}\d{1,5}MHz MEM {1,4}\d{1,5}MHz TEMP {1,4}\d{1,3}°C.{0,120}")  # fmt: skip
_METRIC = r"(?:nvidia_gpu|nvml)_\w{2,80}(?:\{.{0,2000}\})? \S{1,40}"
_COMMENT = r"# (?:HELP|TYPE) (?:nvidia_gpu|nvml)_\w{2,80} .{1,300}"
_FORMS: Sequence[Form] = (
    Form("modinfo", LazyPattern(r"filename: {1,20}/lib/modules/\S{1,160}\.ko(?:\.\w{2,4})?"),
         LazyPattern(r"[a-z_]{3,20}:(?: {1,20}.{0,400})?|(?:[0-9A-F]{2}:){4,40}.{0,80}"),
         instead="cat /proc/driver/nvidia/version"),
    Form("/proc/driver/nvidia/gpus", LazyPattern(r"GPU UUID:\s{1,12}GPU-[0-9a-f?-]{36}"),
         LazyPattern(r"(?:Model|IRQ|Video BIOS|Bus (?:Type|Location)|DMA (?:Size|Mask)|Device Minor"
                     r"|GPU (?:Excluded|Firmware)|Blacklisted):\s.{1,80}"), instead=_DUMP),
    Form("nvme list",
         LazyPattern(r"Node\s{1,30}(?:Generic\s{1,30})?SN\s{1,30}Model\s{1,60}Namespace\s.{1,160}"),
         LazyPattern(r"-{5,60}[ -]{0,300}|/dev/nvme\S{1,20}\s.{10,300}"), instead="nvme smart-log"),
    Form("nvme error-log", LazyPattern(r"Error Log Entries for device:\w{1,32} entries:\d{1,4}"),
         LazyPattern(r"\.{5,30}|Entry\[ {0,2}\d{1,4}\]|[a-z_]{2,20} {0,12}: .{1,200}"), instead="nvme smart-log"),
    Form("gpustat", LazyPattern(f"{_GPUSTAT}|{_GPUSTAT_HEAD}"), LazyPattern(_GPUSTAT), instead=_DUMP),
    Form("nvitop", LazyPattern(r"[│|] ?NVITOP \d.{1,20}Driver Version: .{1,100}"),
         LazyPattern(r"[│|╞├╒╘+].{3,300}"),
         instead=_DUMP),
    Form("nvtop", LazyPattern(_NVTOP), LazyPattern(_NVTOP), instead=_DUMP),
    Form("deviceQuery", LazyPattern(r'Device \d{1,3}: "[^"]{2,80}"'),
         LazyPattern(r"[A-Z(][\w()/ ,-]{4,70}(?::| {2}).{0,120}|< .{4,120} >"), instead=_DUMP),
    Form("metrics of a GPU exporter", LazyPattern(f"{_METRIC}|{_COMMENT}"),
         LazyPattern(f"{_METRIC}|{_COMMENT}"),
         instead=_DUMP),
)  # fmt: skip


def read_known(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Which lines are theirs, without facts."""
    return recognised(lines, _FORMS)
