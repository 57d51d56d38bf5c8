"""Errors of the kernel log that follow, within seconds, from a fault of a device that they are joined to."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from changed_box import document
from hypothesis import given
from hypothesis import strategies as st
from judging import judged
from sample import FAULTS, swept
from seam import run

from dgxcheck.assessment import assess
from dgxcheck.facts.missing import Json

LOST = "gpu/0000:0a:00.0"
"""Of the overlay xid-79, at 3600 s."""
SWITCH = "0000:c6:00.0"
SXID = f"3600.0;nvidia-nvswitch1: SXid (PCI:{SWITCH}): 20034, Fatal, Link 28 LTSSM Fault Up"
HARMLESS = f"3600.0;nvidia-nvswitch1: SXid (PCI:{SWITCH}): 12028, Non-fatal, Link 28 egress non-posted PRIV error"
UNSUPPORTED: Json = {"missing": "unsupported", "detail": "NVML 3: Not Supported"}


def xid_74(gpu: str, seconds: float, link: int = 2) -> str:
    return f"{seconds:.6f};NVRM: Xid (PCI:0000:{gpu}:00): 74, NVLink: fatal error detected on link {link}(0x10000, 0x0)"


def causes(folder: Path, base: str, *log: str, **facts: Json) -> dict[str, set[str]]:
    """By component the keys that it explains; ``facts``: NVML answers by query, with ``_`` for spaces."""
    lines = {f"kmsg {number}": line for number, line in enumerate(log, 40)}
    changed = {f"nvml nvmlDeviceGet{key.replace('_', ' ')}": fact for key, fact in facts.items()}
    path = folder / "case.json"
    document = {"schema": "dgxcheck/overlay/1", "base": base, "add": lines, "facts": changed}
    path.write_text(json.dumps(document), encoding="utf-8")
    found = assess(str(path))
    assert found.unexplained == ()
    return {"/".join(filter(None, cause.component.key)): {*cause.explains} for cause in found.causes}


PEERS = ("06", "07", "0b", "89")
"""GPUs that NVLinks join to GPU2 of a DGX-1."""


@pytest.mark.parametrize("after", [-10.0, 0.05, 10.0])
def test_xid_74_of_the_peers_of_a_lost_gpu_belongs_to_it(after: float, tmp_path: Path) -> None:
    found = causes(tmp_path, "dgx-1-v100-xid-79", *(xid_74(peer, 3600.01 + after) for peer in PEERS))
    assert found == {
        LOST: {f"gpu.lost/{LOST[4:]}", f"kernel.off-bus/{LOST[4:]}", *(f"kernel.xid/0000:{p}:00.0" for p in PEERS)}
    }


@pytest.mark.parametrize(
    ("gpu", "seconds"), [("0b", 3610.03), ("0b", 3590.0), ("85", 3600.1)], ids=["later", "earlier", "not joined to it"]
)
def test_another_xid_74_is_a_cause_of_its_own(gpu: str, seconds: float, tmp_path: Path) -> None:
    found = causes(tmp_path, "dgx-1-v100-xid-79", xid_74(gpu, seconds))
    assert found[f"gpu/0000:{gpu}:00.0/NVLink"] == {f"kernel.xid/0000:{gpu}:00.0"}
    assert len(found) == 2


def test_a_peer_with_an_xid_of_its_own_too_is_a_cause(tmp_path: Path) -> None:
    own = "3600.2;NVRM: Xid (PCI:0000:0b:00): 48, pid=4242, name=python3, DBE (double bit error)"
    found = causes(tmp_path, "dgx-1-v100-xid-79", xid_74("0b", 3600.1), own)
    assert found.keys() == {LOST, "gpu/0000:0b:00.0/memory"}


def test_pcie_errors_of_the_bridges_above_a_lost_gpu_belong_to_it(tmp_path: Path) -> None:
    def aer(seconds: float) -> str:
        return f"{seconds};pcieport 0000:09:08.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer"

    assert causes(tmp_path, "dgx-1-v100-xid-79", aer(3600.1)).keys() == {LOST}


def test_an_sxid_that_a_lost_gpu_leaves_behind_belongs_to_it(tmp_path: Path) -> None:
    off_bus = "3600.1;NVRM: Xid (PCI:0000:07:00): 79, pid=4242, name=python3, GPU has fallen off the bus."
    found = causes(tmp_path, "dgx-a100", SXID, off_bus, xid_74("0f", 3600.2))
    assert found.keys() == {"gpu/0000:07:00.0"}


def test_xid_74_of_the_gpus_at_a_switch_belongs_to_its_fatal_sxid_alone(tmp_path: Path) -> None:
    xids = xid_74("07", 3600.1, 5), xid_74("0f", 3600.3, 5)
    assert causes(tmp_path, "dgx-a100", SXID, *xids).keys() == {f"nvswitch/{SWITCH}"}
    assert causes(tmp_path, "dgx-a100", HARMLESS, xid_74("07", 3600.1, 0)).keys() == {
        f"nvswitch/{SWITCH}", "gpu/0000:07:00.0/NVLink"
    }  # fmt: skip


def test_a_link_that_is_down_is_joined_to_the_switch_at_its_far_end(tmp_path: Path) -> None:
    """By what NVML says of it, else by the other GPUs' links: each has two to this switch."""
    hours_later = SXID.replace("3600.0", "9000.0")
    silent: dict[str, Json] = {"NvLinkRemotePciInfo_0000:07:00.0_5": UNSUPPORTED}
    for facts in ({}, silent):
        found = causes(tmp_path, "dgx-a100-nvlink-down", hours_later, **facts)
        assert found == {f"nvswitch/{SWITCH}": {f"kernel.xid/{SWITCH}", "nvlink.state/0000:07:00.0"}}
    elsewhere = causes(tmp_path, "dgx-a100-nvlink-down", hours_later.replace(SWITCH, "0000:c4:00.0"), **silent)
    assert elsewhere.keys() == {"nvswitch/0000:c4:00.0", "gpu/0000:07:00.0/NVLink"}


def test_nvlink_errors_of_most_gpus_are_the_fabric_s(tmp_path: Path) -> None:
    """Each can follow from every other, so none leads; where all name links to one NVSwitch, it is that."""
    buses = ("07", "0f", "47", "4e", "87")
    apart = [xid_74(bus, 3600.1 + n / 10, 2 * n) for n, bus in enumerate(buses)]
    assert causes(tmp_path, "dgx-a100", *apart).keys() == {"host/host/NVSwitches"}
    alike = [xid_74(bus, 3600.1 + n / 10, 5) for n, bus in enumerate(buses)]
    assert causes(tmp_path, "dgx-a100", *alike).keys() == {f"nvswitch/{SWITCH}"}


@pytest.mark.in_ci
@given(order=st.permutations((0, 1, 2, 3)), offset=st.floats(-9.9, 9.9))
def test_no_order_of_the_lines_makes_another_cause(
    order: list[int], offset: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [xid_74(PEERS[number], 3600.01 + offset * (number + 1) / 4) for number in order]
    found = causes(tmp_path_factory.mktemp("order"), "dgx-1-v100-xid-79", *sorted(lines, key=lambda line: line[:12]))
    assert found.keys() == {LOST}


LOGGED = [name for name, path in FAULTS.items() if re.search(r'"kmsg \d+": "\d+\.\d*[1-9]', Path(path).read_text())]


@pytest.mark.parametrize("fault", swept(LOGGED, 9, first=2))
def test_a_log_in_whole_seconds_has_the_same_causes(fault: str, tmp_path: Path) -> None:
    """As ``dmesg -T``, syslog and ``journalctl`` write it: lines of several GPUs are of one time."""
    path = tmp_path / "whole.json"
    path.write_text(re.sub(r'("kmsg \d+": "\d+)\.\d+;', r"\1.0;", Path(FAULTS[fault]).read_text()), encoding="utf-8")
    found, due = (
        {each["id"]: (each["severity"], each["faults"], sorted(each["explains"])) for each in judged(spec)[1]["causes"]}
        for spec in (str(path), fault)
    )
    assert found == due


def test_the_ladder_is_that_of_the_fault_alone() -> None:
    """Collateral changes neither the component nor what is done about it."""
    alone, with_peers = (judged(name)[1]["causes"] for name in ("dgx-1-v100-xid-79", "dgx-1-v100-xid-79-peers"))
    assert [(cause["component"], cause["actions"]) for cause in alone] == [
        (cause["component"], cause["actions"]) for cause in with_peers
    ]


@pytest.mark.parametrize("bridge", ["0000:08:00.0", "0000:00:03.0"], ids=["upstream port", "root port"])
def test_what_follows_the_loss_of_all_gpus_below_a_switch_belongs_to_the_switch(bridge: str, tmp_path: Path) -> None:
    facts = json.loads(Path(FAULTS["dgx-1-v100-xid-79"]).read_text(encoding="utf-8"))["facts"]
    for key, fact in [*facts.items()]:
        facts[key.replace("0000:0a:00.0", "0000:0b:00.0").replace("ByIndex 2", "ByIndex 3")] = fact
    log = [f"3600.{gpu};NVRM: Xid (PCI:0000:0{'ab'[gpu]}:00): 79, GPU has fallen off the bus." for gpu in (0, 1)]
    log.append(f"3599.9;pcieport {bridge}: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer")
    path = tmp_path / "two.json"
    lines = {f"kmsg {number}": line for number, line in enumerate([*log, xid_74("06", 3600.5)], 40)}
    document = {"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": facts, "add": lines}
    path.write_text(json.dumps(document), encoding="utf-8")
    (cause,) = assess(str(path)).causes
    assert (cause.component.kind, cause.component.bdf, len(cause.explains)) == ("switch", "0000:08:00.0", 6)


def xid(gpu: str, number: int, seconds: float, text: str = "a text") -> str:
    return f"{seconds:.6f};NVRM: Xid (PCI:0000:{gpu}:00): {number}, pid=4242, name=python3, {text}"


@pytest.mark.parametrize(
    ("number", "part"), [(62, ""), (119, ""), (48, "/memory"), (95, "/memory"), (140, "/memory"), (109, "")]
)
def test_nvlink_errors_of_a_failed_gpu_and_its_peers_belong_to_it(number: int, part: str, tmp_path: Path) -> None:
    log = [xid("0f", number, 3600.0), xid_74("0f", 3600.2), xid_74("0f", 3600.3, 4), xid_74("07", 3601.0)]
    log.append(xid("0f", 154, 3600.5, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"))
    found = causes(tmp_path, "dgx-a100", *log)
    assert found == {f"gpu/0000:0f:00.0{part}": {"kernel.xid/0000:0f:00.0", "kernel.xid/0000:07:00.0"}}


@pytest.mark.parametrize("number", [13, 31, 63, 94])
def test_what_stops_one_program_takes_no_nvlink_down(number: int, tmp_path: Path) -> None:
    found = causes(tmp_path, "dgx-a100", xid("0f", number, 3600.0), xid_74("0f", 3600.2), xid_74("0f", 3600.3, 4))
    assert "gpu/0000:0f:00.0/NVLink" in found or "gpu/0000:0f:00.0/memory" in found
    assert "gpu/0000:0f:00.0" not in found


def test_a_memory_error_is_why_the_driver_asks_for_a_reset(tmp_path: Path) -> None:
    found = causes(tmp_path, "dgx-a100-reset-required", xid("07", 48, 3600.0, "DBE (double bit error)"))
    assert found == {"gpu/0000:07:00.0/memory": {"gpu.reset-required/0000:07:00.0", "kernel.xid/0000:07:00.0"}}


def test_a_setting_is_not_why_the_driver_asks_for_a_reset(tmp_path: Path) -> None:
    found = causes(tmp_path, "dgx-a100-reset-required", **{"PersistenceMode_0000:07:00.0": 0})
    assert found.keys() == {"gpu/0000:07:00.0", "gpu/0000:07:00.0/persistence mode"}


def test_nvlinks_that_end_at_a_lost_gpu_belong_to_it_whenever_they_failed(tmp_path: Path) -> None:
    """NVML alone says that the GPU is lost; what NVLinks report tells where they lead."""
    found = causes(tmp_path, "dgx-1-v100-gpu-lost", xid_74("0b", 3600.0, 3), xid_74("07", 9000.0, 1))
    assert found.keys() == {LOST}
    elsewhere = causes(tmp_path, "dgx-1-v100-gpu-lost", xid_74("0b", 3600.0, 1))
    assert elsewhere.keys() == {LOST, "gpu/0000:0b:00.0/NVLink"}


@pytest.mark.parametrize("number", [11004, 12028, 14017, 20012, 22012, 24007])
def test_what_an_nvswitch_says_of_a_port_whose_gpu_is_gone_belongs_to_the_gpu(number: int, tmp_path: Path) -> None:
    sxid = SXID.replace("20034, Fatal", f"{number}, Fatal")
    assert causes(tmp_path, "dgx-a100", xid("07", 79, 3600.5), sxid).keys() == {"gpu/0000:07:00.0"}


def test_an_sxid_that_is_fatal_to_the_fabric_is_no_collateral(tmp_path: Path) -> None:
    sxid = SXID.replace("20034, Fatal", "22003, Fatal")
    assert causes(tmp_path, "dgx-a100", xid("07", 79, 3600.5), sxid).keys() == {
        "gpu/0000:07:00.0", f"nvswitch/{SWITCH}"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("dead", "reset"),
    [
        ("NVRM: Xid (PCI:0000:91:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", False),
        ("mlx5_core 0000:0c:00.0: poll_health:800:(pid 0): device's health compromised - reached miss count", True),
    ],
    ids=["a GPU", "an HCA"],
)
def test_a_log_alone_resets_nvswitches_unless_a_gpu_is_lost(
    dead: str, reset: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``nvidia-smi -r`` takes all GPUs, the lost one too, which the log alone names."""
    path = tmp_path / "dmesg.txt"
    sxids = [
        f"[ {3600 + n}.500000] nvidia-nvswitch{n}: SXid (PCI:0000:0{5 + n}:00.0): 20034, Fatal, Link 48 x"
        for n in (0, 1)
    ]
    path.write_text("\n".join((f"[  100.000000] {dead}", *sxids, "")), encoding="utf-8")
    causes = json.loads(run(capsys, "health", "--from", str(path), "--format", "json").out)["causes"]
    (steps,) = [
        [a["action"] for a in cause["actions"]] for cause in causes if cause["component"]["part"] == "NVSwitches"
    ]
    assert ("reset-gpu" in steps) is reset
    assert reset or steps[:2] == ["drain", "reboot"]


def alone(folder: Path, *log: str) -> dict[str, set[str]]:
    """The same of a log alone, as it is pasted."""
    path = folder / "pasted.txt"
    path.write_text("\n".join(log), encoding="utf-8")
    return {cause.component.bdf or cause.component.part: {*cause.explains} for cause in assess(str(path)).causes}


def by(gpu: str, number: int) -> str:
    return (
        f"kernel: NVRM: Xid (PCI:0000:{gpu}:00): 45, pid=42, name=python, Ch 00000001 caused by previous Xid {number}"
    )


@pytest.mark.parametrize("first", ["97", "dc"])
def test_of_lines_without_times_the_link_s_own_error_comes_first(first: str, tmp_path: Path) -> None:
    numbers = {"97": 145, "ba": 145, "dc": 149, "ed": 144}
    order = sorted(numbers, key=lambda gpu: gpu != first)
    found = alone(tmp_path, *(by(gpu, numbers[gpu]) for gpu in order))
    assert found == {"0000:dc:00.0": {f"kernel.xid/0000:{gpu}:00.0" for gpu in numbers}}


@pytest.mark.parametrize("order", [("97", "ba"), ("ba", "97")])
def test_of_equal_errors_the_first_line_s_gpu_is_to_blame(order: tuple[str, str], tmp_path: Path) -> None:
    assert [*alone(tmp_path, *(by(gpu, 145) for gpu in order))] == [f"0000:{order[0]}:00.0"]


def test_without_times_other_errors_stay_causes_of_their_own(tmp_path: Path) -> None:
    other = "NVRM: Xid (PCI:0000:ed:00): 48, pid=1, DBE (double bit error)"
    assert alone(tmp_path, by("dc", 149), by("97", 145), other).keys() == {"0000:dc:00.0", "0000:ed:00.0"}


def test_of_a_log_alone_a_port_s_error_in_the_moment_of_a_loss_belongs_to_it(tmp_path: Path) -> None:
    aer = "[  {}] pcieport 0000:00:02.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer"
    lost = "[  600.100000] NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus."
    assert alone(tmp_path, aer.format("600.000001"), lost).keys() == {"0000:02:00.0"}
    assert alone(tmp_path, aer.format("500.000001"), lost).keys() == {"0000:02:00.0", "0000:00:02.0"}


def test_nvswitches_that_give_up_after_a_gpu_was_lost_belong_to_it(tmp_path: Path) -> None:
    lost = "[  600.100000] NVRM: Xid (PCI:0000:91:00): 79, GPU has fallen off the bus."
    sxids = (f"[  61{n}.000001] nvidia-nvswitch{n}: SXid (PCI:0000:0{n}:00.0): 20034, Fatal, Link 4{n} LTSSM Fault Up"
             for n in (1, 2, 3))  # fmt: skip
    assert alone(tmp_path, lost, *sxids).keys() == {"0000:91:00.0"}


def test_of_a_log_alone_a_cable_of_an_adapter_is_found(tmp_path: Path) -> None:
    module = "[  600.000001] mlx5_core 0000:5e:00.0: Port module event[error]: module 0, Cable error, Bus stuck"
    assert alone(tmp_path, module) == {"0000:5e:00.0": {"kernel.port-module/0000:5e:00.0"}}


OFF = "NVRM: Xid (PCI:0000:{}:00): 79, GPU has fallen off the bus."
DOWN = "nvme nvme4: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff"


@pytest.mark.parametrize(("later", "components"), [
    (2.0, ["switch/0000:06:00.0"]), (600.0, ["switch/0000:06:00.0"]),
    (600.5, ["gpu/0000:08:00.0", "gpu/0000:09:00.0"]),
])  # fmt: skip
def test_gpus_of_a_switch_that_are_lost_hours_apart_are_two_causes(
    later: float, components: list[str], tmp_path: Path
) -> None:
    log = [f"{3600 + n * later};{OFF.format(gpu)}" for n, gpu in enumerate(("08", "09"))]
    assert [*causes(tmp_path, "pcie-x8", *log)] == components


@pytest.mark.parametrize(("gpus", "first", "line"), [
    (("47", "4e"), 50000.0, "blk_update_request: critical medium error, dev nvme4n1, sector 8"),
    (("47", "4e"), 50000.0, "Buffer I/O error on dev nvme4n1, logical block 8"),
    (("47", "b7"), 50000.0, DOWN),
    (("47", "4e"), 1000.0, DOWN),
], ids=["of its medium", "of no controller", "GPUs below different switches", "one GPU long before"])  # fmt: skip
def test_an_nvme_disk_is_no_collateral_of_what_it_is_not_below_or_beside(
    gpus: tuple[str, str], first: float, line: str, tmp_path: Path
) -> None:
    log = [f"{at};{OFF.format(gpu)}" for gpu, at in zip(gpus, (first, 50000.2), strict=True)]
    found = causes(tmp_path, "dgx-a100", *log, f"50000.6;{line}")
    assert found["disk/md1"] == {"kernel.disk/nvme4n1"}


NVLINKS = {"0a": range(6), "06": (1,), "07": (1, 2), "0b": (3, 4), "89": (0,)}
"""Those of GPU2 of a DGX-1 and of the GPUs at their other ends, by GPU."""


@pytest.mark.parametrize(("gpus", "due"), [
    (("0a", "06", "07", "0b", "89"), {"gpu/0000:0a:00.0/NVLink"}), (("0a", "06", "07"), {"gpu/0000:0a:00.0/NVLink"}),
    (("0a", "06"), {"gpu/0000:0a:00.0/NVLink", "nvlink/0000:06:00.0/0000:0a:00.0"}),
    (("06", "07", "0b", "89"), {"nvlink/0000:06:00.0/0000:0a:00.0", "nvlink/0000:07:00.0/0000:0a:00.0",
     "nvlink/0000:0a:00.0/0000:0b:00.0", "nvlink/0000:0a:00.0/0000:89:00.0"}),
])  # fmt: skip
def test_errors_that_both_ends_count_belong_to_the_gpu_of_which_all_nvlinks_have_them(
    gpus: tuple[str, ...], due: set[str], tmp_path: Path
) -> None:
    later: dict[str, Json] = {f"nvml nvmlDeviceGetNvLinkErrorCounter 0000:{gpu}:00.0": {
        f"{link} 0": 5000 for link in NVLINKS[gpu]} for gpu in gpus}  # fmt: skip
    found = document(tmp_path, "dgx-1-v100", {}, (), later)["causes"]
    assert {cause["id"] for cause in found} == due
