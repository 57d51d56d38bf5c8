"""Xids and SXids of the kernel log: the part that each blames, which of several count, and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_lines import GPU
from test_checks_kernel import X, logged
from test_faults_of_hosts import SWITCH, bad_findings
from test_health_checks import box

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.xid import table


def test_the_xids_of_a_gpu_name_its_part(tmp_path: Path) -> None:
    for number, part in ((48, "memory"), (171, "memory"), (136, "NVLink"), (155, "NVLink"), (149, "NVLink"), (62, "")):
        (bad,) = bad_findings(box(logged(tmp_path, (100.0, f"{X}{number}, Fatal"))), "kernel.xid")
        assert bad.blames[0].key == ("gpu", GPU, part)
        assert [each.kind for each in bad.blames[1:]] == (["nvlink"] * 4 if part == "NVLink" else [])


def application_xids(gpu: str, *names: str) -> list[tuple[float, str]]:
    return [
        (100.0 + n, f"NVRM: Xid (PCI:{gpu[:-2]}): 13, pid={4000 + n}, name={name}, x") for n, name in enumerate(names)
    ]


@pytest.mark.parametrize(
    ("here", "there", "fault"),
    [
        (("a", "b", "c"), (), Fault.XID_PROGRAMS),
        (("a", "a", "a"), (), Fault.XID_APPLICATION),
        (("a", "b", "c"), ("a",), Fault.XID_APPLICATION),
    ],
    ids=["of several programs", "of one program", "of programs that fail elsewhere too"],
)
def test_programs_that_fail_on_one_gpu_alone(
    here: tuple[str, ...], there: tuple[str, ...], fault: FaultKind, tmp_path: Path
) -> None:
    lines = [*application_xids(GPU, *here), *application_xids("0000:0b:00.0", *there)]
    (bad,) = bad_findings(box(logged(tmp_path, *lines)), "kernel.xid")
    assert bad.judgement.fault is fault


@pytest.mark.parametrize(("apart_s", "due"), [(3600.0, [Fault.XID_PROGRAMS]), (50_000.0, [])])
def test_programs_count_that_fail_within_a_day(apart_s: float, due: list[FaultKind], tmp_path: Path) -> None:
    here = [(apart_s * n, line) for n, (_, line) in enumerate(application_xids(GPU, *"abcde"), 1)]
    found = bad_findings(box(logged(tmp_path, *here)), "kernel.xid")
    assert [bad.judgement.fault for bad in found] == due


@pytest.mark.parametrize(
    ("numbers", "fault"),
    [((48, 94), Fault.XID_CONTAINED), ((171, 94), Fault.XID_CONTAINED), ((48,), Fault.XID), ((48, 94, 95), Fault.XID),
     ((48, *[31] * 9, 94), Fault.XID_CONTAINED), ((48, *[31] * 10, 94), Fault.XID)],
)
def test_a_memory_error_that_is_contained_waits_for_a_drain(
    numbers: tuple[int, ...], fault: FaultKind, tmp_path: Path
) -> None:
    lines = [(100.0 + n, f"NVRM: Xid (PCI:0000:47:00): {number}, x") for n, number in enumerate(numbers)]
    (bad,) = bad_findings(box(logged(tmp_path, *lines, base="dgx-a100")), "kernel.xid")
    assert bad.judgement.fault is fault


@pytest.mark.parametrize(("apart_s", "due"), [(10.0, False), (10.5, True)])
def test_an_nvlink_error_of_a_gpu_that_fails_is_no_other(apart_s: float, due: bool, tmp_path: Path) -> None:
    """NVLinks time out within seconds of the failure of their GPU."""
    lines = [(at, f"NVRM: Xid (PCI:0000:47:00): {number}, x") for at, number in ((100.0, 62), (100.0 + apart_s, 74))]
    (bad,) = bad_findings(box(logged(tmp_path, *lines, base="dgx-a100")), "kernel.xid")
    assert bool([event for event in bad.judgement.events if event.number == 74]) == due


@pytest.mark.parametrize(
    ("text", "fault", "words"),
    [
        ("20034, Fatal, Link 28 LTSSM Fault Up", Fault.NVSWITCH, "reset all GPUs"),
        ("12028, Non-fatal, x", Fault.NVSWITCH_NOTICE, "Xid 45"),
        ("12028, Fatal, x", Fault.NVSWITCH, "reset all GPUs"),
        ("19084, Non-fatal, x", Fault.NVSWITCH_WATCHED, "comes back"),
        ("22003, Fatal, x", Fault.NVSWITCH_FATAL, "reboot it"),
        ("10004, Non-fatal, x", Fault.NVSWITCH_NOTICE, "cooling"),
        ("20012, Non-fatal, x", Fault.NVSWITCH_NOTICE, "seated"),
        ("99999, Non-fatal, x", Fault.NVSWITCH_WATCHED, "comes back"),
        ("99999, Fatal, x", Fault.NVSWITCH, "reset all GPUs"),
    ],
)
def test_an_sxid_is_the_nvswitch_s(text: str, fault: FaultKind, words: str, tmp_path: Path) -> None:
    spec = logged(tmp_path, (100.0, f"nvidia-nvswitch0: SXid (PCI:{SWITCH}): {text}"), base="dgx-a100")
    (bad,) = bad_findings(box(spec), "kernel.xid")
    assert (bad.judgement.fault, [each.key for each in bad.blames]) == (fault, [("nvswitch", SWITCH, "")])
    assert words in bad.remedy


def test_of_several_sxids_the_worst_is_reported(tmp_path: Path) -> None:
    said = ("11012, Non-fatal, x", "20012, Non-fatal, x", "22003, Fatal, x", "20034, Fatal, x")
    lines = [(100.0 + n, f"nvidia-nvswitch0: SXid (PCI:{SWITCH}): {each}") for n, each in enumerate(said)]
    (bad,) = bad_findings(box(logged(tmp_path, *lines, base="dgx-a100")), "kernel.xid")
    assert bad.judgement.fault is Fault.NVSWITCH_FATAL
    assert "SXid 20034 (LTSSM fault up), 22003 (Minion halt)" in bad.judgement.message


def test_sxids_of_a_kind_are_counted_by_what_they_say_first(tmp_path: Path) -> None:
    """The driver writes three lines for one: how grave it is, its severity, its data."""
    said = ("Fatal, Link 30 LTSSM Fault Up", "Severity 1 Engine instance 30 Sub-engine instance 00", "Data {0x0}")
    lines = [(100.0 + n, f"nvidia-nvswitch0: SXid (PCI:{SWITCH}): 20034, {each}") for n, each in enumerate(said * 2)]
    (bad,) = bad_findings(box(logged(tmp_path, *lines, base="dgx-a100")), "kernel.xid")
    assert "SXid 20034 (LTSSM fault up) 2 times at port 30" in bad.judgement.message
    (once,) = bad_findings(box(logged(tmp_path, *lines[:3], base="dgx-a100")), "kernel.xid")
    assert "(LTSSM fault up) at port 30" in once.judgement.message


@pytest.mark.parametrize(
    ("number", "words"),
    [(48, "dcgmi diag"), (62, "reset the GPU"), (63, "no action now"), (54, "power cables"), (74, "nvlink"),
     (94, "restart the program"), (154, "GPU Recovery Action"), (999, "call the vendor")],
)  # fmt: skip
def test_the_remedy_is_that_of_the_xid(number: int, words: str, tmp_path: Path) -> None:
    (bad,) = bad_findings(box(logged(tmp_path, (100.0, f"{X}{number}, x"))), "kernel.xid")
    assert words in bad.remedy


def test_of_several_xids_the_most_drastic_remedy_is_given(tmp_path: Path) -> None:
    (bad,) = bad_findings(box(logged(tmp_path, (100.0, f"{X}62, x"), (101.0, f"{X}48, x"))), "kernel.xid")
    assert bad.remedy == table.REMEDIES["memory"]


GPU_ITSELF, MEMORY = ("gpu", GPU, ""), ("gpu", GPU, "memory")
TO = "154, GPU recovery action changed from 0x0 (None) to"
RESPONSES = {
    "62, x": (Fault.XID, GPU_ITSELF),
    "48, x": (Fault.XID, MEMORY),
    "54, x": (Fault.XID, ("gpu", GPU, "power supply")),
    "57, x": (Fault.XID, MEMORY),
    "32, x": (Fault.XID_PCIE, ("link", GPU, "")),
    "64, x": (Fault.RETIREMENT_FAILED, MEMORY),
    "63, x": (Fault.XID_NOTICE, MEMORY),
    "94, x": (Fault.XID_CONTAINED, MEMORY),
    "78, x": (Fault.XID_SOFTWARE, GPU_ITSELF),
    "151, x": (Fault.XID_SOFTWARE, GPU_ITSELF),
    "999, x": (Fault.XID_NOTICE, GPU_ITSELF),
    f"{TO} 0x1 (GPU Reset Required)": (Fault.RESET_REQUIRED, GPU_ITSELF),
    f"{TO} 0x2 (Node Reboot Required)": (Fault.REBOOT_REQUIRED, GPU_ITSELF),
    f"{TO} 0x3 (Drain P2P)": (Fault.DRAIN_REQUIRED, GPU_ITSELF),
    f"{TO} 0x4 (Drain and Reset)": (Fault.DRAIN_AND_RESET, GPU_ITSELF),
    f"{TO} 0x9 (something new)": (Fault.RECOVERY_REQUIRED, GPU_ITSELF),
}


@pytest.mark.parametrize(("asked", "words"), [
    ("0x2 (Node Reboot Required)", "node reboot required"), ("0x4 (Drain and Reset)", "drain and reset"),
    ("0x9 (something new)", "GPU recovery action changed"),
])  # fmt: skip
def test_a_message_says_what_the_driver_asks_for(asked: str, words: str, tmp_path: Path) -> None:
    (bad,) = bad_findings(box(logged(tmp_path, (100.0, f"{X}{TO} {asked}"))), "kernel.xid")
    assert bad.judgement.message.startswith(f"Xid 154 ({words})")


@pytest.mark.parametrize("text", RESPONSES)
def test_the_fault_and_the_part_follow_from_what_nvidia_asks_for(text: str, tmp_path: Path) -> None:
    fault, key = RESPONSES[text]
    (bad,) = bad_findings(box(logged(tmp_path, (100.0, f"{X}{text}"))), "kernel.xid")
    assert (bad.judgement.fault, bad.blames[0].key) == (fault, key)


def test_every_response_that_asks_for_no_reset_has_a_fault_of_its_own() -> None:
    faults = {response: (row["gpu"], row["nvswitch"]) for response, row in table.RESPONSES.items()}
    resets = {response for response, those in faults.items() if those == ("xid", "nvswitch-watched")}
    assert resets == {"power", "memory", "nvlink", "reset", "none"}
