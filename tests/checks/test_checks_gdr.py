"""GPUDirect RDMA: each precondition."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fabric_box import bad, findings, said
from rdma_box import MODULE, PCI, acs, modules, pair
from test_health_checks import box, changed

from dgxcheck.checks.engine.finding import Judgement, Status
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.gpudirect.path import bar1 as bar1_of
from dgxcheck.checks.pcie.isolation import ports_between
from dgxcheck.checks.peer_access.cuda import blocker
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.record import replace
from dgxcheck.output.topo.peers import text_of
from dgxcheck.settings import Settings
from dgxcheck.source.recording.load import open_source

A100, A100_GPU0 = "dgx-a100", "0000:07:00.0"
V100_BYTES = 16 << 30
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.127.05  Tue Oct  8 03:22:07 UTC 2024\n"
GROUP = "../../../../kernel/iommu_groups/20"
TYPE = "text /sys/kernel/iommu_groups/20/type"
PEERS = "/sys/kernel/mm/memory_peers"
GUEST: dict[str, Json] = {"text /sys/hypervisor/type": "xen\n"}


def test_an_hca_may_have_no_verbs_device_here(tmp_path: Path) -> None:
    of = box(changed(tmp_path, {"names /dev/infiniband": ["uverbs0", "uverbs1", "rdma_cm"]}))
    assert pair(of, "GPU2", "mlx5_1").verdict == "cannot tell"
    assert said(of, "gdr.stack") == ["skip not-visible"]


@pytest.mark.parametrize(("version", "word"), [
    ({"missing": "absent"}, "inbox drivers"), ("2.2-1\n", "old kernels"), ("5.4-1.0.3\n", "MLNX_OFED"),
])  # fmt: skip
def test_whose_drivers_they_are(version: Json, word: str, tmp_path: Path) -> None:
    of = box(changed(tmp_path, {f"text {MODULE}/mlx5_ib/version": version}))
    (told,) = (each for each in run(of, CHECKS) if each.id == "gdr.stack")
    assert word in told.judgement.message


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({}, "pass"),
        (modules(), "warn"),
        (modules() | {f"names {MODULE}/ib_core/holders": ["nvidia_peermem"]}, "pass"),
        (modules() | {f"names {MODULE}/ib_core/holders": {"missing": "denied"}}, "skip no-permission"),
        (modules() | {f"names {PEERS}": ["amdp2p"]}, "warn"),  # a client of other devices
        (modules() | {f"names {PEERS}": ["nv_mem"]}, "pass"),
        (modules("nvidia_peermem"), "skip not-configured"),
        ({f"names {MODULE}": {"missing": "denied"}}, "skip no-permission"),
        ({"names /sys/class/infiniband": {"missing": "absent"}}, "skip not-supported"),
    ],
)
def test_peer_memory(facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    assert said(box(changed(tmp_path, facts)), "gdr.peer-memory") == [due]


def test_two_modules_of_peer_memory_exclude_each_other(tmp_path: Path) -> None:
    names = modules()[f"names {MODULE}"]
    assert isinstance(names, list)
    of = box(changed(tmp_path, {f"names {MODULE}": [*names, "nv_peer_mem"]}))
    assert said(of, "gdr.peer-memory") == ["warn"]
    assert pair(of, "GPU0", "mlx5_0").verdict == "not ready"


@pytest.mark.parametrize(
    ("base", "facts", "word"),
    [
        (A100, {}, "whether dma-buf works"),
        (A100, {"text /proc/sys/kernel/osrelease": "5.4.0-42-generic\n"}, "Linux 5.12"),
        (A100, {"text /proc/sys/kernel/osrelease": "5.12.0\n"}, "whether dma-buf works"),
        (A100, {"nvml nvmlSystemGetCudaDriverVersion": 11060}, "CUDA 11.7"),
        (A100, {"nvml nvmlSystemGetCudaDriverVersion": 11070}, "whether dma-buf works"),
        (A100, {f"nvml nvmlDeviceGetCudaComputeCapability {A100_GPU0} ": [7, 5]}, "whether dma-buf works"),
        (A100, {"text /proc/driver/nvidia/version": CLOSED}, "not the proprietary ones"),
        ("dgx-1-v100", {}, "Turing and newer"),
        ("dgx-1-v100", {"text /.dockerenv": ""}, "on the host of this container"),
        ("dgx-1-p100", {}, "build nv_peer_mem"),
    ],
)
def test_dma_buf_is_never_advised_where_it_cannot_work(
    base: str, facts: dict[str, Json], word: str, tmp_path: Path
) -> None:
    of = box(changed(tmp_path, facts | modules("nvidia_peermem", "nv_peer_mem", base=base), base))
    reasons = dict(pair(of, "GPU0", "mlx5_0").reasons)
    told = reasons["gdr.peer-memory"]
    assert word in text_of(told) + told.judgement.remedy
    assert "modprobe" not in text_of(told)
    assert said(of, "gdr.peer-memory") == ["skip not-configured"]


@pytest.mark.parametrize("name", ["5.x-custom", "v5.15.0", "5", "²5.15"])
def test_a_release_without_numbers_is_unknown(name: str, tmp_path: Path) -> None:
    release: dict[str, Json] = {"text /proc/sys/kernel/osrelease": f"{name}\n"}
    of = box(changed(tmp_path, release | modules("nvidia_peermem", "nv_peer_mem", base=A100), A100))
    assert said(of, "gdr.peer-memory") == ["unknown"]


def test_bar1_need_not_map_what_c2c_reaches(tmp_path: Path) -> None:
    memory: dict[str, Json] = {"nvml nvmlDeviceGetMemoryInfo 0009:01:00.0": {"missing": "unsupported", "code": 3}}
    assert pair(box(changed(tmp_path, memory, "gh200")), "GPU0", "mlx5_0").verdict == "ready"


@pytest.mark.parametrize(("used", "due"), [(8 << 30, "ready"), ((8 << 30) + 1, "slow")])
def test_half_of_bar1_in_use(used: int, due: str, tmp_path: Path) -> None:
    gpu = "0000:0a:00.0"
    bar1: Json = {"bar1Total": 16 << 30, "bar1Free": (16 << 30) - used, "bar1Used": used}
    of = box(changed(tmp_path, {f"nvml nvmlDeviceGetBAR1MemoryInfo {gpu}": bar1}))
    of = replace(of, settings=Settings(thresholds={"gdr.bar1-used": 50}))
    assert bar1_of(of, next(each for each in of.gpus if each.bdf == gpu)).state == due


def test_only_ports_at_or_below_the_common_bridge_count(tmp_path: Path) -> None:
    of = box("dgx-1-v100")
    ends = [of.topology.device(name) for name in ("GPU2", "mlx5_1", "GPU3")]
    gpu2, hca, gpu3 = (end for end in ends if end is not None)
    assert ports_between(of, gpu2, hca) == ["0000:08:00.0", "0000:09:08.0", "0000:09:14.0"]
    assert ports_between(of, gpu2, gpu3) == ["0000:08:00.0", "0000:09:08.0", "0000:09:10.0"]
    on_root = acs("0000:00:03.0", 0x1D) | acs("0000:00:02.0", 0x1D)
    assert bad(box(changed(tmp_path, on_root)), "gdr") == set()


@pytest.mark.parametrize(
    ("control", "due"), [(0x01, set()), (0x04, {"warn"}), (0x08, {"warn"}), (0x20, {"warn"}), (0x40, set())]
)
def test_source_validation_alone_redirects_nothing(control: int, due: set[str], tmp_path: Path) -> None:
    of = box(changed(tmp_path, acs("0000:09:08.0", control)))
    assert {status for _, _, status in bad(of, "gdr.acs")} == due


@pytest.mark.parametrize("more", [{}, modules("nvidia_peermem"), GUEST])
def test_acs_is_no_fault_where_nobody_wants_rdma_nor_in_a_guest(more: dict[str, Json], tmp_path: Path) -> None:
    facts = acs("0000:09:08.0", 0x1D) | more
    assert bool(bad(box(changed(tmp_path, facts)), "gdr.acs", "gdr.iommu")) == (not more)


@pytest.mark.parametrize("how", ["kvm_intel", "mdev", "vfio_pci", "vfio_pci_core", "vfio-pci", "mlx5_vfio_pci"])
def test_no_acs_command_where_virtual_machines_run(how: str, tmp_path: Path) -> None:
    names = open_source("dgx-1-v100").names(MODULE)
    assert not isinstance(names, Missing)
    facts = acs("0000:09:08.0", 0x1D)
    facts |= {f"link {PCI}/0000:02:00.0/driver": f"../{how}"} if how in ("vfio-pci", "mlx5_vfio_pci") else {}
    facts |= {f"names {MODULE}": [*names, how]}
    document: dict[str, Json] = {
        "schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": facts,
        "add": {f"text {MODULE}/{how}/refcnt": "3\n"},
    }  # fmt: skip
    of = box(_written(tmp_path / "fault.json", document))
    said_of_acs = dict(pair(of, "GPU2", "mlx5_1").reasons)["gdr.acs"]
    assert "virtual machines need this" in said_of_acs.judgement.message
    assert "setpci" not in said_of_acs.judgement.remedy
    assert bad(of, "gdr") == set()


@pytest.mark.parametrize(("facts", "more"), [
    ({f"link {PCI}/0000:02:00.0/driver": {"missing": "denied"}}, {}),
    ({}, {f"text {MODULE}/kvm_intel/refcnt": {"missing": "absent"}}),
])  # fmt: skip
def test_no_acs_command_where_virtual_machines_may_run(
    facts: dict[str, Json], more: dict[str, Json], tmp_path: Path
) -> None:
    names = open_source("dgx-1-v100").names(MODULE)
    assert not isinstance(names, Missing)
    document: dict[str, Json] = {
        "schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "add": more,
        "facts": acs("0000:09:08.0", 0x1D) | facts | {f"names {MODULE}": [*names, "kvm_intel"] if more else [*names]},
    }  # fmt: skip
    of = box(_written(tmp_path / "fault.json", document))
    (told,) = (each for each in run(of, CHECKS) if each.id == "gdr.acs")
    assert told.status.value == "warn"
    assert "setpci" not in told.remedy
    assert "whether virtual machines run here is unknown" in told.remedy


@pytest.mark.parametrize("kind", [{"missing": "denied"}, {"missing": "absent"}])
def test_no_acs_command_while_groups_may_translate(kind: Json, tmp_path: Path) -> None:
    facts = acs("0000:09:08.0", 0x1D) | {f"link {PCI}/0000:8a:00.0/iommu_group": GROUP}
    document: dict[str, Json] = {
        "schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": facts, "add": {TYPE: kind}
    }  # fmt: skip
    of = box(_written(tmp_path / "fault.json", document))
    remedy = dict(pair(of, "GPU2", "mlx5_1").reasons)["gdr.acs"].judgement.remedy
    assert "setpci" not in remedy
    assert "whether an IOMMU translates addresses is unknown" in remedy


def _written(path: Path, document: dict[str, Json]) -> str:
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("kind", "command_line", "due"),
    [
        ("DMA\n", "", "warn"),
        ("DMA-FQ\n", "", "warn"),
        ("identity\n", "", "pass"),
        ({"missing": "absent"}, "root=/dev/sda2 iommu=pt", "pass"),
        ({"missing": "absent"}, "root=/dev/sda2 intel_iommu=on", "skip not-supported"),
        ({"missing": "denied"}, "", "skip no-permission"),
    ],
)
def test_iommu(kind: Json, command_line: str, due: str, tmp_path: Path) -> None:
    facts: dict[str, Json] = {f"link {PCI}/0000:0a:00.0/iommu_group": GROUP, "text /proc/cmdline": f"{command_line}\n"}
    document: dict[str, Json] = {
        "schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": facts, "add": {TYPE: kind}
    }  # fmt: skip
    assert said(box(_written(tmp_path / "fault.json", document)), "gdr.iommu") == [due]


def test_a_guest_cannot_tell(tmp_path: Path) -> None:
    of = box(changed(tmp_path, GUEST))
    assert said(of, "gdr.iommu") == said(of, "gdr.acs") == said(of, "gdr.max-payload") == ["skip not-visible"]
    assert pair(of, "GPU0", "mlx5_0").verdict == "cannot tell"


@pytest.mark.parametrize(("limit", "due"), [
    ("unlimited", "pass"), ("65536", "warn"), (str(V100_BYTES), "pass"), (str(V100_BYTES - 1), "warn"),
    ("x", "unknown"),
])  # fmt: skip
def test_locked_memory_of_an_ordinary_user(limit: str, due: str, tmp_path: Path) -> None:
    line = f"Max locked memory         {limit}                unlimited            bytes\n"
    of = box(changed(tmp_path, {"text /proc/self/limits": line}, "dgx-1-v100-not-root"))
    assert said(of, "gdr.memlock") == [due]


LOW = "Max locked memory         65536                65536                bytes\n"
FREE = LOW.replace("65536    ", "unlimited")
PROCS = "text /sys/fs/cgroup/system.slice/slurmd.service/cgroup.procs"


def limited(folder: Path, facts: dict[str, Json], base: str = "dgx-1-v100", **files: str) -> Judgement:
    """gdr.memlock of a box where slurmd has the process 12, with ``files`` of it and of /etc."""
    paths = {
        "limits": "/proc/12/limits",
        "drop_in": "/etc/systemd/system/slurmd.service.d/x.conf",
        "own": "/proc/self/limits",
    }
    add: dict[str, Json] = {f"text {paths[name]}": text for name, text in files.items() if name != "own"}
    if "limits" in files:
        facts = facts | {PROCS: "12\n"}
        add["text /proc/12/comm"] = "slurmd\n"
    if "drop_in" in files:
        add["names /etc/systemd/system/slurmd.service.d"] = ["x.conf"]
    if "own" in files:
        facts = facts | {"text /proc/self/limits": files["own"]}
    document: dict[str, Json] = {"schema": "dgxcheck/overlay/1", "base": base, "facts": facts, "add": add}
    (told,) = findings(box(_written(folder / "fault.json", document)), "gdr.memlock")
    return told.judgement


def test_no_limit_holds_root(tmp_path: Path) -> None:
    assert limited(tmp_path, {}, own=LOW).reason == "not-configured"
    told = limited(tmp_path, {}, own=LOW, limits=FREE)
    assert (told.status, told.message.partition("; ")[2]) == (Status.PASS, "jobs of slurmd have no limit")


def test_a_daemon_holds_its_jobs_whatever_this_session_may(tmp_path: Path) -> None:
    told = limited(tmp_path, {}, limits=LOW, drop_in="[Service]\nLimitMEMLOCK=64K\n")
    assert (told.status, told.measured) == (Status.WARN, 65536)
    assert "by line 2 of /etc/systemd/system/slurmd.service.d/x.conf" in told.message
    assert "set LimitMEMLOCK=infinity in line 2 of /etc/systemd/system/slurmd.service.d/x.conf" in told.remedy
    plain = limited(tmp_path, {}, limits=LOW)
    assert "systemctl edit slurmd.service" in plain.remedy
    assert " by line" not in plain.message
    assert limited(tmp_path, {}, limits=FREE).status is Status.PASS
    assert limited(tmp_path, {}, limits=LOW.replace("65536", str(1 << 40))).status is Status.PASS
    assert limited(tmp_path, modules("nvidia_peermem"), limits=LOW).reason == "not-configured"


@pytest.mark.parametrize("limits", ["", "x", LOW.replace("65536", "-1")])
def test_a_daemon_whose_limit_nobody_can_read_is_not_judged(limits: str, tmp_path: Path) -> None:
    assert limited(tmp_path, {}, limits=limits).status is Status.PASS


@pytest.mark.parametrize(
    ("conf", "place"),
    [
        ("* soft memlock 64\n", "line 1"),
        ("* - memlock 64\n\n@rdma - memlock 64", "line 3"),
        ("* soft memlock 8192\n", ""),
        ("#* - memlock 64\n", ""),
    ],
)
def test_the_line_that_sets_the_limit_is_named(conf: str, place: str, tmp_path: Path) -> None:
    told = limited(tmp_path, {"text /etc/security/limits.conf": conf}, "dgx-1-v100-not-root", own=LOW)
    assert told.status is Status.WARN
    named = f"{place} of /etc/security/limits.conf"
    assert (f" by {named}" in told.message) == (f"set unlimited in {named}" in told.remedy) == bool(place)


@pytest.mark.parametrize(
    ("spec", "by", "word"),
    [
        ("k80-x8-p2p-acs", "ACS of 0000:09:08.0", "setpci -s 0000:09:08.0"),
        ("k80-x8-p2p-broken", "", "neither ACS nor an IOMMU"),
        ("dgx-1-v100-iommu-dma", "IOMMU translation", "iommu=pt"),
        ("dgx-1-v100-hypervisor", "IOMMU translation", "leave IOMMU translation"),
        ("dgx-1-v100-not-root", "", "as root"),
    ],
)
def test_what_stops_two_gpus(spec: str, by: str, word: str) -> None:
    of = box(spec)
    a, b = (of.topology.device(name) for name in ("GPU2", "GPU3"))
    assert a is not None
    assert b is not None
    found = blocker(of, a, b)
    assert found.setting == by
    assert word in found.remedy
    assert "setpci" not in found.remedy or by.startswith("ACS")
