"""Several outputs of one box in one text: what joins them, what leads, what is counted, and what is not said."""

from __future__ import annotations

from pathlib import Path

import pytest

from dgxcheck.assessment import Request, assess, examine
from dgxcheck.cli import main
from dgxcheck.facts.host import STATED_NAMED
from dgxcheck.facts.missing import Json
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.readers.derived import completed
from dgxcheck.readers.kernel_log.excerpt import DOMAIN
from dgxcheck.readers.listing import NO_HANDLE

BUSES = ("07", "0a", "44", "47")
ROWS = [["X", "PIX", "SYS", "SYS"], ["PIX", "X", "SYS", "SYS"], ["SYS", "SYS", "X", "PIX"], ["SYS", "SYS", "PIX", "X"]]


def matrix(count: int = 4) -> str:
    head = "\t".join(["", *(f"GPU{n}" for n in range(count)), "CPU Affinity", "NUMA Affinity"])
    rows = ("\t".join([f"GPU{n}", *row[:count], f"{8 * n}-{8 * n + 7}", str(n // 2)]) for n, row in enumerate(ROWS))
    return "\n".join([head, *list(rows)[:count], ""])


def lspci(*buses: str) -> str:
    return "".join(f"{bus}:00.0 3D controller: NVIDIA Corporation GA100 [A100 PCIe 40GB] (rev a1)\n" for bus in buses)


CSV = "index, name, pci.bus_id\n" + "".join(
    f"{n}, NVIDIA A100-PCIE-40GB, 00000000:{bus.upper()}:00.0\n" for n, bus in enumerate(BUSES)
)


@pytest.mark.parametrize(("text", "names", "label"), [
    (CSV + matrix(), ["GPU0", "GPU1", "GPU2", "GPU3"], "PIX"),
    (lspci(*BUSES) + matrix(), ["GPU0", "GPU1", "GPU2", "GPU3"], "PIX"),
    (lspci("44") + matrix(), ["GPU@0000:44:00.0", "GPU0", "GPU1", "GPU2", "GPU3"], "PIX"),
    (lspci(*BUSES) + matrix(2), [*(f"GPU@0000:{bus}:00.0" for bus in BUSES), "GPU0", "GPU1"], "PIX"),
    (CSV + matrix(2), ["GPU0", "GPU1", "GPU2", "GPU3"], "PIX"),
])  # fmt: skip
def test_a_matrix_is_joined_by_evidence(text: str, names: list[str], label: str, tmp_path: Path) -> None:
    """A GPU of which only the bus id is known is none of the matrix's as far as the text tells."""
    path = tmp_path / "mail.txt"
    path.write_text(text)
    topology = examine(str(path)).topology
    assert [gpu.name for gpu in topology.gpus] == names
    assert topology.links["GPU0", "GPU1"].label == label
    shown = [topology.device(f"GPU{n}") for n in range(2)]
    assert [(gpu.cpu_affinity, gpu.numa_node) for gpu in shown if gpu] == [("0-7", 0), ("8-15", 0)]


def test_what_is_only_named_or_down_is_not_ok(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mail.txt"
    port = "\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Disabled\n\t\tRate: 10\n\t\tLink layer: InfiniBand\n"
    path.write_text(f"{CSV}\nCA 'mlx5_1'\n\tCA type: MT4123\n\tNumber of ports: 1\n{port}")
    assert main(["health", "--from", str(path)]) == 3
    states = {line.split()[0]: line.split()[2] for line in capsys.readouterr().out.splitlines()
              if line.startswith(("GPU0", "GPU3", "mlx5_1"))}  # fmt: skip
    assert states == {"GPU0": "?", "GPU3": "?", "mlx5_1": "?"}


def test_iommu_groups_have_the_type_that_the_kernel_gives_by_default() -> None:
    to = {"iommu_group": "../../../../kernel/iommu_groups/42", "driver": "../../../../bus/pci/drivers/nvidia"}
    facts: dict[str, Json] = {f"link {PCI_DEVICES}/0000:07:00.0/{name}": link for name, link in to.items()}
    facts |= {f"link {PCI_DEVICES}/0000:0a:00.0/iommu_group": {"missing": "absent"}, "stated iommu-group": "9"}
    assert completed(facts) == facts
    derived: dict[str, Json] = {"text /sys/kernel/iommu_groups/42/type": "DMA\n"}
    assert completed(facts | {DOMAIN: "DMA"}) == facts | derived


@pytest.mark.parametrize(("why", "on_pci", "gap", "faults"), [
    ("Not Found", False, "garbled", []), ("Not Found", True, "garbled", []), ("Unknown Error", True, "lost", []),
    ("GPU is lost.  Reboot the system to recover this GPU", False, None, ["gpu-lost"]),
    ("GPU requires reset", False, None, ["reset-required"]),
])  # fmt: skip
def test_a_gpu_that_could_not_be_opened(why: str, on_pci: bool, gap: str | None, faults: list[str]) -> None:
    """Beside files of PCI functions, which health judges, it is a gap; else what it is said to be."""
    facts: dict[str, Json] = {f"{NO_HANDLE} 0000:07:00.0": why}
    facts |= {f"text {PCI_DEVICES}/0000:07:00.0/class": "0x030200\n"} if on_pci else {}
    found = completed(facts)
    handle = found.get("nvml nvmlDeviceGetHandleByIndex 0", {})
    assert isinstance(handle, dict)
    assert handle.get("missing") == gap
    assert [fact["fault"] for key, fact in found.items() if "report" in key and isinstance(fact, dict)] == faults


def test_functions_of_gpus_are_all_where_a_list_of_the_driver_is_among_them() -> None:
    facts: dict[str, Json] = {f"text {PCI_DEVICES}/0000:07:00.0/class": "0x030200\n"}
    assert STATED_NAMED in completed(facts)
    assert STATED_NAMED not in completed(facts | {"text /proc/driver/nvidia/gpus/0000:07:00.0/information": "x"})
    assert STATED_NAMED not in completed(facts | {"nvml nvmlDeviceGetCount": 1})


def xid(number: int, seconds: float, text: str = "pid=1, name=a") -> str:
    return f"[{seconds:.6f}] NVRM: Xid (PCI:0000:44:00): {number}, {text}\n"


@pytest.mark.in_ci
def test_a_flood_is_counted_whole(tmp_path: Path) -> None:
    path = tmp_path / "dmesg.txt"
    aer = "[{0}] pcieport 0000:40:01.1: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)\n"
    path.write_text("".join(xid(31, 1000 + n) for n in range(8844)) + "".join(
        aer.format(f"{9900 + n}.000000") for n in range(2500)))  # fmt: skip
    found = {f.id: f.judgement.message for f in assess(str(path), Request()).findings if f.subject.bdf}
    assert "8844 times" in found["kernel.xid"]
    assert "2500 corrected, at least 500 a day" in found["kernel.aer"]


def test_the_worst_finding_of_a_component_leads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dmesg.txt"
    path.write_text(xid(48, 10) + xid(63, 11) + xid(79, 20, "pid=1, GPU has fallen off the bus."))
    assert main(["health", "--from", str(path)]) == 2
    assert capsys.readouterr().out.startswith("FAIL  GPU (44:00.0): fell off the bus (Xid 79)")


def test_earlier_boots_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "journal.txt"
    path.write_text(
        "-- Boot 0123456789abcdef0123456789abcdef --\n"
        "Feb 14 05:03:41 node kernel: NVRM: Xid (PCI:0000:44:00): 79, pid=1, GPU has fallen off the bus.\n"
        "Feb 14 05:03:42 node kernel: NVRM: Xid (PCI:0000:84:00): 43, pid=1, Ch 00000008\n"
        "-- Boot fedcba9876543210fedcba9876543210 --\n"
        "Feb 15 06:03:41 node kernel: Linux version 5.15.0-91-generic (b@c) #101-Ubuntu SMP\n"
        "Feb 15 06:10:41 node kernel: NVRM: Xid (PCI:0000:84:00): 13, pid=1, name=python, Graphics Exception\n"
    )
    assert main(["health", "--from", str(path)]) == 1
    out = capsys.readouterr().out
    assert "GPU (44:00.0): fell off the bus in 1 earlier boot of this log, not since" in out
    assert "Xid 43 (GPU stopped processing) in 1 earlier boot of this log" in out


def test_a_gpu_that_nvidia_smi_names_by_its_number_alone_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "mail.txt"
    path.write_text("Unable to determine the device handle for GPU1: Unknown Error\n")
    (found,) = (f for f in assess(str(path), Request()).findings if f.id == "tools.reports")
    assert (found.subject.name, found.judgement.message) == ("GPU1", "nvidia-smi: cannot open the GPU: Unknown Error")


UNANSWERED = ("n7:21:25 [3] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.9<47291> with"
              " status=12 opcode=32765 len=0 vendor err 129 (Recv) localGid fe80::1 remoteGids fe80::2 hca mlx5_4\n")
WATCHDOG = ("[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL("
            "SeqNum=8123, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600032 milliseconds"
            " before timing out.\n")  # fmt: skip
LOST = "[91201.331112] mlx5_core 0000:4b:00.0 ib4: Link down\n"
OF_FIRMWARE = "[91201.431112] mlx5_core 0000:4b:00.0: poll_health:835:(pid 0): device's health compromised\n"
MODULE = "[91201.431112] mlx5_core 0000:4b:00.0: Port module event[error]: module 0, Cable error, Bus stuck\n"
HEAT = "[91201.421112] mlx5_core 0000:4b:00.0: temp_warn:181:(pid 0): High temperature on sensors 0\n"
RETRIED = ("[1716212121.123456] [n7:21:0] ib_mlx5_log.c:177  UCX  ERROR Transport retry count exceeded on mlx5_{}:1/IB"
           " (synd 0x15 vend 0x81 hw_synd 0/0)\n")  # fmt: skip


def ibstat(state: str, physical: str, sm_lid: int = 1) -> str:
    """Of four ports, of which this is the last."""
    ports = [*[("Active", "LinkUp", 1)] * 3, (state, physical, sm_lid)]
    return "".join(
        f"CA 'mlx5_{number}'\n\tCA type: MT4129\n\tFirmware version: 28.39.1002\n\tPort 1:\n\t\tState: {now}\n"
        f"\t\tPhysical state: {link}\n\t\tRate: 400\n\t\tBase lid: {number}\n\t\tSM lid: {manager}\n"
        "\t\tLink layer: InfiniBand\n"
        for number, (now, link, manager) in enumerate(ports, 1)
    )


@pytest.mark.parametrize(("text", "component"), [
    (LOST + ibstat("Down", "Polling") + UNANSWERED, "port/mlx5_4/1"),
    (ibstat("Down", "Polling") + WATCHDOG, "port/mlx5_4/1"),
    (ibstat("Initializing", "LinkUp", 0) + UNANSWERED, "subnet-manager/at port mlx5_4/1"),
    (LOST + MODULE, "port/ib4"),
    (LOST + "ConnectX7(rev:0)  /dev/mst/mt4129_pciconf0  5e:00.0  mlx5_1  net-ib1  0\n\nCA 'mlx5_1'\n\tPort 1:\n"
     "\t\tState: Active\n", "port/ib4"),
    (LOST + OF_FIRMWARE + UNANSWERED, "hca/0000:4b:00.0"),
    ("[12001.331112] NVRM: Xid (PCI:0000:84:00): 79, GPU has fallen off the bus.\n" + WATCHDOG, "gpu/GPU@0000:84:00.0"),
    ("[12001.331112] NVRM: Xid (PCI:0000:84:00): 95, pid=11, name=p, Uncontained: LTC TAG (0x2,0x0)\n" + WATCHDOG,
     "gpu/GPU@0000:84:00.0"),
    ("".join(LOST.replace("4", str(n)) for n in (4, 5, 6)), "fabric/InfiniBand fabric"),
    (ibstat("Down", "Disabled"), "port/mlx5_4/1"),
    (ibstat("Down", "Polling").replace("State: Active", "State: Down").replace("LinkUp", "Polling"),
     "fabric/InfiniBand fabric"),
    (ibstat("Active", "LinkUp").replace("28.39.1002", "28.36.1010", 1), "hca/mlx5_1"),
    ("[91201.331112] NETDEV WATCHDOG: ib3 (mlx5_core): transmit queue 14 timed out\n", "interface/ib3"),
    (HEAT + MODULE.replace("Bus stuck", "High Temperature") + LOST, "hca/0000:4b:00.0"),
    ("".join(map(RETRIED.format, range(3))), "host/host"),
])  # fmt: skip
def test_what_a_job_and_a_log_say_has_one_cause(text: str, component: str, tmp_path: Path) -> None:
    path = tmp_path / "mail.txt"
    path.write_text(text)
    (cause,) = assess(str(path), Request()).diagnosis.causes
    assert f"{cause.component.kind}/{cause.component.name}" == component
    assert WATCHDOG not in text or cause.faults[-1].word == "collective-timeout"
