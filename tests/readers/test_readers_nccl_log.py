"""NCCL's log: GPUs and HCAs of one host, how data moves, and warnings by what they stand for."""

from __future__ import annotations

from typing import Any

import pytest
from readers_text import one, unread

from dgxcheck.facts.missing import Json
from dgxcheck.readers.nccl import log
from dgxcheck.readers.nccl.warnings import bdf_of

IB = "/sys/class/infiniband"
INFO = """\
box:10:20 [0] NCCL INFO NCCL version 2.21.5+cuda12.4
box:10:20 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_3:1/RoCE [RO]; OOB eno1:10.0.0.1<0>
box:10:20 [0] NCCL INFO comm 0x55 rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 18000 commId 0x5 - Init COMPLETE
box:11:21 [1] NCCL INFO comm 0x56 rank 1 nranks 16 cudaDev 1 nvmlDev 1 busId 9b000 commId 0x5 - Init COMPLETE
"""
VIA = "box:10:20 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0"
SENT = "box:10:20 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0"
NO_GDR = "box:10:20 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"
GDR = "box:10:20 [0] NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'"
FAR = "box:10:20 [0] NCCL INFO GPU Direct RDMA Disabled for GPU 18000 / HCA 0 (distance 5 > 4)"
SOCKET = "box:10:20 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0"


def reports(text: str) -> dict[str, Any]:
    (found,) = log.read_log(tuple(text.splitlines()))
    return {key.removeprefix("stated report "): fact for key, fact in found.facts.items() if "stated report" in key}


def warn(text: str, where: str = "misc/ibvwrap.cc:10", device: int = 3) -> dict[str, Any]:
    return reports(f"box:1:2 [{device}] {where} NCCL WARN {text}")


def test_lines_that_lost_who_wrote_them() -> None:
    bare = "\n".join(line.partition("[0] ")[2] for line in INFO.splitlines()[1:2])
    found = one(log.read_log, f"{bare}\nNCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\nNCCL INFO is a setting\n")
    assert found.facts[f"names {IB}"] == ["mlx5_0", "mlx5_3"]
    assert found.understood == {0, 1}


def test_a_warning_without_its_writer_behind_ranks() -> None:
    version = "[1] n2:5:6 [0] NCCL INFO cudaDriverVersion 12080"
    text = f"{version}\nNCCL WARN socketProgress: Connection closed by remote peer n3<4>"
    assert [fact["fault"] for fact in one(log.read_log, text).facts.values() if isinstance(fact, dict)] == [
        "transfer-failed"
    ]


def test_gpus_and_ports_of_one_host() -> None:
    found = one(log.read_log, INFO)
    assert found.tool == "NCCL 2.21.5"
    assert unread([found], INFO) == []
    assert found.facts["nvml nvmlDeviceGetHandleByIndex 1"] == "0000:9b:00.0"
    assert found.facts[f"names {IB}"] == ["mlx5_0", "mlx5_3"]
    assert found.facts[f"text {IB}/mlx5_3/ports/1/link_layer"] == "Ethernet\n"


def test_each_host_has_its_own_gpus() -> None:
    both = INFO + "other:1:2 [1] NCCL WARN Cuda failure 'uncorrectable ECC error encountered'\n"
    box, other = log.read_log(tuple(both.splitlines()))
    assert (box.host, other.host) == ("box", "other")
    assert box.facts == one(log.read_log, INFO).facts
    assert [*other.facts] == ["stated report GPU1 NCCL-ecc"]
    assert unread([box, other], both) == []


def test_a_part_of_the_gpus_keeps_its_numbers() -> None:
    part = "\n".join(line for line in INFO.splitlines() if "nvmlDev 0" not in line)
    assert [key for key in one(log.read_log, part).facts if key.startswith("nvml")] == [
        "nvml nvmlDeviceGetHandleByIndex 1"
    ]


@pytest.mark.parametrize(("old", "new", "listed"), [
    ("nvmlDev 1", "nvmlDev 0", 0), ("busId 9b000", "busId 18000", 0), ("busId 9b000", "busId 9c000", 2),
])  # fmt: skip
def test_a_list_that_contradicts_itself_is_none(old: str, new: str, listed: int) -> None:
    assert sum(key.startswith("nvml") for key in one(log.read_log, INFO.replace(old, new)).facts) == listed


def test_numbers_of_cuda_are_no_list() -> None:
    """CUDA_VISIBLE_DEVICES=4,5 makes GPU4 number 0; a warning is about the GPU all the same."""
    text = """\
box:1:2 [0] NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 busId 87000 - Init COMPLETE
box:1:3 [1] NCCL INFO comm 0x6 rank 1 nranks 2 cudaDev 1 busId 90000 - Init COMPLETE
box:1:3 [1] init.cc:1 NCCL WARN Cuda failure 'uncorrectable ECC error encountered'
"""
    found = one(log.read_log, text).facts
    assert not [key for key in found if key.startswith("nvml")]
    assert [key for key in found if "report" in key] == ["stated report 0000:90:00.0 NCCL-ecc"]


@pytest.mark.parametrize(
    ("bus", "bdf"), [("9b000", "0000:9b:00.0"), ("100101c0", "0100:10:1c.0"), ("1a10", None), ("9b00f", None)]
)
def test_bus_ids_without_separators(bus: str, bdf: str | None) -> None:
    assert bdf_of(bus) == bdf


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ([VIA.replace("IB/0", "AWS Libfabric/2/GDRDMA")], {"host NCCL-gdr": "pass"}),
        ([VIA.replace("IB/0", "AWS Libfabric/2")], {}),  # which does not tell why
        ([f"{VIA}/GDRDMA", f"{SENT}/GDRDMA"], {"host NCCL-gdr": "pass"}),
        ([f"{VIA}/GDRDMA", SENT], {"host NCCL-gdr": "note"}),  # sent without it, as NCCL does before Ampere
        ([f"{VIA}/GDRDMA", VIA], {"host NCCL-gdr": "note"}),
        ([f"{VIA}/GDRDMA", SOCKET], {"host NCCL-gdr": "pass"}),
        ([VIA], {"host NCCL-gdr": "warn"}),
        ([NO_GDR, VIA], {"host NCCL-gdr": "warn"}),
        ([SENT], {}),
        ([INFO, GDR, VIA], {}),  # NCCL's choice
        ([INFO, FAR, VIA], {}),
        ([SOCKET], {}),  # nobody says that there is an HCA
        ([INFO, SOCKET], {"host NCCL-2.21.5-tcp": "warn"}),
        (
            ["box:10:20 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.", SOCKET],
            {"host NCCL-tcp": "warn", "host NCCL-settings": "note"},
        ),
        (["box:10:20 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 0.", SOCKET], {"host NCCL-settings": "note"}),
        (["box:10:20 [0] NCCL INFO NET/IB : No device found."], {"host NCCL-network": "note"}),
        (
            [
                "box:10:20 [0] NCCL INFO NET : Using interface ib0:10.0.0.1<0>",
                "NCCL INFO Using internal Network Socket",
            ],
            {"host NCCL-network": "note"},
        ),
        (["NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0> [1]eth1:10.0.1.1<0>"], {"host NCCL-network": "note"}),
        (["box:10:20 [0] NCCL INFO Using network AWS Libfabric"], {"host NCCL-network": "note"}),
    ],
)
def test_how_data_moves(lines: list[str], wanted: dict[str, str]) -> None:
    text = "\n".join(lines)
    found = log.read_log(tuple(text.splitlines()))
    outcomes = {
        key.split()[-2] + " " + key.split()[-1].rpartition("-")[2]: fact["outcome"]
        for part in found
        for key, fact in part.facts.items()
        if "report" in key and isinstance(fact, dict)
    }
    assert outcomes == {f"host {key.rpartition('-')[2]}": outcome for key, outcome in wanted.items()}


MODIFY = (
    "Call to ibv_modify_qp failed with {}, on dev mlx5_3:1, curr state INIT, next state RTR, local GID index 0,"
    " local GID {}, remote GID {}"
)


@pytest.mark.parametrize(
    ("text", "key", "fault"),
    [
        ("NET/IB : Got completion from peer 10.1.1.1<5> with status=12 opcode=0 len=0 vendor err 129",
         "host NCCL-ib-completion", "transfer-unanswered"),
        ("NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129",
         "host NCCL-ib-completion", "transfer-unanswered"),
        ("NET/IB : Got completion from peer 10.1.1.1<5> with error 4, opcode 0, len 0, vendor err 81",
         "host NCCL-ib-completion", "rdma-access"),
        ("Call to ibv_create_cq failed with error Cannot allocate memory", "host NCCL-memlock", "memlock"),
        ("Call to ibv_modify_qp failed with error Connection timed out", "host NCCL-ib-path", "transfer-unanswered"),
        ("Call to ibv_modify_qp failed with 110 Connection timed out", "host NCCL-ib-path", "transfer-unanswered"),
        ("Call to ibv_modify_qp failed with error Invalid argument", "host NCCL-ib-call", "transfer-failed"),
        (MODIFY.format("110 Connection timed out", "fe80::a2", "::ffff:10.3.1.9"), "host NCCL-ib-gid",
         "transfer-unanswered"),
        (MODIFY.format("61 No data available", "::", "::ffff:10.3.1.9"), "host NCCL-ib-gid", "transfer-failed"),
        (MODIFY.format("110 Connection timed out", "::ffff:10.3.1.7", "::ffff:10.3.1.9"), "host NCCL-ib-path",
         "transfer-unanswered"),
        (MODIFY.format("22 Invalid argument", "::ffff:10.3.1.7", "::"), "host NCCL-ib-call", "transfer-failed"),
        ("Call to ibv_reg_mr_iova2 failed with error Bad address", "host NCCL-ib-register", "rdma-access"),
        ("NET/IB: Got completion from peer 10.1.1.1<5> with status=IBV_WC_RNR_RETRY_EXC_ERR(13) opcode=IBV_WC_SEND(0)",
         "host NCCL-ib-completion", "transfer-failed"),
        ("NET/IB : mlx5_1:1 Got non-fatal async event: port error(10)", "mlx5_1/1 NCCL-ib-port", "port-down"),
        ("NET/IB : Got async event : port error", "host NCCL-ib-port", "port-event"),
        ("NET/IB : mlx5_3:1 async fatal event on QP (0x7) qpn=1 state=3: invalid request local work queue error",
         "host NCCL-ib-event", "transfer-failed"),
        ("NET/IB : mlx5_3:1 async fatal event: local catastrophic error", "mlx5_3 NCCL-ib-fatal", "hca-fatal"),
        ("NET/IB : Remote IB device is incompatible with the local [0]mlx5_0:1/RoCE. Try selecting NICs of only one",
         "host NCCL-link-layer", "program-error"),
        ("nvmlDeviceGetHandleByPciBusId() failed: GPU is lost", "GPU3 NCCL-lost", "gpu-lost"),
        ("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 18000", "host NCCL-launch", "program-error"),
        ("P2P is disabled between NVLINK connected GPUs 0 and 1. This should not be the case given ..",
         "host NCCL-p2p", "p2p-blocked"),
        ("Cuda failure 'uncorrectable ECC error encountered'", "GPU3 NCCL-ecc", "ecc-uncorrected"),
        ("Cuda failure 802 'system not yet initialized'", "host NCCL-fabric", "fabric-manager-down"),
        ("Cuda failure 'an illegal memory access was encountered'", "host NCCL-kernel", "program-error"),
        ("Cuda failure 2 'out of memory'", "host NCCL-memory-full", "program-error"),
        ("Failed to CUDA calloc async 4 bytes", "host NCCL-memory-full", "program-error"),
        ("Cuda failure 'invalid device ordinal'", "host NCCL-devices", "program-error"),
        ("Cuda failure 'unknown error'", "host NCCL-cuda", "tool-error"),
        ("Bootstrap : no socket interface found", "host NCCL-interface", "transfer-failed"),
        ("NET/IB : Unable to open device mlx5_2", "host NCCL-ib-open", "verbs"),
        ("Call to ibv_open_device failed", "host NCCL-ib-open", "verbs"),
        ("NET/IB: Device 1 marked as failed. Initiating recovery? yes", "host NCCL-ib-failed", "transfer-failed"),
        ("Call to ibv_poll_cq() returned 5", "host NCCL-ib-call", "transfer-failed"),
        ("nvmlDeviceGetPciInfo() failed: GPU requires reset", "GPU3 NCCL-reset", "reset-required"),
        ("failed to peer with device 2(=3b000): 217 peer access is not supported between these two devices",
         "host NCCL-p2p", "p2p-blocked"),
        ("MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX channel configuration",
         "host NCCL-imex", "imex-nodes"),
        ("NET/Socket : peer 10.0.0.2<5> message truncated : receiving 1024 bytes instead of 512.",
         "host NCCL-mismatch", "program-error"),
        ("AllReduce : invalid root 8 (root should be in the 0..8 range)", "host NCCL-usage", "program-error"),
        ("socketStartConnect: Connect to 10.0.0.2<4000> failed : Connection refused",
         "host NCCL-socket", "no-connection"),
        ("Call to connect to 10.0.0.2<4000> returned Connection timed out, retrying",
         "host NCCL-socket", "no-connection"),
        ("socketStartConnect: Connect to 10.0.0.2<45763> failed : Software caused connection abort",
         "host NCCL-socket", "no-connection"),
        ("socketPollConnect: Connect to 10.0.0.4<56849> returned 113(No route to host) errno 115(Operation now in"
         " progress)", "host NCCL-socket", "no-connection"),
        ("Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'x'",
         "host NCCL-nvls", "fabric-manager-error"),
        ("Error : something new", "host NCCL-warning", "tool-error"),
    ],
)  # fmt: skip
def test_warnings(text: str, key: str, fault: str) -> None:
    found = warn(text)
    assert [*found] == [key]
    assert found[key]["fault"] == fault


@pytest.mark.parametrize(
    "text",
    [
        "NET/IB : mlx5_1:1 GID table changed",
        "NET/IB : mlx5_1:1 Got non-fatal async event: port active(9)",
        "NET/IB : mlx5_1:1 Got non-fatal async event: client reregistration(15)",
        "Could not find real path of /sys/class/pci_bus/0000:00/../../0000:00:1e.0",
    ],
)
def test_what_working_machines_log(text: str) -> None:
    """It is known, be it that the log holds nothing else."""
    line = f"box:1:2 [0] transport/net_ib.cc:1 NCCL WARN {text}"
    found = one(log.read_log, line)
    assert not found.facts
    assert unread([found], line) == []


UUID = "3143b15bc2cd192b.8cc9b5473fb5b93"
FABRIC = (
    "a-04:7:8 [1] NCCL INFO MNNVL busId 0x901000 fabric UUID 3143b15bc2cd192b.8cc9b5473fb5b93"
    " cliqueId 0x7ffe state 3 healthMask 0xa9"
)


def test_what_nvml_answers_of_the_fabric() -> None:
    """The UUID is two little-endian numbers."""
    found = one(log.read_log, FABRIC).facts
    assert found["nvml nvmlDeviceGetGpuFabricInfo 0009:01:00.0"] == {
        "state": 3, "healthMask": 0xA9, "cliqueId": 0x7FFE, "clusterUuid": "2b19cdc2-5bb1-4331-935b-fb73549bcc08"
    }  # fmt: skip
    assert found["stated gpu-without-number 0009:01:00.0"] is True


def test_a_fabric_that_the_environment_makes() -> None:
    setting = "a-04:7:8 [1] NCCL INFO NCCL_MNNVL_UUID set by environment to 1.\n"
    found = one(log.read_log, setting + FABRIC.replace(UUID, "1.1")).facts
    assert found["nvml nvmlDeviceGetGpuFabricInfo 0009:01:00.0"] == {"state": 3, "healthMask": 0xA9}


@pytest.mark.parametrize(
    ("why", "own", "far", "said"),
    [
        ("110 Connection timed out", "fe80::a2", "::ffff:10.3.1.9", "its GID fe80::a2 (index 0) and that of the other"),
        ("61 No data available", "::", "::ffff:10.3.1.9", "its GID index 0 is empty"),
        ("110 Connection timed out", "::ffff:10.3.1.7", "::ffff:10.3.1.9", "timed out"),
        ("22 Invalid argument", "::ffff:10.3.1.7", "::", "Invalid argument"),
    ],
)
def test_where_and_why_a_queue_pair_was_not_connected(why: str, own: str, far: str, said: str) -> None:
    (fact,) = warn(MODIFY.format(why, own, far)).values()
    assert fact["text"].startswith(f"ibv_modify_qp failed at mlx5_3: {said}")


def test_the_hca_of_a_transfer_is_named() -> None:
    text = (
        "NET/IB: Got completion from peer 10.1.1.1<5> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0)"
        " vendor_err=129 localGid fe80::1 remoteGids fe80::2 hca mlx5_7"
    )
    assert warn(text)["host NCCL-ib-completion"]["text"].endswith("at mlx5_7 to 10.1.1.1")


def test_a_transfer_whose_line_lost_who_wrote_it() -> None:
    facts = reports("NET/IBP:Got completion from peer 10.1.1.1<5> with status=12 opcode=1 len=0 vendor err 129 (Send)")
    assert facts["host NCCL-ib-completion"]["fault"] == "transfer-unanswered"


def test_what_follows_from_another_error_is_left_out() -> None:
    text = """\
box:1:2 [0] net_ib.cc:1 NCCL WARN NET/IB : Got completion with error 5, opcode 1, len 0, vendor err 249
box:1:2 [0] net_ib.cc:1 NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129
box:1:2 [0] socket.cc:1 NCCL WARN socketProgress: Connection closed by remote peer other<3>
"""
    assert {fact["fault"] for fact in reports(text).values()} == {"transfer-unanswered"}
    first = "\n".join(text.splitlines()[::2])
    assert {fact["outcome"] for fact in reports(first).values()} == {"warn"}


def test_what_cuda_refuses_is_no_cause_beside_the_fabric() -> None:
    cuda = "box:1:2 [0] transport/p2p.cc:275 NCCL WARN Cuda failure 800 'operation not permitted'"
    fabric = "box:1:2 [0] init.cc:655 NCCL WARN MNNVL (cliqueSize 8) is available but not working on some system"
    assert {fact["fault"] for fact in reports(f"{cuda}\n{fabric}").values()} == {"imex-nodes"}
    assert {fact["fault"] for fact in reports(cuda).values()} == {"tool-error"}


def test_equal_warnings_are_counted() -> None:
    text = "\n".join(["box:1:2 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion with error 12, x"] * 5)
    assert reports(text)["host NCCL-ib-completion"]["count"] == 5


def test_warnings_of_another_kind_are_counted_whatever_their_numbers() -> None:
    text = "\n".join(
        f"box:1:{at} [{at}] graph/x.cc:1 NCCL WARN Something new at 0x7f{at} of rank {at}" for at in range(4)
    )
    assert [(fact["count"], fact["text"]) for fact in reports(text).values()] == [
        (4, "Something new at 0x7f0 of rank 0")
    ]


GRAPH = """\
box:1:2 [0] NCCL INFO === System : maxBw 24.0 totalBw 24.0 ===
box:1:2 [0] NCCL INFO CPU/0-0 (1/1/2)
box:1:2 [0] NCCL INFO + PCI[24.0] - GPU/0-2a000 (0)
box:1:2 [0] NCCL INFO + SYS[10.0] - CPU/0-1
box:1:2 [0] NCCL INFO               + PCI[24.0] - GPU/0-ab000 (1)
box:1:2 [0] NCCL INFO + PCI[24.0] - GPU/1-3b000 (9)
box:1:2 [0] NCCL INFO GPU/0-2a000 :GPU/0-2a000 (0/5000.0/LOC) GPU/0-ab000 (3/10.0/SYS) GPU/0-3b000 (2/24.0/PHB)\
 GPU/1-9b000 (4/10.0/SYS) GPU/0-1a10 (2/24.0/PIX)
box:1:2 [0] NCCL INFO GPU/1-9b000 :GPU/0-2a000 (4/10.0/SYS)
"""


def test_the_system_graph() -> None:
    found = one(log.read_log, GRAPH)
    assert unread([found], GRAPH) == []
    gpus = sorted(key.split("/")[5] for key in found.facts if key.endswith("/class"))
    assert gpus == ["0000:2a:00.0", "0000:3b:00.0", "0000:ab:00.0"]  # none of another host
    assert [key.split()[2:] for key in found.facts if key.startswith("stated label-pci")] == [
        ["0000:2a:00.0", "0000:ab:00.0"], ["0000:2a:00.0", "0000:3b:00.0"],
    ]  # fmt: skip
    assert found.facts["stated label-pci 0000:2a:00.0 0000:ab:00.0"] == "SYS"
    assert isinstance(found.facts["stated label-pci 0000:2a:00.0 0000:3b:00.0"], dict)  # PHB or NODE


SHARED = "box:1:2 [0] NCCL INFO Channel 00/02 : 0[0] -> 1[1] via SHM/direct/direct"
READ = "box:1:2 [0] NCCL INFO Channel 00/02 : {}[{}] -> {}[{}] via P2P/CUMEM/read"


@pytest.mark.parametrize(
    ("lines", "warned"),
    [
        (["GPU/0-18000 :GPU/0-18000 (0/5000.0/LOC) GPU/0-9b000 (1/60.0/NVL)"], True),
        (["GPU/0-18000 :GPU/0-18000 (0/5000.0/LOC) GPU/0-9b000 (1/60.0/PHB)"], False),
        (["GPU/0-18000 :GPU/0-9b000 (1/60.0/PIX)"], False),  # nor do others: GPUs without peer access
        (["GPU/0-18000 :GPU/0-9b000 (1/60.0/PIX) GPU/0-9c000 (1/60.0/PIX)",
          "Channel 00 : 1[9c000] -> 2[18000] via P2P/IPC"], True),
        (["Channel 00 : 1[9c000] -> 2[18000] via P2P/IPC"], False),
        (["Channel 00 : 0[0] -> 1[1] via P2P/indirect/2[2]"], False),
        (["Channel 00 : 1[1] -> 0[0] via SHM/direct/direct", "GPU/0-18000 :GPU/0-9b000 (1/60.0/NVL)"], True),
        (["NCCL_P2P_READ_ENABLE set by environment to 1.",
          *(READ.format(a, a, b, b) for a, b in ((0, 2), (0, 3), (1, 2), (1, 3)))], False),
        ([READ.format(0, 0, 2, 2), READ.format(1, 1, 2, 2)], False),  # bridges join pairs
        ([READ.format(a, a, b, b) for a, b in ((0, 2), (0, 3), (1, 2), (1, 3))], True),
    ],
)  # fmt: skip
def test_host_memory_between_gpus_that_could_do_without(lines: list[str], warned: bool) -> None:
    text = "\n".join(line if line.startswith("box:") else f"box:1:2 [0] NCCL INFO {line}" for line in lines)
    found = reports(f"{INFO}{text}\n{SHARED}\n{SHARED}\n")
    assert [*found] == (["host NCCL-shm"] if warned else [])
    if warned:
        disabled = "box:1:2 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1."
        again = reports(f"{INFO}{text}\n{SHARED}\n{disabled}\n")["host NCCL-shm"]["text"]
        assert again == f"{found['host NCCL-shm']['text']}; NCCL_P2P_DISABLE is set to 1"
    also = SHARED.replace("SHM/direct/direct", "P2P/IPC")
    assert reports(f"{INFO}{text}\n{SHARED}\n{also}\n") == {}


def test_access_that_cuda_does_not_give() -> None:
    text = "box:1:2 [0] NCCL INFO Could not enable P2P between dev 0(=18000) and dev 1(=9b000)"
    found = one(log.read_log, text)
    assert found.facts["measure access 0000:18:00.0 0000:9b:00.0"] == {
        "value": False, "unit": "", "method": "channel of NCCL", "tool": "NCCL", "how": "imported", "from": "line 1",
    }  # fmt: skip


def test_a_text_that_speaks_of_nccl_is_no_log() -> None:
    found: tuple[Json, ...] = (
        *map(str, log.read_log(("set NCCL_DEBUG=INFO", "box:1:2 [0] NCCL INFO Launch mode Parallel"))),
    )
    assert found == ()


def test_functions_and_layers_of_hcas() -> None:
    text = """\
box:1:2 [0] NCCL INFO NET/IB: [0] mlx5_4:uverbs4:1/IB provider=Mlx5 speed=400000 context=0x5 pciPath=/sys/devices/\
pci0000:37/0000:37:01.0/0000:38:00.0 ar=0
box:1:2 [0] NCCL INFO NET/IBext_v8 : Using [0]mlx5_0:1/IB/SHARP [1]mlx5_bond_0:1/RoCE [RO]; OOB eno1:10.0.0.1<0>
box:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_8:1:0:/IB ; OOB eno1:10.0.0.1<0>
"""
    found = one(log.read_log, text)
    assert found.facts[f"names {IB}"] == ["mlx5_0", "mlx5_4", "mlx5_8", "mlx5_bond_0"]
    assert found.facts[f"link {IB}/mlx5_4/device"] == "../../../0000:38:00.0"
    assert found.facts[f"text {IB}/mlx5_bond_0/ports/1/link_layer"] == "Ethernet\n"


def test_a_connection_that_is_tried_again_is_told_as_info() -> None:
    line = "box:1:2 [0] NCCL INFO socketPollConnect: connect returned No route to host, retrying ({}/34) after sleep"
    ((key, report),) = reports("\n".join(line.format(number) for number in (33, 34))).items()
    assert (key, report["fault"], report["count"]) == ("host NCCL-socket", "no-connection", 2)
    assert report["text"] == "no TCP connection to another rank: No route to host"
    peer = warn("socketStartConnect: Connect to 10.0.0.2<45763> failed : Software caused connection abort")
    assert peer["host NCCL-socket"]["text"].endswith("to 10.0.0.2<45763>: Software caused connection abort")


def test_an_hca_that_is_named_alone() -> None:
    found = one(log.read_log, GDR)
    assert found.facts[f"names {IB}"] == ["mlx5_0"]
    assert [fact["outcome"] for fact in reports(GDR).values()] == ["pass"]
    assert f"names {IB}" not in one(log.read_log, GDR.replace("NET/IB", "NET/OFI")).facts


@pytest.mark.parametrize(("plug_in", "text"), [
    ("AWS Libfabric", "NCCL uses the network plug-in AWS Libfabric"),
    ("Socket", "data to other hosts goes through sockets over eth0"),
])  # fmt: skip
def test_the_network_that_is_used(plug_in: str, text: str) -> None:
    lines = f"NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\nbox:10:20 [0] NCCL INFO Using network {plug_in}"
    found = [fact["text"] for part in log.read_log(tuple(lines.splitlines())) for key, fact in part.facts.items()
             if key.endswith("-network") and isinstance(fact, dict)]  # fmt: skip
    assert text in found


def test_multicast_that_other_gpus_have() -> None:
    line = "box:1:2 [{0}] NCCL INFO NVLS multicast support is {1}available on dev {0} (NVLS_NCHANNELS 24)"
    lost = "\n".join(line.format(number, "not " if number == 2 else "") for number in range(4))
    assert {key: fact["fault"] for key, fact in reports(lost).items()} == {"GPU2 NCCL-nvls": "fabric-failed"}
    assert log.read_log((line.format(0, "not "), line.format(1, "not "))) == ()  # no NVSwitches
    assert [*reports(f"{INFO}{line.format(0, '')}\n{line.format(1, 'not ')}")] == ["0000:9b:00.0 NCCL-nvls"]
    assert log.read_log((line.format(0, ""), line.format(64, "not "))) == ()
