"""Messages of what a container, a guest, a text or a recording does not show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from measured_box import Facts, fact, imported, measured, of_box
from test_messages_rare import ABSENT, CONTAINER, DEVICES, GPU2, UNSUPPORTED, changed, every, messages
from test_p2p_cuda import both_ways, report

from dgxcheck.assessment import assess
from dgxcheck.checks.engine.box import Growth
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.network.companions import FOUND
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.inventory import Count
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.facts.tool_outputs import ToolReport
from dgxcheck.source.recording.load import open_source

V100, A100, GB300 = "dgx-1-v100", "dgx-a100", "gb300-nvl72"
DENIED: Json = {"missing": "denied"}
NO_CUDA: Json = {"skipped": "not-supported", "detail": "no CUDA driver"}


@pytest.mark.parametrize(
    ("check", "base", "facts", "message"),
    [
        ("driver.answers", V100, CONTAINER | {f"names {DEVICES}": DENIED},
         "skip not-visible: the PCI tree is hidden: not permitted"),
        ("driver.bound", V100, CONTAINER | {f"link {DEVICES}/{GPU2}/driver": ABSENT},
         "skip not-visible: a container need not see drivers"),
        ("nvlink.state", A100,
         every("nvmlDeviceGetNvLinkState ", UNSUPPORTED, A100) | {"nvml nvmlDeviceGetMigMode 0000:07:00.0": [1, 1]},
         "skip not-supported: no NVLink: MIG mode is on"),
        ("driver.library", V100, {"nvml nvmlInit": {"missing": "unrecorded"}},
         "unknown: NVML was not asked about 8 GPUs bound to nvidia: not recorded"),
        ("network.dma-functions", GB300, CONTAINER,
         "skip not-visible: a guest or container sees only the functions assigned to it"),
    ],
)  # fmt: skip
def test_what_is_hidden(check: str, base: str, facts: dict[str, Json], message: str, tmp_path: Path) -> None:
    assert message in messages(changed(tmp_path, facts, base=base), check)


def test_no_driver_of_any_device_is_shown(tmp_path: Path) -> None:
    functions = of_box(open_source(V100)).topology.functions
    facts: dict[str, Json] = {f"link {DEVICES}/{bdf}/driver": ABSENT for bdf in functions}
    assert messages(changed(tmp_path, facts), "driver.bound") == {
        "skip not-recorded: no driver of any device is shown"
    }


def test_no_dma_function_is_set_up(tmp_path: Path) -> None:
    drop = FOUND["gpu.dma"](of_box(open_source(GB300)))
    assert messages(changed(tmp_path, {}, base=GB300, drop=drop), "network.dma-functions") == {
        "skip not-configured: none of 4 DMA functions is there"
    }


@pytest.mark.parametrize(("drop", "words", "component"), [
    (["0009:03:00.0"], "3 of 4 DMA functions found on PCI; mlx5_0 has none", "hca/0000:03:00.0/DMA function"),
    (["0009:03:00.0", "0019:03:00.0"], "2 of 4 DMA functions found on PCI; mlx5_0, mlx5_2 have none",
     "slot/missing DMA function"),
])  # fmt: skip
def test_dma_functions_that_are_gone(drop: list[str], words: str, component: str, tmp_path: Path) -> None:
    box = changed(tmp_path, {}, base=GB300, drop=drop)
    (found,) = [each for each in run(box, CHECKS) if each.id == "network.dma-functions"]
    assert (found.status.value, found.judgement.fault) == ("fail", Fault.FUNCTION_MISSING)
    assert found.judgement.message == words
    assert found.blames[0].id == component


@pytest.mark.parametrize(("kind", "was", "now", "message", "component"), [
    ("memory", 512, 448, "448 GiB of memory, was 512 on 2026-01-01", "host/host/memory"),
    ("disk", 6, 5, "5 disks, was 6 on 2026-01-01", "host/host/disks"),
])  # fmt: skip
def test_memory_or_a_disk_that_an_earlier_run_saw(
    kind: str, was: int, now: int, message: str, component: str, tmp_path: Path
) -> None:
    box = replace(changed(tmp_path, {}), inventory={kind: Count(was, "2026-01-01")}, present={kind: now})
    (found,) = [each for each in run(box, CHECKS) if each.id == "host.inventory"]
    assert (found.status.value, found.judgement.message) == ("warn", message)
    assert [each.id for each in found.blames] == [component]


@pytest.mark.parametrize(
    ("facts", "present", "message"),
    [
        ({}, {}, "skip not-recorded: GPUs were not counted in this run"),
        (CONTAINER, {"GPU": 1}, "skip not-visible: a container or virtual machine sees what is assigned to it"),
    ],
)
def test_what_is_not_counted(facts: dict[str, Json], present: dict[str, int], message: str, tmp_path: Path) -> None:
    inventory = {"GPU": Count(8, "2026-01-01")}
    box = replace(changed(tmp_path, facts), inventory=inventory, present=present)
    assert messages(box, "host.inventory") == {message}


def test_nvlinks_that_went_down_on_a_machine_without_a_reference(tmp_path: Path) -> None:
    down = replace(changed(tmp_path, every("nvmlDeviceGetNvLinkState ", 0)), choice=None)
    growth = Growth(old=of_box(open_source(V100)).snapshot, new=down.snapshot, seconds=10, how="within 10 s")
    assert messages(replace(down, growth=growth), "nvlink.state") == {
        "fail: 0 of 6 NVLink positions up; links 0, 1, 2, 3, 4, 5 were up before"
    }


def test_nvlinks_reported_of_a_gpu_without_any() -> None:
    box = of_box(open_source("l40s-x8"))
    of_dcgm = ToolReport(
        subject="GPU0", tool="dcgm", topic="nvlink", outcome="fail", fault=Fault.NVLINK_REPORTED, text="links down"
    )
    box = replace(box, snapshot=replace(box.snapshot, tool_reports=(of_dcgm,)))
    assert messages(box, "tools.reports") == {
        "skip not-supported: NVLinks reported as down of a GPU that has none, as DCGM does"
    }


@pytest.mark.parametrize(
    ("check", "facts", "base", "message"),
    [
        ("measure.collective", {"collective all_reduce 8": fact(None)}, "",
         "skip not-recorded: all_reduce over 8 GPUs: no figure"),
        ("measure.collective", {"ring 0 all": fact(20)}, "l40s-x8",
         "skip no-reference: copies around 1 ring of GPUs: 20 GB/s; bandwidth of the NVLinks not known"),
        ("measure.host-bandwidth", {"cuda all": NO_CUDA}, "dgx-1-v100-no-nvml", "skip not-supported: no CUDA driver"),
    ],
)  # fmt: skip
def test_what_was_not_measured(check: str, facts: Facts, base: str, message: str, tmp_path: Path) -> None:
    box = measured(tmp_path, facts, base) if base else imported(facts)
    assert message in messages(box, check)


def test_a_server_that_responds_again(tmp_path: Path) -> None:
    lines = ("3600.000000;nfs: server 10.1.2.3 not responding, still trying", "3700.000000;nfs: server 10.1.2.3 OK")
    assert messages(changed(tmp_path, {}, add=lines), "kernel.file-system") == {
        "pass: file servers did not respond for a while, and do again"
    }


MIG = "    MIG Mode\n        Current : Enabled\n        Pending : Enabled\n"
IDLE_LINKS = "".join(f"\t Link {number}: <inactive>\n" for number in range(6))
T4 = """07:00.0 3D controller: NVIDIA Corporation TU104GL [Tesla T4] (rev a1)
\tSubsystem: NVIDIA Corporation TU104GL [Tesla T4]
\tCapabilities: [78] Express (v2) Endpoint, MSI 00
\t\tLnkCap:\tPort #0, Speed 8GT/s, Width x16, ASPM L0s L1, Exit Latency L0s <1us, L1 <4us
\t\tLnkSta:\tSpeed 8GT/s, Width x8 (downgraded)
"""


@pytest.mark.parametrize(
    ("check", "text", "message"),
    [
        ("p2p.status", re.sub(r"(    Product Name .*\n)", rf"\1{MIG}", report(2, both_ways((0, 1)), "NV4")),
         "skip: CUDA refuses peer access between GPU0 and GPU1"),
        ("nvlink.state", f"GPU 0: (UUID: GPU-11111111-2222-3333-4444-555555555555)\n{IDLE_LINKS}",
         "unknown: none of 6 NVLinks is up; whether they are wired depends on the model"),
        ("pcie.width", T4, "unknown: link at x8, the GPU supports x16; what its slot supports is not shown"),
    ],
)  # fmt: skip
def test_what_a_text_does_not_show(check: str, text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "pasted.txt"
    file.write_text(text, encoding="utf-8")
    found = [each for each in assess(file).findings if each.id == check]
    assert [f"{each.status.value}: {each.judgement.message}" for each in found] == [message]
