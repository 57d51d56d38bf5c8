"""NCCL's log: GPUs and HCAs of one host, how data moves, and warnings by what they stand for."""

from __future__ import annotations

from typing import Any

import pytest
from readers_text import one, unread

from dgxcheck.checks.engine.fault import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.readers.dcgm.faults import _FORMS as DCGM
from dgxcheck.readers.nccl import errors, log
from dgxcheck.readers.nccl.graph import bdf_of

IB = "/sys/class/infiniband"
INFO = """\
box:10:20 [0] NCCL INFO NCCL version 2.21.5+cuda12.4
box:10:20 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_3:1/RoCE [RO]; OOB eno1:10.0.0.1<0>
box:10:20 [0] NCCL INFO comm 0x55 rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 18000 commId 0x5 - Init COMPLETE
box:11:21 [1] NCCL INFO comm 0x56 rank 1 nranks 16 cudaDev 1 nvmlDev 1 busId 9b000 commId 0x5 - Init COMPLETE
"""
VIA = "box:10:20 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0"
SOCKET = "box:10:20 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0"


def reports(text: str) -> dict[str, Any]:
    (found,) = log.read(tuple(text.splitlines()))
    return {key.removeprefix("stated report "): fact for key, fact in found.facts.items() if "stated report" in key}


def warn(text: str, where: str = "misc/ibvwrap.cc:10", device: int = 3) -> dict[str, Any]:
    return reports(f"box:1:2 [{device}] {where} NCCL WARN {text}")


def test_gpus_and_ports_of_one_host() -> None:
    found = one(log.read, INFO)
    assert found.tool == "NCCL 2.21.5"
    assert unread([found], INFO) == []
    assert found.facts["nvml nvmlDeviceGetHandleByIndex 1"] == "0000:9b:00.0"
    assert found.facts[f"names {IB}"] == ["mlx5_0", "mlx5_3"]
    assert found.facts[f"text {IB}/mlx5_3/ports/1/link_layer"] == "Ethernet\n"


def test_a_log_of_several_hosts_names_no_gpu() -> None:
    both = INFO + "other:1:2 [1] NCCL WARN Cuda failure 'uncorrectable ECC error encountered'\n"
    (key,) = one(log.read, both).facts
    assert key == "stated report host NCCL-ecc"


def test_a_part_of_the_gpus_is_no_list() -> None:
    part = "\n".join(line for line in INFO.splitlines() if "nvmlDev 0" not in line)
    assert not [key for key in one(log.read, part).facts if key.startswith("nvml")]


@pytest.mark.parametrize(
    ("bus", "bdf"), [("9b000", "0000:9b:00.0"), ("100101c0", "0100:10:1c.0"), ("1a10", None), ("9b00f", None)]
)
def test_bus_ids_without_separators(bus: str, bdf: str | None) -> None:
    assert bdf_of(bus) == bdf


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ([f"{VIA}/GDRDMA", VIA], {"host NCCL-gdr": "pass"}),  # sent without it, as NCCL does before Hopper
        ([VIA], {"host NCCL-gdr": "warn"}),
        ([SOCKET], {}),  # nobody says that there is an HCA
        ([INFO, SOCKET], {"host NCCL-2.21.5-tcp": "warn"}),
    ],
)
def test_how_data_moves(lines: list[str], wanted: dict[str, str]) -> None:
    text = "\n".join(lines)
    found = log.read(tuple(text.splitlines()))
    outcomes = {
        key.split()[-2] + " " + key.split()[-1].rpartition("-")[2]: fact["outcome"]
        for part in found
        for key, fact in part.facts.items()
        if "report" in key and isinstance(fact, dict)
    }
    assert outcomes == {f"host {key.rpartition('-')[2]}": outcome for key, outcome in wanted.items()}


@pytest.mark.parametrize(
    ("text", "key", "fault"),
    [
        ("NET/IB : Got completion from peer 10.1.1.1<5> with status=12 opcode=0 len=0 vendor err 129",
         "host NCCL-ib-completion", "transfer-failed"),
        ("NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129",
         "host NCCL-ib-completion", "transfer-failed"),
        ("Call to ibv_create_cq failed with error Cannot allocate memory", "host NCCL-memlock", "memlock"),
        ("Call to ibv_modify_qp failed with error Connection timed out", "host NCCL-ib-call", "transfer-failed"),
        ("P2P is disabled between NVLINK connected GPUs 0 and 1. This should not be the case given ..",
         "host NCCL-p2p", "p2p-blocked"),
        ("Cuda failure 'uncorrectable ECC error encountered'", "GPU3 NCCL-ecc", "ecc-uncorrected"),
        ("Cuda failure 802 'system not yet initialized'", "host NCCL-fabric", "fabric-manager-down"),
        ("Cuda failure 'an illegal memory access was encountered'", "host NCCL-cuda", "tool-error"),
        ("Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'x'",
         "GPU3 NCCL-nvls", "fabric-failed"),
        ("Error : something new", "host NCCL-warning", "tool-error"),
    ],
)  # fmt: skip
def test_warnings(text: str, key: str, fault: str) -> None:
    found = warn(text)
    assert [*found] == [key]
    assert found[key]["fault"] == fault


def test_equal_warnings_are_counted() -> None:
    text = "\n".join(["box:1:2 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion with error 12, x"] * 5)
    assert reports(text)["host NCCL-ib-completion"]["count"] == 5


GRAPH = """\
box:1:2 [0] NCCL INFO === System : maxBw 24.0 totalBw 24.0 ===
box:1:2 [0] NCCL INFO CPU/0-0 (1/1/2)
box:1:2 [0] NCCL INFO + PCI[24.0] - GPU/0-2a000 (0)
box:1:2 [0] NCCL INFO + SYS[10.0] - CPU/0-1
box:1:2 [0] NCCL INFO               + PCI[24.0] - GPU/0-ab000 (1)
box:1:2 [0] NCCL INFO + PCI[24.0] - GPU/1-3b000 (9)
box:1:2 [0] NCCL INFO GPU/0-2a000 :GPU/0-2a000 (0/5000.0/LOC) GPU/0-ab000 (3/10.0/SYS) GPU/0-3b000 (2/24.0/PHB)
"""


def test_the_system_graph() -> None:
    found = one(log.read, GRAPH)
    assert unread([found], GRAPH) == []
    gpus = sorted(key.split("/")[5] for key in found.facts if key.endswith("/class"))
    assert gpus == ["0000:2a:00.0", "0000:3b:00.0", "0000:ab:00.0"]  # none of another host
    assert found.facts["stated label-pci 0000:2a:00.0 0000:ab:00.0"] == "SYS"
    assert isinstance(found.facts["stated label-pci 0000:2a:00.0 0000:3b:00.0"], dict)  # PHB or NODE


@pytest.mark.parametrize(("kind", "wanted"), [("NVL", ["host NCCL-2.21.5-shm"]), ("PHB", [])])
def test_host_memory_between_gpus_that_nvlinks_join(kind: str, wanted: list[str]) -> None:
    way = f"box:1:2 [0] NCCL INFO GPU/0-18000 :GPU/0-18000 (0/5000.0/LOC) GPU/0-9b000 (1/60.0/{kind})"
    via = "box:1:2 [0] NCCL INFO Channel 00/02 : 0[0] -> 1[1] via SHM/direct/direct"
    assert [*reports(f"{INFO}{way}\n{via}\n")] == [each.replace("-2.21.5", "") for each in wanted]


def test_every_form_names_a_fault_that_there_is() -> None:
    words = {fault.value for fault in Fault}
    assert {form.fault for form in errors._FORMS} <= words
    assert {fault for fault, _ in DCGM} | {"test-failed"} <= words


def test_a_text_that_speaks_of_nccl_is_no_log() -> None:
    found: tuple[Json, ...] = (
        *map(str, log.read(("set NCCL_DEBUG=INFO", "box:1:2 [0] NCCL INFO Launch mode Parallel"))),
    )
    assert found == ()
