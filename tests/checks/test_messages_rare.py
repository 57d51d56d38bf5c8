"""Messages of rare states, which no other test of the checks renders."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from measured_box import fact, measured, of_box
from sample import FAULTS as FAULT_FILES

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.finding import against
from dgxcheck.checks.engine.growth import INTERRUPTED
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.gpudirect import path
from dgxcheck.checks.registry import CHECKS, PROBES
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.record import replace
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.survey import COUNTERS, survey
from dgxcheck.topology.build import build

GPUS = tuple(f"0000:{bus}:00.0" for bus in ("06", "07", "0a", "0b", "85", "86", "89", "8a"))
GPU2, HCA = GPUS[2], "0000:0c:00.0"
DEVICES = "/sys/bus/pci/devices"
PORT = f"{DEVICES}/0000:09:14.0"
"""Above the HCA."""
ABSENT: Json = {"missing": "absent"}
LOST: Json = {"missing": "lost", "detail": "NVML 15: GPU is lost", "code": 15}
UNSUPPORTED: Json = {"missing": "unsupported", "detail": "NVML 3: Not Supported", "code": 3}
CONTAINER: dict[str, Json] = {"text /.dockerenv": ""}
RELOADED = "7202.000000;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.127.05  Thu Jan  1 00:00:00 UTC 1970"


def changed(
    folder: Path, facts: dict[str, Json], *, base: str = "dgx-1-v100", add: Iterable[str] = (), drop: Iterable[str] = ()
) -> Box:
    """The box with facts changed, lines added to its kernel log, and devices left out."""
    file = folder / "rare.json"
    log = {f"kmsg {number}": line for number, line in enumerate(add, 3)}
    document = {"schema": "dgxcheck/overlay/1", "base": base, "facts": facts, "add": log, "drop": [*drop]}
    file.write_text(json.dumps(document), encoding="utf-8")
    return of_box(open_source(str(file)))


def every(pattern: str, value: Json, base: str = "dgx-1-v100") -> dict[str, Json]:
    """This value for every NVML answer 0 or 1 whose function matches."""
    source = open_source(base)
    assert isinstance(source, RecordedSource)
    lines = {line: facts for line, facts in source.lines.items() if re.match(f"nvml {pattern}", line)}
    return {f"{line} {entry}": value for line, facts in lines.items() for entry in facts if facts[entry] in (0, 1)}


def messages(box: Box, check: str) -> set[str]:
    """Status, reason of a skip and message of every finding of one check."""
    judgements = [finding.judgement for finding in run(box, [each for each in CHECKS if each.id == check])]
    return {f"{' '.join(filter(None, (each.status.value, each.reason)))}: {each.message}" for each in judgements}


FACTS: list[tuple[str, str, dict[str, Json], tuple[str, ...], str]] = [
    ("driver.library", "dgx-1-v100", {"nvml nvmlInit": {"missing": "absent", "detail": "NVML 12", "code": 12}}, GPUS,
     "skip not-visible: no NVIDIA GPU is visible"),
    ("driver.device-nodes", "dgx-1-v100", {f"nvml nvmlDeviceGetMinorNumber {GPU2}": 77}, (),
     "unknown: NVML gives it minor number 77, while /dev/nvidia2 belongs to no GPU"),
    ("driver.fabric", "dgx-a100", every("nvmlDeviceGetNvLinkState ", UNSUPPORTED, "dgx-a100"), (),
     "skip not-supported: the GPUs report neither a fabric state nor NVLinks outside of MIG mode"),
    ("gpu.lost", "dgx-1-v100",
     {"nvml nvmlDeviceGetCount": 7, "nvml nvmlDeviceGetHandleByIndex 2": LOST,
      "nvml nvmlDeviceGetHandleByIndex 7": {"missing": "unrecorded"}}, (),
     "unknown: NVML has lost a GPU: it may be this one, or this one may be hidden"),
    ("gpu.count", "pcie-x4",
     {"nvml nvmlInit": {"missing": "absent", "detail": "NVML 12", "code": 12},
      "text /proc/driver/nvidia/version": ABSENT,
      **{f"text {DEVICES}/0000:{bus}:00.0/vendor": "0x1002\n" for bus in ("07", "08", "0e", "0f")}}, (),
     "unknown: no NVIDIA GPU is visible, and no profile was named; boards of other vendors are not judged:"
     " 4 x 1002:15f8"),
    ("gdr.bar1", "dgx-1-v100",
     {f"nvml nvmlDeviceGetMemoryInfo {GPU2}": {"total": 64 << 30, "used": 0, "free": 64 << 30}}, (),
     "pass: BAR1 maps 16384 of 65536 MiB of memory at a time"),
    ("gdr.peer-memory", "dgx-1-v100", {"names /sys/class/infiniband": []}, (),
     "skip not-supported: no InfiniBand devices"),
    ("gdr.peer-memory", "dgx-1-v100", {}, GPUS, "skip not-supported: no GPUs"),
    ("gdr.port", "dgx-1-v100", {"text /sys/class/infiniband/mlx5_1/ports/1/state": "1: DOWN\n"}, (),
     "skip dependency-failed: the port is DOWN: see network.port-state"),
    ("gdr.stack", "dgx-1-v100", {"names /dev/infiniband": ABSENT}, (),
     "skip not-configured: no /dev/infiniband/uverbs*; to use RDMA, run modprobe ib_uverbs"),
    ("gdr.stack", "dgx-1-v100", CONTAINER | {"names /dev/infiniband": ABSENT}, (),
     "skip not-visible: this container has no /dev/infiniband/uverbs*"),
    ("gdr.stack", "dgx-1-v100", CONTAINER | {"opens /dev/infiniband/uverbs1": {"missing": "denied"}}, (),
     "skip not-visible: this container may not open /dev/infiniband/uverbs1"),
    ("kernel.hca", "dgx-1-v100", {f"link {DEVICES}/{HCA}/driver": "../../../../bus/pci/drivers/mlx4_core"}, (),
     "skip not-supported: messages of its driver, mlx4_core, are not read"),
    ("network.hca-placement", "dgx-1-v100", {"link /sys/class/infiniband/mlx5_1/device": ABSENT}, (),
     "skip not-visible: no PCI function behind it"),
    ("nvlink.graph", "dgx-1-v100", every("nvmlDeviceGetNvLinkState ", UNSUPPORTED), (),
     "skip not-supported: no GPU has NVLink"),
    ("nvlink.graph", "dgx-1-v100", every("nvmlDeviceGetNvLinkState ", 0), (),
     "skip dependency-failed: no NVLink is up: see nvlink.state"),
    ("nvlink.graph", "dgx-1-v100", {"nvml nvmlDeviceGetCount": 1}, GPUS[1:],
     "skip not-supported: fewer than two GPUs have NVLinks up"),
    ("gdr.link", "dgx-1-v100", {f"text {PORT}/vendor": "0x1000\n", f"text {PORT}/device": "0xc010\n",
                                f"text {PORT}/max_link_speed": "5.0 GT/s PCIe\n"}, (),
     "skip not-visible: a synthetic port of the switch"),
    ("network.port-state", "dgx-1-v100",
     {f"text /sys/class/infiniband/mlx5_{n}/ports/1/{name}": text for n in range(4)
      for name, text in (("state", "1: DOWN\n"), ("phys_state", "5: LinkUp\n"))}, (),
     "warn: port is DOWN (link up): no subnet manager configured it"),
    ("p2p.status", "dgx-1-v100", {"nvml nvmlDeviceGetCount": 1}, GPUS[1:], "skip not-supported: fewer than two GPUs"),
    ("topology.profile", "dgx-1-v100", {"nvml nvmlDeviceGetCount": 2}, GPUS[2:],
     "pass: the GPUs are placed as in NVIDIA DGX-1 with eight V100"),
    ("pcie.width", "dgx-1-v100", {f"link {DEVICES}/{GPU2}": f"../../../devices/pci0000:00/{GPU2}"}, (),
     "skip not-visible: no bridge is visible above it, as in a virtual machine"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("measured", "expected", "unit", "text"),
    [
        (8, 16, "lanes", "x8 of x16"), (0, 1, "links", "0 of 1 link"), (1, 2, "links", "1 of 2 links"),
        (1, 0, "errors", "1 error"), (3, 0, "errors", "3 errors"), (88, 87, "°C", "88 °C, limit 87"),
        (1, 0, "us", "1 us"), (True, 0, "errors", ""), (1, None, "errors", ""),
    ],
)  # fmt: skip
def test_a_figure_against_the_expected_one(measured: object, expected: object, unit: str, text: str) -> None:
    assert against(measured, expected, unit) == text


@pytest.mark.parametrize(("check", "base", "facts", "drop", "message"), FACTS)
def test_changed_facts(
    check: str, base: str, facts: dict[str, Json], drop: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    assert message in messages(changed(tmp_path, facts, base=base, drop=drop), check)


@pytest.mark.parametrize(
    ("check", "lines", "message"),
    [
        ("kernel.gpu-start", [f"3600.000000;NVRM: GPU {GPU2}: RmInitAdapter failed! (0x26:0xffff:1290)", RELOADED],
         "pass: the driver could not start it before it was last loaded"),
        ("kernel.xid", ["3600.000000;nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 3", RELOADED],
         "pass: 1 SXid before the driver was last loaded"),
        ("kernel.out-of-memory",
         ["3600.000000;Memory cgroup out of memory: Killed process 42 (python3) total-vm:1kB, anon-rss:1kB"],
         "pass: a memory limit was reached 1 time; killed: python3"),
    ],
)  # fmt: skip
def test_lines_of_an_earlier_load(check: str, lines: list[str], message: str, tmp_path: Path) -> None:
    found = messages(changed(tmp_path, {}, add=lines), check)
    assert any(each.startswith(message) for each in found), found


def later(box: Box, seconds: float = 10) -> Growth:
    source = open_source("dgx-1-v100")
    after = source.later(10)
    assert not isinstance(after, Missing)
    return Growth(old=survey(source, COUNTERS), new=survey(after, COUNTERS), seconds=seconds, how="within 10 s")


def without_time(box: Box) -> Box:
    growth = later(box, seconds=0)
    rows = growth.new.gpu_counters
    assert not isinstance(rows, Missing)
    counters = replace(growth.new, gpu_counters=tuple(replace(row, power_ns=1) for row in rows))
    return replace(box, growth=replace(growth, old=counters, new=counters))


def without_old_ports(box: Box) -> Box:
    growth = later(box)
    return replace(box, growth=replace(growth, old=replace(growth.old, ib_ports=())))


def without_port_counters(box: Box) -> Box:
    growth = later(box)
    ports = growth.new.ib_ports
    assert not isinstance(ports, Missing)
    bare = tuple(
        replace(row, ports=tuple(replace(port, counters={}) for port in row.ports))
        for row in ports if not isinstance(row.ports, Missing)
    )  # fmt: skip
    return replace(box, growth=replace(growth, old=replace(growth.old, ib_ports=bare),
                                       new=replace(growth.new, ib_ports=bare)))  # fmt: skip


def without_aer(box: Box) -> Box:
    growth = later(box)
    return replace(box, growth=replace(growth, new=replace(growth.new, aer=())))


def without_one_p2p_status(box: Box) -> Box:
    rows = box.snapshot.p2p
    assert not isinstance(rows, Missing)
    return replace(box, snapshot=replace(box.snapshot, p2p=rows[1:]))


BOXES: list[tuple[str, Callable[[Box], Box], str]] = [
    ("power.violation", without_time,
     "skip no-history: no time passed between the two readings"),
    ("network.port-errors", without_old_ports, "skip no-history: its counters were not read before"),
    ("network.port-errors", without_port_counters, "skip not-supported: the port has none of these counters"),
    ("pcie.aer", without_aer, "skip not-supported: no device or bridge counts PCIe errors"),
    ("p2p.status", without_one_p2p_status, "skip not-recorded: its P2P status was not recorded"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "change", "message"), BOXES)
def test_changed_boxes(check: str, change: Callable[[Box], Box], message: str) -> None:
    assert message in messages(change(of_box(open_source("dgx-1-v100"))), check)


def facts_of(fault: str) -> dict[str, Json]:
    facts: dict[str, Json] = json.loads(Path(FAULT_FILES[fault]).read_text(encoding="utf-8"))["facts"]
    return facts


@pytest.mark.parametrize(
    ("check", "fault", "message"),
    [
        ("gdr.memlock", "dgx-1-v100-memlock", "skip not-configured: "),
        ("gdr.iommu", "dgx-1-v100-iommu-dma", "skip not-configured: an IOMMU translates addresses"),
        ("gdr.iommu-groups", "gb300-nvl72-iommu-groups", "skip not-configured: GPU1 and 0009:03:00.0 are in different"),
        ("gdr.iommu-groups", "gb200-nvl72-ats", "skip not-configured: ATS is on at 0000:01:00.0, "),
        ("gdr.acs", "dgx-b300-acs-gpu-port", "skip not-configured: ACS control 0011101, not xx000x0; "),
    ],
)
def test_what_blocks_rdma_is_no_fault_where_rdma_is_not_configured(
    check: str, fault: str, message: str, tmp_path: Path
) -> None:
    found = messages(changed(tmp_path, facts_of("dgx-1-v100-no-peermem"), base=fault), check)
    assert any(each.startswith(message) for each in found), found


@pytest.mark.parametrize(
    ("check", "facts", "base", "message"),
    [
        ("measure.burn-in", {"burn-in all": fact(None, "s")}, "dgx-1-p100",
         "skip not-recorded: no result of the burn-in"),
        ("measure.burn-in", {"burn-in all": fact(600, "s", asked=600), f"burn-in {GPUS[0]}": fact(9.1, "TFLOP/s")},
         "dgx-1-p100", "skip not-visible: not loaded"),
        ("measure.compute", {f"compute {GPUS[0]}": fact(None, "TFLOP/s")}, "dgx-1-p100",
         "skip not-recorded: no figure"),
    ],
)  # fmt: skip
def test_measurements_without_a_figure(
    check: str, facts: dict[str, Json], base: str, message: str, tmp_path: Path
) -> None:
    assert message in messages(measured(tmp_path, facts, base), check)


def under_first_gpu(base: str) -> Box:
    """Every HCA beside the first GPU."""
    box = of_box(open_source(base))
    first = box.topology.gpus[0].path
    assert not isinstance(first, Missing)
    devices = tuple(
        replace(device, path=(*first[:-1], str(device.bdf))) if device.kind == "nic" else device
        for device in box.topology.devices
    )
    facts = survey(open_source(base), PROBES)
    moved = {device.bdf: device.path for device in devices}
    assert not isinstance(facts.pci, Missing)
    functions = tuple(replace(row, path=moved.get(row.bdf, row.path)) for row in facts.pci)
    topology = build(replace(facts, pci=functions))
    return replace(box, topology=topology, gpus=topology.gpus)


def test_more_hcas_in_wrong_places_than_are_tried() -> None:
    (message,) = messages(under_first_gpu("dgx-a100"), "network.hca-placement")
    assert message.startswith("warn: not as in NVIDIA DGX A100 with eight A100: mlx5_0, ")


VIRTUAL = {f"link {DEVICES}/{bdf}": f"../../../devices/pci0000:00/{bdf}" for bdf in (*GPUS, HCA)}


def test_a_virtual_machine_without_bridges(tmp_path: Path) -> None:
    box = changed(tmp_path, dict(VIRTUAL))
    functions = tuple(replace(each, path=("pci0000:00", each.bdf)) for each in box.topology.functions.values())
    facts = box.snapshot
    flat = build(replace(facts, pci=functions))
    message = "skip not-visible: no link is visible above those of the GPUs themselves"
    assert message in messages(replace(box, topology=flat), "pcie.path")
    nic = box.topology.device(HCA)
    assert nic is not None
    assert path.link(box, box.gpus[0], nic).judgement.message == (
        "no link is visible between them, as in a virtual machine"
    )


def test_an_hca_without_a_place(tmp_path: Path) -> None:
    box = changed(tmp_path, {f"link {DEVICES}/{HCA}": ABSENT})
    nic = box.topology.device(HCA)
    assert nic is not None
    assert path.path(box, box.gpus[0], nic).judgement.message == f"PCI path of {HCA} unknown (not there)"


def test_a_fabric_that_fabric_manager_did_not_initialise(tmp_path: Path) -> None:
    not_ready: Json = {"failed": "CUDA_ERROR_SYSTEM_NOT_READY", "code": 802, "detail": "cuInit"}
    box = measured(tmp_path, {"start all": not_ready}, "dgx-a100-fabric-manager-down")
    message = "skip dependency-failed: NVSwitch fabric not initialised: see driver.fabric"
    assert message in messages(box, "measure.host-bandwidth")


@pytest.mark.parametrize(("base", "gone", "due"), [
    ("l40s-x8", "0000:3e:00.0", "fail: 7 of 8 GPUs that the driver had are left; no GPU has /dev/nvidia3"),
    ("gb200-nvl72", "0019:01:00.0", "fail: 3 of 4 GPUs found: 2 at node 0, 1 at node 1"),
    ("l40s-x8", "0000:bb:00.0", "warn: 7 of 8 GPUs found, unless 0000:b9:04.0 was left empty on purpose: other switches"
     " have a GPU at each such port"),  # the last leaves no gap in the numbers
])  # fmt: skip
def test_a_gpu_less_than_the_driver_had_or_than_beside_it(base: str, gone: str, due: str, tmp_path: Path) -> None:
    """Without a reference machine that has their number; the nodes of others are no riddle then."""
    box = changed(tmp_path, {"nvml nvmlDeviceGetCount": 4 if base == "gb200-nvl72" else 8}, base=base, drop=[gone])
    assert messages(box, "gpu.count") == {due}
    assert not any(each.startswith("unknown") for each in messages(box, "driver.device-nodes"))


_NO_LIBRARY: dict[str, Json] = {"nvml nvmlInit": {"missing": "absent", "detail": "NVML 12", "code": 12}}
_NO_MODULE: dict[str, Json] = {"text /proc/driver/nvidia/version": ABSENT,
                               **{f"link {DEVICES}/{gpu}/driver": ABSENT for gpu in GPUS}}  # fmt: skip


@pytest.mark.parametrize(
    ("check", "facts", "drop", "first"),
    [
        ("driver.library", {**_NO_LIBRARY, **_NO_MODULE}, (), "install the NVIDIA driver, kernel module and libraries"),
        ("driver.library", _NO_LIBRARY, (), ""),  # the fault's own: the libraries of the module that is loaded
        ("driver.library", {**_NO_LIBRARY, **_NO_MODULE, **CONTAINER}, (), ""),
        ("gpu.count", {**_NO_LIBRARY, **_NO_MODULE}, GPUS, "if this machine has GPUs, see whether lspci"),
        ("driver.answers", {f"names {DEVICES}": {"missing": "denied"}}, (), "run dgxcheck on the host itself"),
    ],
)  # fmt: skip
def test_the_first_step_on_a_host_without_driver_gpu_or_pci_tree(
    check: str, facts: dict[str, Json], drop: tuple[str, ...], first: str, tmp_path: Path
) -> None:
    box = replace(changed(tmp_path, facts, drop=drop), choice=None)
    (remedy,) = {each.judgement.remedy for each in run(box, [each for each in CHECKS if each.id == check])
                 if each.judgement.status.value in ("fail", "unknown")}  # fmt: skip
    assert remedy.startswith(first)
    assert bool(remedy) == bool(first)


def test_no_minor_number_is_too_high_to_compare(tmp_path: Path) -> None:
    box = changed(tmp_path, {"nvml nvmlDeviceGetMinorNumber 0000:bb:00.0": 2**31 - 1}, base="l40s-x8")
    assert messages(box, "gpu.count") == {"skip no-reference: no matching reference machine"}


@pytest.mark.parametrize(("model", "status"), [("NVIDIA GB10", "pass"), ("Tesla V100-SXM2-16GB", "warn")])
def test_the_slots_of_a_dgx_spark_are_short_of_power_in_health(model: str, status: str, tmp_path: Path) -> None:
    line = f"7000.1;mlx5_core {HCA}: mlx5_pcie_event:299:(pid 1): Detected insufficient power on the PCIe slot (27W)."
    box = changed(tmp_path, {f"nvml nvmlDeviceGetName {bdf}": model for bdf in GPUS}, add=[line])
    found = {finding.subject.bdf: finding.judgement.status.value
             for finding in run(box, [each for each in CHECKS if each.id == "kernel.hca"])}  # fmt: skip
    assert found[HCA] == status


def test_a_board_of_two_gpus_whose_number_is_unknown_lacks_none(tmp_path: Path) -> None:
    gap: Json = {"missing": "unsupported", "detail": "Not Supported"}
    box = changed(tmp_path, {"nvml nvmlDeviceGetBoardId 0000:06:00.0": {"": gap}}, base="k80-x8")
    assert not any("alone on a board" in message for message in messages(replace(box, choice=None), "gpu.count"))


def test_a_window_that_was_interrupted_leaves_all_unknown(tmp_path: Path) -> None:
    box = replace(changed(tmp_path, {}), growth=INTERRUPTED)
    assert messages(box, "report.complete") == {"unknown: interrupted before the counters were read again"}
