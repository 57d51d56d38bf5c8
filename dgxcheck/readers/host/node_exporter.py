"""``/metrics`` of node_exporter: InfiniBand ports and counters, memory errors (EDAC), DMI; all else is not used.

Source: https://github.com/prometheus/node_exporter, collectors infiniband, edac and dmi.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dgxcheck.facts.infiniband import PHYS_STATES, PortState
from dgxcheck.facts.missing import Json
from dgxcheck.facts.sysfs import EDAC
from dgxcheck.readers import formats
from dgxcheck.readers.model import Imported, ToolPart
from dgxcheck.readers.network.files import NAME, device_files, listed, port_files
from dgxcheck.readers.values import numbered
from dgxcheck.readers.wording import rows

TOOL = "node_exporter"
_PREFIX = "node_"
_IDS: Mapping[str, tuple[str, Mapping[int, str]]] = {
    "state_id": ("state", {state.value: state.name for state in PortState}),
    "physical_state_id": ("phys_state", {state.value: name for state, name in PHYS_STATES.items()}),
}
"""File and its words by number, by metric."""
_COUNTERS = {row["collector"]: row["file"] for row in rows("network/counters") if row["collector"]}
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
