"""One rare answer among those of a sound machine, of one kind of device after the other: what it comes to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sample import BY_NAME

from dgxcheck.assessment import Request, assess
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json

PCI, HCA = "/sys/bus/pci/devices", "/sys/class/infiniband"
NVML = "nvml nvmlDeviceGet"
COUNTERS = f"{HCA}/mlx5_1/ports/1/counters"
SHUT: Json = {"missing": "denied"}
GARBLED: Json = {"missing": "garbled", "detail": "NVML 999: unknown error", "code": 999}
UNSUPPORTED: Json = {"missing": "unsupported", "detail": "NVML 3: not supported", "code": 3}
IMEX: dict[str, Json] = {"+names /sys/fs/cgroup/system.slice/nvidia-imex.service": ["cgroup.procs"]}
KVM: dict[str, Json] = {
    f"{NVML}MemoryInfo 0000:1b:00.0": {"total": 85520809984, "used": 42949672960, "free": 42571137024},
    "names /sys/module": ["kvm_intel", "nvidia"], "+text /sys/module/kvm_intel/refcnt": "2\n",
    "+text /sys/module/kvm_intel/initstate": "live\n",
}  # fmt: skip
UNITS: dict[str, Json] = {"names /sys/fs/cgroup/system.slice/systemd-journald.service": ["cgroup.procs"]}
LOCKED: dict[str, Json] = {
    f"{NVML}UtilizationRates 0000:06:00.0": GARBLED, f"{NVML}CurrentClocksEventReasons 0000:06:00.0": 2,
    f"{NVML}ClockInfo 0000:06:00.0 0": 500, f"{NVML}PerformanceState 0000:06:00.0": 0,
}  # fmt: skip
POLLING: dict[str, Json] = {
    f"text {HCA}/mlx5_0/ports/1/state": "1: DOWN\n", f"text {HCA}/mlx5_0/ports/1/phys_state": "2: Polling\n",
}  # fmt: skip
HCA_GONE: dict[str, Json] = {
    f"names {HCA}": ["mlx5_1", "mlx5_2", "mlx5_3"], f"text {PCI}/0000:05:00.0/class": "0x020000\n",
}  # fmt: skip


def found(
    folder: Path, base: str, check: str, facts: dict[str, Json], log: tuple[str, ...] = (),
    later: dict[str, Json] | None = None,
) -> dict[str, Finding]:  # fmt: skip
    """What a check finds, by bus id or name; ``+`` before a fact that the machine does not have."""
    new: dict[str, Json] = {name[1:]: fact for name, fact in facts.items() if name.startswith("+")}
    new |= {f"kmsg {place}": f"{3600 + place / 100:.6f};{line}" for place, line in enumerate(log, 40)}
    facts = {name: fact for name, fact in facts.items() if not name.startswith("+")}
    path = folder / f"{base}-changed.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": base, "facts": facts, "add": new,
                                **({"later": [{"at_s": 60, "facts": later}]} if later else {})}))  # fmt: skip
    findings = assess(str(path), Request(only=(check,))).findings
    return {each.subject.bdf or each.subject.name: each for each in findings if each.id == check}


@pytest.mark.parametrize(("base", "check", "facts", "log", "at", "status", "words"), [
    ("dgx-h100", "consistency.readings",
     {f"{NVML}RowRemapperHistogram 0000:43:00.0": {"high": 0, "low": 0, "max": 0, "none": 0, "partial": 0}}, (),
     "0000:43:00.0", "unknown", "the row remapper counts no memory bank"),
    ("dgx-1-v100", "consistency.identity", {f"{NVML}NvLinkRemoteDeviceType 0000:06:00.0 0": 2}, (),
     "0000:06:00.0", "warn", "NVLink 0 leads to 0000:07:00.0, of type 0, and calls it 2"),
    ("dgx-h100", "consistency.identity", {f"{NVML}NvLinkRemoteDeviceType 0000:1b:00.0 0": 0}, (),
     "0000:1b:00.0", "warn", "NVLink 0 leads to 0000:05:00.0, of type 2, and calls it 0"),
    ("gb200-nvl72", "driver.imex", UNITS, (), "host", "skip not-configured", "nvidia-imex is not enabled"),
    ("gb200-nvl72-imex-down", "driver.imex", {"text /etc/nvidia-imex/nodes_config.cfg": SHUT}, (), "host", "warn",
     "does not run, its list is not readable"),
    ("gb200-nvl72-imex-down", "driver.imex", IMEX, (), "host", "pass", "nvidia-imex runs, its list has 18 nodes"),
    ("gb200-nvl72", "driver.imex", {**UNITS, **IMEX, "+text /etc/nvidia-imex/nodes_config.cfg": "a\nb\n"}, (), "host",
     "pass", "nvidia-imex runs, its list has 2 nodes"),
    ("gh200", "driver.responsive", {f"{NVML}MinorNumber 0009:01:00.0": {"missing": "timeout"}}, (), "host", "fail",
     "no response to 1 driver query"),
    ("dgx-h100", "gpu.lost", {f"link {PCI}/0000:df:00.0/driver": {"missing": "unrecorded"}, f"{NVML}Count": 7}, (),
     "0000:df:00.0", "skip not-recorded", "/sys/bus/pci/devices/0000:df:00.0/driver"),
    ("dgx-h100", "gpu.memory-held", KVM, (), "0000:1b:00.0", "skip not-visible", "virtual machines hold it"),
    ("dgx-1-v100", "network.port-state", {**POLLING, f"text {HCA}/mlx5_0/ports/1/link_layer": SHUT}, (), "0000:05:00.0",
     "warn", "port is DOWN (polling)"),
    ("dgx-1-v100", "gpu.count", {f"{NVML}Count": GARBLED}, (), "host", "pass", "8 of 8 GPUs"),
    ("dgx-h100", "gpu.lost", {f"{NVML}Count": 7, "text /proc/driver/nvidia/params": SHUT}, (), "0000:df:00.0",
     "fail", "NVML does not list it; bound to nvidia"),
    ("dgx-1-v100", "clock.application", LOCKED, (), "0000:06:00.0", "unknown", "UtilizationRates 0000:06:00.0"),
    ("dgx-h100", "gpu.lost", {f"link {PCI}/0000:df:00.0/driver": SHUT, f"{NVML}Count": 7}, (), "0000:df:00.0",
     "unknown", "NVML does not list it; whether it is bound to nvidia is unknown: /sys/bus/pci/devices/0000:df:00.0"),
    ("dgx-1-v100", "gdr.iommu", {"names /sys/class/iommu": SHUT}, (), "host", "skip no-permission", "/sys/class/iommu"),
    ("dgx-h100", "gdr.peer-memory", {"text /proc/sys/kernel/osrelease": "mainline\n"}, (), "host", "pass", ""),
    ("dgx-h100", "host.disks", {"text /sys/class/block/md1/md/raid_disks": SHUT}, (), "md1", "pass",
     "nvme9n1 is clean"),
    ("dgx-h100", "kernel.off-bus", {}, ("NVRM: GPU at PCI:0000:18:00: GPU has fallen off the bus",), "0000:18:00.0",
     "", ""),
    ("dgx-h100", "network.port-state", POLLING,
     ("mlx5_core 0000:18:00.0: Port module event: module 0, Cable unplugged",), "0000:18:00.0",
     "warn", "port is DOWN (polling): no cable or transceiver is plugged in"),
    ("dgx-1-v100", "network.hca-count", HCA_GONE,
     ("mlx5_core 0000:05:00.0: probe_one:1510:(pid 1): mlx5_init_one failed with error code -110",), "host",
     "pass", "3 of 4 HCAs found (mlx5_1, mlx5_2, mlx5_3); 0000:05:00.0 did not start (kernel.hca)"),
    ("dgx-1-v100", "network.port-errors", {f"names {COUNTERS}": SHUT}, (), "0000:0c:00.0", "skip no-permission",
     COUNTERS),
    ("dgx-h100", "network.hca-model", {f"text {HCA}/mlx5_0/hca_type": SHUT}, (), "host", "pass",
     "ConnectX-7 (MT4129), an unknown model behind the switches of 8 GPUs"),
    ("dgx-1-v100", "pcie.aer", {f"text {PCI}/0000:06:00.0/aer_dev_correctable": {"missing": "absent"}}, (),
     "0000:06:00.0", "pass", "no new PCIe errors within 60 s"),
])  # fmt: skip
def test_a_rare_answer(
    base: str, check: str, facts: dict[str, Json], log: tuple[str, ...], at: str, status: str, words: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    own = found(tmp_path, base, check, facts, log).get(at)
    judged = "" if own is None else f"{own.status.value} {own.judgement.reason or ''}".strip()
    assert judged == status, own
    assert own is None or words in own.judgement.message


@pytest.mark.parametrize(("now", "later", "words"), [
    ({f"names {COUNTERS}": SHUT}, {COUNTERS: {"names": ["symbol_error"], "text": {"symbol_error": "5\n"}}},
     "its counters were not read before"),
    ({}, {COUNTERS: {"names": SHUT}}, f"{COUNTERS}: not permitted"),
])  # fmt: skip
def test_counters_of_a_port_that_one_reading_lacks(
    now: dict[str, Json], later: dict[str, Json], words: str, tmp_path: Path
) -> None:
    own = found(tmp_path, "dgx-1-v100", "network.port-errors", now, later=later)["0000:0c:00.0"].judgement
    assert (own.status.value, own.message) == ("skip", words)


@pytest.mark.parametrize(("odd", "remedy"), [
    ("Ethernet", "mlxconfig -d 0000:0c:00.0 set LINK_TYPE_P1=1"), ("InfiniBand", ""),
])  # fmt: skip
def test_a_link_layer_that_no_setting_gives_has_no_command(odd: str, remedy: str, tmp_path: Path) -> None:
    others = "InfiniBand" if odd == "Ethernet" else "OmniPath"
    facts: dict[str, Json] = {f"text {HCA}/mlx5_{number}/ports/1/link_layer": f"{odd if number == 1 else others}\n"
                              for number in range(4)}  # fmt: skip
    own = found(tmp_path, "dgx-1-v100", "network.link-layer", facts)["0000:0c:00.0"].judgement
    assert own.message == f"link layer {odd}, others {others}; HCAs of its kind"
    assert remedy in own.remedy
    assert bool(own.remedy) is bool(remedy)


@pytest.mark.parametrize(("gap", "remedy"), [
    ("unrecorded", "check ACS of the ports between them (lspci -vvv, ACSCtl); then remove from /etc/modprobe.d"),
    ("denied", "to check ACS run dgxcheck as root"),
])  # fmt: skip
def test_what_blocks_p2p_where_acs_cannot_be_read(gap: str, remedy: str, tmp_path: Path) -> None:
    ends = ("0000:04:00.0", "0000:05:00.0")
    facts: dict[str, Json] = {f"{NVML}P2PStatus {' '.join(ends[::way])} {index}": 1 for way in (1, -1)
                              for index in (0, 1)}  # fmt: skip
    recorded = json.loads(Path(BY_NAME["pcie-x8"]).read_text(encoding="utf-8"))["facts"]
    facts |= {f"data {line}/config": {"missing": gap} for line, entries in recorded.items()
              if line.startswith(f"{PCI}/") and "config" in entries.get("data", {})}  # fmt: skip
    path = tmp_path / "blocked.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "pcie-x8", "facts": facts}))
    (own,) = [each for each in assess(str(path), Request(only=("p2p.status",))).findings if each.judgement.fault]
    assert (own.subject.bdf, own.subject.peer and own.subject.peer.bdf) == ends
    assert own.judgement.fault is Fault.P2P_BLOCKED
    assert remedy in own.judgement.remedy


def test_a_reference_with_fewer_gpus_has_another_graph(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text('title = "DGX Station"\nboards = ["10de:15f9"]\nnvlink_graph = "dgx-station-v100"\n')
    (own,) = assess("dgx-1-p100", Request(profile=str(path), only=("nvlink.graph",))).findings
    assert own.status.value == "fail"
    assert own.judgement.message == "the NVLink graph differs from that of DGX Station with V100 in more than 6 pairs"
