"""GPUDirect RDMA: each precondition, and what all of them make of a pair."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fabric_box import bad, findings, said
from fabric_box import box as with_reference
from sample import FAULTS
from test_health_checks import box, changed

from dgxcheck.checks.check import Box
from dgxcheck.checks.finding import Judgement, Status
from dgxcheck.checks.gdr import NEAR, nics
from dgxcheck.checks.gdr_acs import between
from dgxcheck.checks.gdr_ready import Readiness, readiness
from dgxcheck.checks.p2p_stopped import stopped
from dgxcheck.reading import Json, Missing
from dgxcheck.source.library import open_source
from dgxcheck.source.rows import to_rows

PCI = "/sys/bus/pci/devices"
MODULE = "/sys/module"
A100 = "dgx-a100"
GROUP = "../../../../kernel/iommu_groups/20"
TYPE = "text /sys/kernel/iommu_groups/20/type"
GUEST: dict[str, Json] = {"text /sys/hypervisor/type": "xen\n"}


def pair(of: Box, gpu: str, hca: str) -> Readiness:
    a, b = of.topology.device(gpu), of.topology.device(hca)
    assert a is not None
    assert b is not None
    return readiness(of, a, b)


def verdicts(spec: str) -> dict[tuple[str, str], str]:
    of = box(spec)
    return {
        (gpu.name, nic.name): readiness(of, gpu, nic).verdict for gpu in of.topology.gpus for nic in nics(of)
    }  # fmt: skip


def modules(*gone: str, base: str = "dgx-1-v100") -> dict[str, Json]:
    names = open_source(base).names(MODULE)
    assert not isinstance(names, Missing)
    return {
        f"names {MODULE}": [name for name in names if name not in gone],
        f"names {MODULE}/ib_core/holders": ["ib_uverbs", "mlx5_ib"],
        "names /sys/kernel/mm/memory_peers": {"missing": "absent"},
    }


def acs(bdf: str, control: int, base: str = "dgx-1-v100") -> dict[str, Json]:
    data = open_source(base).data(f"{PCI}/{bdf}/config")
    assert not isinstance(data, Missing)
    space = bytearray(data)
    at = space.index(b"\x0d\x00\x01\x00", 0x100)
    space[at + 6] = control
    return {f"data {PCI}/{bdf}/config": to_rows(bytes(space))}


def test_each_gpu_of_a_dgx_1_is_ready_through_the_hca_behind_its_own_switch() -> None:
    found = verdicts("dgx-1-v100")
    ready = {ends for ends, verdict in found.items() if verdict == "ready"}
    assert ready == {(f"GPU{number}", f"mlx5_{number // 2}") for number in range(8)}
    assert {verdict for ends, verdict in found.items() if ends not in ready} == {"slow"}


@pytest.mark.parametrize("spec", ["dgx-1-p100", "dgx-1-v100", "dgx-a100", "k80-x8"])
def test_a_healthy_box_is_ready_where_an_hca_is_near(spec: str) -> None:
    of, found = box(spec), verdicts(spec)
    matrix = of.topology.matrix()
    assert {ends for ends, verdict in found.items() if verdict == "ready"} == {
        ends for ends in found if matrix[ends].pci in NEAR
    }


BREAKS = {
    "acs-redirect": ("GPU2", "not ready", "gdr.acs", "0000:09:08.0"),
    "acs-everywhere": ("GPU2", "not ready", "gdr.acs", "0000:09:14.0"),
    "bar1-full": ("GPU5", "slow", "gdr.bar1", "15564 of 16384 MiB"),
    "bar1-small": ("GPU2", "not ready", "gdr.bar1", "256 MiB"),
    "bar1-unassigned": ("0000:8a:00.0", "not ready", "gdr.bar1", "not assigned"),
    "hca-x8": ("GPU2", "slow", "gdr.link", "0000:0c:00.0"),
    "hypervisor": ("GPU2", "not ready", "gdr.iommu", "vfio-pci"),
    "iommu-dma": ("GPU2", "not ready", "gdr.iommu", "DMA"),
    "max-payload": ("GPU3", "not ready", "gdr.max-payload", "0000:0b:00.0"),
    "memlock": ("GPU2", "not ready", "gdr.memlock", "64 KiB"),
    "memlock-jobs": ("GPU2", "not ready", "gdr.memlock", "jobs of slurmd"),
    "no-peermem": ("GPU2", "not ready", "gdr.peer-memory", "modprobe nvidia-peermem"),
    "not-root": ("GPU2", "cannot tell", "gdr.acs", "(sudo dgxcheck health)"),
    "peermem-unregistered": ("GPU2", "not ready", "gdr.peer-memory", "not registered"),
    "port-down": ("GPU2", "not ready", "gdr.port", "mlx5_1"),
    "verbs-shut": ("GPU2", "not ready", "gdr.stack", "uverbs0"),
}
"""A pair that the fault touches, its verdict, the precondition that is named, and a word of the reason."""


@pytest.mark.parametrize("fault", BREAKS)
def test_a_broken_precondition_is_named(fault: str) -> None:
    gpu, verdict, check, word = BREAKS[fault]
    of = with_reference(f"dgx-1-v100-{fault}", "dgx-1-v100")
    device = of.topology.device(gpu)
    assert device is not None
    (near,) = [nic for nic in nics(of) if of.topology.link(device, nic).pci in NEAR]
    found = readiness(of, device, near)
    reasons = dict(found.reasons)
    assert (found.verdict, check in reasons) == (verdict, True)
    assert word in reasons[check].words


def test_every_shipped_fault_of_rdma_breaks_a_pair() -> None:
    shown = {f"dgx-1-v100-{fault}" for fault in BREAKS}
    of_rdma = {name for name in FAULTS if "gdr." in Path(FAULTS[name]).read_text(encoding="utf-8")}
    placed = {"dgx-1-v100-hca-missing", "dgx-1-v100-hca-not-started", "dgx-1-v100-hca-wrong-slot"}
    lost = {"dgx-1-v100-off-bus-at-load", "dgx-1-v100-xid-79"}
    assert of_rdma - placed - lost <= shown


def test_what_only_root_sees_is_never_ready() -> None:
    of = box("dgx-1-v100-not-root")
    assert "ready" not in verdicts("dgx-1-v100-not-root").values()
    for check in ("gdr.acs", "gdr.max-payload"):
        (told,) = findings(of, check)
        assert (told.status.value, told.judgement.reason) == ("skip", "no-permission")
        assert "run dgxcheck as root (sudo dgxcheck health)" in told.judgement.message


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({}, "pass"),
        (modules(), "warn"),
        (modules() | {f"names {MODULE}/ib_core/holders": ["nvidia_peermem"]}, "pass"),
        (modules() | {f"names {MODULE}/ib_core/holders": {"missing": "denied"}}, "skip no-permission"),
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
        (A100, {}, "dma-buf may do it"),
        (A100, {"text /proc/sys/kernel/osrelease": "5.4.0-42-generic\n"}, "Linux 5.12"),
        (A100, {"nvml nvmlSystemGetCudaDriverVersion": 11060}, "CUDA 11.7"),
        ("dgx-1-v100", {}, "begin with Turing"),
        ("dgx-1-p100", {}, "build nv_peer_mem"),
    ],
)
def test_dma_buf_is_never_advised_where_it_cannot_work(
    base: str, facts: dict[str, Json], word: str, tmp_path: Path
) -> None:
    of = box(changed(tmp_path, facts | modules("nvidia_peermem", "nv_peer_mem", base=base), base))
    reasons = dict(pair(of, "GPU0", "mlx5_0").reasons)
    assert word in reasons["gdr.peer-memory"].words
    assert said(of, "gdr.peer-memory") == ["skip not-configured"]


def test_only_ports_at_or_below_the_common_bridge_count(tmp_path: Path) -> None:
    of = box("dgx-1-v100")
    ends = [of.topology.device(name) for name in ("GPU2", "mlx5_1", "GPU3")]
    gpu2, hca, gpu3 = (end for end in ends if end is not None)
    assert between(of, gpu2, hca) == ["0000:08:00.0", "0000:09:08.0", "0000:09:14.0"]
    assert between(of, gpu2, gpu3) == ["0000:08:00.0", "0000:09:08.0", "0000:09:10.0"]
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


@pytest.mark.parametrize("how", ["kvm_intel", "mdev", "vfio_pci", "vfio-pci"])
def test_no_acs_command_where_virtual_machines_run(how: str, tmp_path: Path) -> None:
    names = open_source("dgx-1-v100").names(MODULE)
    assert not isinstance(names, Missing)
    facts = acs("0000:09:08.0", 0x1D)
    facts |= {f"link {PCI}/0000:02:00.0/driver": "../vfio-pci"} if how == "vfio-pci" else {}
    facts |= {f"names {MODULE}": [*names, how]}
    document: dict[str, Json] = {
        "schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": facts,
        "add": {f"text {MODULE}/{how}/refcnt": "3\n"},
    }  # fmt: skip
    of = box(_written(tmp_path / "fault.json", document))
    said_of_acs = dict(pair(of, "GPU2", "mlx5_1").reasons)["gdr.acs"]
    assert "virtual machines need that" in said_of_acs.judgement.message
    assert "setpci" not in said_of_acs.judgement.remedy
    assert bad(of, "gdr") == set()


@pytest.mark.parametrize("kind", [{"missing": "denied"}, {"missing": "absent"}])
def test_no_acs_command_while_groups_may_translate(kind: Json, tmp_path: Path) -> None:
    facts = acs("0000:09:08.0", 0x1D) | {f"link {PCI}/0000:8a:00.0/iommu_group": GROUP}
    document: dict[str, Json] = {
        "schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": facts, "add": {TYPE: kind}
    }  # fmt: skip
    of = box(_written(tmp_path / "fault.json", document))
    remedy = dict(pair(of, "GPU2", "mlx5_1").reasons)["gdr.acs"].judgement.remedy
    assert "setpci" not in remedy
    assert "whether an IOMMU translates is not known" in remedy


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


@pytest.mark.parametrize(
    ("limit", "due"), [("unlimited", "pass"), ("65536", "warn"), (str(1 << 40), "pass"), ("x", "unknown")]
)
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
    assert "as line 2 of /etc/systemd/system/slurmd.service.d/x.conf says" in told.message
    assert "put LimitMEMLOCK=infinity in line 2 of /etc/systemd/system/slurmd.service.d/x.conf" in told.remedy
    plain = limited(tmp_path, {}, limits=LOW)
    assert "systemctl edit slurmd.service" in plain.remedy
    assert " says" not in plain.message
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
    assert (f", as {named} says" in told.message) == (f"put unlimited in {named}" in told.remedy) == bool(place)


def test_expected_bandwidth_is_that_of_the_weakest_part() -> None:
    ready, narrow = (pair(box(spec), "GPU2", "mlx5_1") for spec in ("dgx-1-v100", "dgx-1-v100-hca-x8"))
    assert ready.expected_gbs == pytest.approx(11.25)  # nine tenths of 100 Gbit/s
    assert narrow.expected_gbs == pytest.approx(7.877 * 0.77, rel=1e-3)
    assert isinstance(pair(box("dgx-1-v100-port-down"), "GPU2", "mlx5_1").expected_gbs, Missing)


@pytest.mark.parametrize(
    ("spec", "by", "word"),
    [
        ("k80-x8-p2p-acs", "ACS of 0000:09:08.0", "setpci -s 0000:09:08.0"),
        ("k80-x8-p2p-broken", "", "neither ACS nor an IOMMU"),
        ("dgx-1-v100-iommu-dma", "an IOMMU that translates", "iommu=pt"),
        ("dgx-1-v100-hypervisor", "an IOMMU that translates", "leave an IOMMU"),
        ("dgx-1-v100-not-root", "", "as root"),
    ],
)
def test_what_stops_two_gpus(spec: str, by: str, word: str) -> None:
    of = box(spec)
    a, b = (of.topology.device(name) for name in ("GPU2", "GPU3"))
    assert a is not None
    assert b is not None
    found = stopped(of, a, b)
    assert found.by == by
    assert word in found.remedy
    assert "setpci" not in found.remedy or by.startswith("ACS")
