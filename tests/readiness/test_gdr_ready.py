"""GPUDirect RDMA: what all preconditions make of a pair, and what ``dgxcheck topo --rdma`` prints of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabric_box import box as with_reference
from fabric_box import findings, said
from rdma_box import MODULE, PCI, pair
from sample import FAULTS
from test_health_checks import box, changed

from dgxcheck.bandwidth.rate import exactly, share
from dgxcheck.cli import main
from dgxcheck.facts.missing import Missing
from dgxcheck.output.topo.peers import text_of
from dgxcheck.readiness.gpudirect import readiness, remedy_of
from dgxcheck.topology.paths import NEAR


def verdicts(spec: str) -> dict[tuple[str, str], str]:
    of = box(spec)
    gpus, adapters = of.topology.gpus, of.topology.adapters
    return {(gpu.name, nic.name): readiness(of, gpu, nic).verdict for gpu in gpus for nic in adapters}


def test_each_gpu_of_a_dgx_1_is_ready_through_the_hca_behind_its_own_switch() -> None:
    found = verdicts("dgx-1-v100")
    ready = {ends for ends, verdict in found.items() if verdict == "ready"}
    assert ready == {(f"GPU{number}", f"mlx5_{number // 2}") for number in range(8)}
    assert {verdict for ends, verdict in found.items() if ends not in ready} == {"slow"}


@pytest.mark.parametrize("spec", ["dgx-1-p100", "dgx-1-v100", "dgx-a100", "k80-x8"])
def test_a_healthy_box_is_ready_where_an_hca_is_near(spec: str) -> None:
    of, found = box(spec), verdicts(spec)
    matrix = of.topology.links
    assert {ends for ends, verdict in found.items() if verdict == "ready"} == {
        ends for ends in found if matrix[ends].pci in NEAR
    }


BREAKS = {
    "acs-redirect": ("GPU2", "not ready", "gdr.acs", "0000:09:08.0"),
    "acs-everywhere": ("GPU2", "not ready", "gdr.acs", "0000:09:14.0"),
    "bar1-full": ("GPU5", "slow", "gdr.bar1", "15564 of 16384 MiB"),
    "bar1-small": ("GPU2", "not ready", "gdr.bar1", "256 MiB"),
    "bar1-unassigned": ("0000:8a:00.0", "not ready", "gdr.bar1", "unassigned"),
    "hca-x8": ("GPU2", "slow", "gdr.link", "0000:0c:00.0"),
    "hypervisor": ("GPU2", "not ready", "gdr.iommu", "vfio-pci"),
    "iommu-dma": ("GPU2", "not ready", "gdr.iommu", "DMA"),
    "max-payload": ("GPU3", "not ready", "gdr.max-payload", "0000:0b:00.0"),
    "memlock": ("GPU2", "not ready", "gdr.memlock", "64 KiB"),
    "memlock-jobs": ("GPU2", "not ready", "gdr.memlock", "jobs of slurmd"),
    "no-peermem": ("GPU2", "not ready", "gdr.peer-memory", "modprobe nvidia-peermem"),
    "not-root": ("GPU2", "cannot tell", "gdr.acs", "(in a container or a service: with CAP_SYS_ADMIN)"),
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
    (near,) = [nic for nic in of.topology.adapters if of.topology.link(device, nic).pci in NEAR]
    found = readiness(of, device, near)
    reasons = dict(found.reasons)
    assert (found.verdict, check in reasons) == (verdict, True)
    assert word in text_of(reasons[check]) + reasons[check].judgement.remedy


@pytest.mark.parametrize(("fault", "words"), [
    ("iommu-dma", "boot with iommu=pt"), ("memlock", "set unlimited in line 3"),
    ("memlock-jobs", "LimitMEMLOCK=infinity"), ("verbs-shut", "udev rule"),
    ("peermem-unregistered", "modprobe -r nvidia_peermem"), ("no-peermem", "run modprobe nvidia-peermem"),
    ("acs-redirect", "setpci -s 0000:09:08.0"), ("max-payload", "pci=pcie_bus_safe"), ("bar1-full", "terminate it"),
])  # fmt: skip
def test_the_matrix_tells_what_lifts_a_fault(fault: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "--rdma", "--from", f"dgx-1-v100-{fault}"]) == 0
    assert capsys.readouterr().out.count(words) == 1


@pytest.mark.parametrize("fault", ["hypervisor", "port-down", "gpu-lost"])
def test_the_matrix_advises_nothing_elsewhere(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["topo", "--rdma", "--from", f"dgx-1-v100-{fault}"])
    told = capsys.readouterr().out
    assert "iommu=pt" not in told
    assert "setpci" not in told


def test_every_shipped_fault_of_rdma_breaks_a_pair() -> None:
    shown = {f"dgx-1-v100-{fault}" for fault in BREAKS}
    of_rdma = {name for name in FAULTS if "gdr." in Path(FAULTS[name]).read_text(encoding="utf-8")}
    placed = {"dgx-1-v100-hca-missing", "dgx-1-v100-hca-not-started", "dgx-1-v100-hca-wrong-slot"}
    slow = {"dgx-1-v100-hca-gen1", "dgx-1-v100-read-request", "dgx-a100-read-request-all"}  # slow, but ready
    lost = {"dgx-1-v100-off-bus-at-load", "dgx-1-v100-xid-79"}
    warned = {"gb200-nvl72-ats"}  # whether transfers work with it is not documented
    another_box = {
        "dgx-a100-80-hca-gen3", "dgx-a100-no-mlx5-ib", "dgx-a100-ports-down", "dgx-b300-acs-gpu-port",
        "dgx-b200-no-mlx5-ib", "dgx-b300-nic-x8", "dgx-h100-hcas-gen4",
        "gb300-nvl72-acs-gpu-port", "gb300-nvl72-dma-missing", "gb300-nvl72-iommu-groups",
        "gb300-nvl72-nic-x8",
        "gh200-hca-x8", "gh200-port-down", "hgx-h100-acs-ports-of-a-switch",
        "hgx-h100-acs-switch", "hgx-h100-hca-x8",
    }  # fmt: skip
    between_gpus = {
        "big-sur-acs-switch", "k80-x8-p2p-acs", "k80-x8-p2p-acs-silent", "l40s-x8-acs-switch", "pcie-x4-init-denied",
        "pcie-x8-no-worker",
    }  # fmt: skip
    assert of_rdma - between_gpus - placed - lost - slow - warned - another_box <= shown


def test_a_gpu_apart_from_its_dma_function_is_not_ready() -> None:
    found = verdicts("gb300-nvl72-iommu-groups")
    assert (found["GPU0", "mlx5_1"], found["GPU1", "mlx5_0"]) == ("ready", "not ready")


def test_what_is_to_be_done_about_its_groups_is_shown() -> None:
    of = box("gb300-nvl72-iommu-groups")
    gpu, nic = of.topology.gpus[1], of.topology.adapters[0]
    found = dict(readiness(of, gpu, nic).reasons)["gdr.iommu-groups"]
    assert "pci=config_acs=" in remedy_of("gdr.iommu-groups", found)


def test_what_only_root_sees_is_never_ready() -> None:
    assert "ready" not in verdicts("dgx-1-v100-not-root").values()
    for check in ("gdr.acs", "gdr.max-payload"):
        (told,) = findings(box("dgx-1-v100-not-root"), check)
        assert (told.status.value, told.judgement.reason) == ("skip", "no-permission")
        assert "run dgxcheck as root (in a container or a service: with CAP_SYS_ADMIN)" in told.judgement.message


@pytest.mark.parametrize(
    ("fault", "gpu", "verdict", "word"),
    [
        ("gpu-lost", "0000:0a:00.0", "not ready", "GPU is lost"),
        ("xid-79", "0000:0a:00.0", "not ready", "GPU is lost"),
        ("off-bus-at-load", "0000:0a:00.0", "not ready", "no driver"),
        ("nouveau", "GPU0", "not ready", "nouveau"),
        ("mismatch", "GPU0", "cannot tell", "differ in version"),
        ("no-nvml", "GPU0", "cannot tell", "libnvidia-ml.so.1 not found"),
        ("container", "0000:85:00.0", "cannot tell", "may be hidden"),
    ],
)
def test_a_gpu_that_nvml_does_not_list_is_never_ready(fault: str, gpu: str, verdict: str, word: str) -> None:
    of = box(f"dgx-1-v100-{fault}")
    device = of.topology.device(gpu)
    assert device is not None
    found = [readiness(of, device, nic) for nic in of.topology.adapters]
    assert {each.verdict for each in found} == {verdict}
    assert all(each.reasons[0][0] == "gpu.lost" and word in text_of(each.reasons[0][1]) for each in found)


NVML = "nvml nvmlDeviceGet"
UNSEEN = (
    f"text {PCI}/0000:0a:00.0/resource", f"data {PCI}/0000:09:08.0/config", f"data {PCI}/0000:0a:00.0/config",
    f"link {PCI}/0000:0a:00.0/iommu_group", f"link {PCI}/0000:0c:00.0/iommu_group", f"names {MODULE}",
    f"text {PCI}/0000:0a:00.0/max_link_speed", "names /dev/infiniband", "text /proc/cpuinfo", "text /proc/self/limits",
    "text /sys/class/infiniband/mlx5_1/ports/1/state", "text /sys/class/infiniband/mlx5_1/ports/1/rate",
    "names /sys/class/infiniband/mlx5_1/ports", f"{NVML}BAR1MemoryInfo 0000:0a:00.0", f"{NVML}Count",
)  # fmt: skip


@pytest.mark.parametrize("key", UNSEEN)
@pytest.mark.parametrize("gap", ["denied", "garbled", "unrecorded"])
def test_what_was_not_seen_is_never_ready(key: str, gap: str, tmp_path: Path) -> None:
    of = box(changed(tmp_path, {key: {"missing": gap}}))
    gpu, hca = of.topology.device("0000:0a:00.0"), of.topology.device("mlx5_1")
    assert gpu is not None
    assert hca is not None
    assert readiness(of, gpu, hca).verdict == "cannot tell"


def test_the_size_of_memory_may_be_unknown(tmp_path: Path) -> None:
    of = box(changed(tmp_path, {f"{NVML}MemoryInfo 0000:0a:00.0": {"missing": "denied"}}))
    assert pair(of, "GPU2", "mlx5_1").verdict == "cannot tell"
    assert said(of, "gdr.bar1") == ["pass"] * 8


def test_a_board_that_does_not_count_what_is_taken_of_bar1(tmp_path: Path) -> None:
    of = box(changed(tmp_path, {f"{NVML}BAR1MemoryInfo 0000:0a:00.0": {"missing": "unsupported"}}))
    assert pair(of, "GPU2", "mlx5_1").verdict == "ready"


def test_expected_bandwidth_is_that_of_the_weakest_part() -> None:
    ready, narrow = (pair(box(spec), "GPU2", "mlx5_1") for spec in ("dgx-1-v100", "dgx-1-v100-hca-x8"))
    assert ready.expected == exactly(11.25)  # nine tenths of 100 Gbit/s
    assert narrow.expected.least == pytest.approx(7.877 * 0.75, rel=1e-3)
    assert narrow.expected.most == pytest.approx(7.877 * share(256, "write"), rel=1e-3)
    assert isinstance(pair(box("dgx-1-v100-port-down"), "GPU2", "mlx5_1").expected.most, Missing)
