"""A cause in one line of every overlay, and its part, slot and serial number in every format."""

from __future__ import annotations

import json
import re
import statistics
from html import unescape
from pathlib import Path

import pytest
from checkout import ROOT
from judging import briefly, judged, printed
from sample import FAULTS, swept
from seam import run

from dgxcheck.assessment import Request, assess
from dgxcheck.checks.engine.finding import Status
from dgxcheck.output.health import overview, page, text
from dgxcheck.output.health.causes import fru_lines
from dgxcheck.output.health.for_programs import as_json, junit
from dgxcheck.output.health.headline import LONGEST, headline
from dgxcheck.output.health.instructions import STEPS
from dgxcheck.output.report import HealthReport

_GENERIC = {STEPS[step] for step in STEPS} - {
    STEPS[step] for step in ("watch", "check-program", "restart-program", "reboot", "power-cycle", "contact-vendor",
                             "contact-host")
}
"""Verbs that say nothing of what is to be done."""
_NUMBERED = re.compile(r"\b(?:GPU|mlx5_)\d+\b")


@pytest.mark.of_all_faults
def test_headlines_are_short() -> None:
    lengths: dict[str, int] = {}
    for name in FAULTS:
        for cause in briefly(name)["causes"]:
            lengths[f"{name} {cause['id']}"] = len(cause["headline"])
        assert len(printed(name)[1].partition("\n")[0]) <= LONGEST + 30, name
    assert {name: length for name, length in lengths.items() if length > 120} == {}
    assert statistics.median(lengths.values()) <= 80


def test_a_tools_text_about_fabric_manager_is_looked_into_first(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("[ERROR] fabric manager error handler is called for unhandled config error type 8\n")
    (cause,) = judged(str(path))[1]["causes"]
    assert cause["headline"].endswith(" -> systemctl status nvidia-fabricmanager")


@pytest.mark.parametrize(("line", "due"), [
    ("[    1.000000] nvidia 0000:07:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 address=0x80000040"
     " flags=0x0020]",
     "PCI function 07:00.0: the IOMMU refused 1 access to memory -> "),
    ("[    1.000000] pci 0000:0b:00.0: BAR 1 [mem size 0x800000000 64bit pref]: failed to assign",
     "PCI function 0b:00.0: the kernel found no room"),
])
def test_a_setting_that_one_function_shows_is_named_with_it(line: str, due: str, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(f"{line}\n")
    (cause,) = judged(str(path))[1]["causes"]
    assert cause["headline"].startswith(due)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("pcie-x8-gpu-x8", "GPU5 (85:00.0): PCIe x8 instead of x16 -> drain, cold power cycle"),
        ("dgx-1-v100-hot", "GPU2: 88 °C, clocks held down -> drain, check this GPU's heat sink or cold plate once it is"
                           " drained"),
        ("pcie-x8-bridge-off", "switch above GPU6 and GPU7: bus mastering off, no DMA reaches memory -> "),
        ("dgx-a100-fabric-manager-down", "0 of 96 NVLinks up (6 NVSwitches) -> systemctl status nvidia-fabricmanager"),
        ("dgx-h200-fabric-not-started", "no GPU is registered with the NVSwitch fabric -> systemctl status nvidia-"),
        ("dgx-1-v100-brakes-scattered", "GPU0, GPU3, GPU6: clocks held down: power brake -> ipmitool sdr"),
        ("dgx-1-v100-no-gpu-starts", "8 GPUs: NVML does not list them -> drain, reload the driver's modules"),
        ("dgx-1-v100-switch-dead", "switch above 2 GPUs, 1 HCA: 2 GPUs lost, NVML cannot open them -> drain, cold"),
        ("dgx-a100-ports-down", "InfiniBand fabric: 12 ports are DOWN (polling) -> check the switch"),
        ("dgx-h100-power-cap", "all 8 GPUs: power limit 500 W, default 700 W -> nvidia-smi -pl 700"),
        ("dgx-b200-slot-contained", "GPU (df:00.0): fell off the bus 9000 s after boot (Xid 79) -> drain, reboot"),
        ("pcie-x8-sockets-slow", "between NUMA nodes 0 and 1: 16 pairs, P2P off .. -> drain, check the socket links"),
        ("dgx-2-nvlink-slow", "GPU5 to 15 GPUs, P2P on: 96 GB/s, 67 % of 144 GB/s -> check NVLinks"),
        ("dgx-2-hca-asleep", "HCA (58:00.0): no driver is bound to this HCA"),
        ("k80-x8-board-hot", "board of GPU4 and GPU5: clocks held down: hardware slowdown -> check fans"),
        ("dgx-a100-reboot-required", "GPU4 (87:00.0): the driver requires a node reboot -> drain, reboot"),
    ],
)  # fmt: skip
def test_device_state_and_command(name: str, line: str) -> None:
    assert line in judged(name)[1]["causes"][0]["headline"]


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("dgx-1-v100-gpu-missing", "missing GPU3 (0b:00.0): Tesla V100-SXM2-16GB, serial 0000000002003"),
        ("dgx-1-v100-hca-missing", "missing mlx5_1 (0c:00.0): MT4115"),
    ],
)
def test_a_missing_device_is_named_by_the_baseline(
    name: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run(capsys, "health", "--from", name, "--baseline", "dgx-1-v100").out
    assert out.startswith(f"FAIL  {named} -> lspci -tv, then reboot\n")


@pytest.mark.of_all_faults
def test_no_device_and_no_command_is_said_twice() -> None:
    for name in FAULTS:
        for cause in briefly(name)["causes"]:
            what, _, action = cause["headline"].partition(" -> ")
            bdf = (cause["component"]["bdf"] or "none").removeprefix("0000:")
            assert cause["headline"].count(bdf) <= 1, (name, cause["headline"])
            assert action, (name, cause["headline"])
            assert action not in _GENERIC, (name, cause["headline"])
            named = _NUMBERED.findall(what)
            assert len(named) == len({*named}), (name, cause["headline"])
            assert " " not in action or action not in what, (name, cause["headline"])


@pytest.mark.parametrize("name", swept(FAULTS, ("l40s-x8-unpowered", "dgx-1-v100-acs-everywhere")))
def test_where_there_is_little_room_it_is_said_what_to_look_at(name: str) -> None:
    assessment = assess(name)
    for cause in assessment.causes:
        for room in (45, 60, 80):
            line = headline(assessment, cause, room)
            assert line.rpartition(" -> ")[2] not in (STEPS["inspect"], STEPS["change-setting"]), line


@pytest.mark.parametrize("name", swept(FAULTS, ("dgx-1-v100-hot", "k80-x8-board-hot", "dgx-1-v100-hca-x8")))
def test_every_format_has_the_line_and_the_part(name: str) -> None:
    profile = "k80-x8" if name.startswith("k80") else "auto"
    report = HealthReport(assessment=assess(name, Request(profile=profile)), exit_code=0, verbose=True)
    renderers = (text.render, page.as_html, page.as_markdown, as_json.render, junit.render, page.as_svg)
    shown = [unescape(render(report)).replace("\\", "") for render in renderers]
    for cause in report.assessment.causes:
        marks = [mark for unit in cause.frus for mark in (unit.serial, unit.slot) if mark]
        for form, whole in zip(renderers, shown, strict=True):
            missing = [mark for mark in marks if mark not in whole]
            assert missing == [], (name, form.__module__, headline(report.assessment, cause), [*fru_lines([cause])])


def test_a_fallen_nvswitch_that_logged_an_sxid_is_named_once(tmp_path: Path) -> None:
    fallen = json.loads((ROOT / "fixtures/faults/dgx-a100-nvswitch-fell-off.json").read_text(encoding="utf-8"))
    line = "9000.5;nvidia-nvswitch1: SXid (PCI:0000:c6:00.0): 24007, Fatal, Link 30 sourcetrack timeout error"
    path = tmp_path / "box.json"
    path.write_text(json.dumps({**fallen, "add": {"kmsg 9000": line}}), encoding="utf-8")
    report = assess(str(path))
    (said,) = [headline(report, cause) for cause in report.causes if cause.component.kind == "nvswitch"]
    assert said.count("NVSwitch") == 1


def test_nvswitches_are_those_of_all_gpus_that_fail_by_them_as_by_a_notice(tmp_path: Path) -> None:
    others = ("1b", "43", "52", "61", "c3", "d1", "df")
    registers = "XC0 i0 Link 02 (0x0409a0c2 0x00000008 0x00000001 0x00000000 0x00100000 0x00000004)"
    log = [f"9d:00): 144, SAW_MVB Fatal {registers}",
           "9d:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
           *(line for gpu in others for line in (
               f"{gpu}:00): 145, RLW_REMAP Nonfatal {registers}",
               f"{gpu}:00): 45, pid=77, name=python3, Ch 00000001 caused by previous Xid 145"))]  # fmt: skip
    lines = {f"kmsg {40 + n}": f"{3600 + n / 5:.6f};NVRM: Xid (PCI:0000:{line}" for n, line in enumerate(log)}
    path = tmp_path / "box.json"
    overlay = {"schema": "dgxcheck/overlay/1", "base": "dgx-b200", "facts": {}, "add": lines}
    path.write_text(json.dumps(overlay), encoding="utf-8")
    report = assess(str(path))
    assert headline(report, report.causes[0]).startswith("NVSwitches of GPU0 to GPU7: Xid 144")


def test_the_extended_level_says_where_nothing_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    for level, ends in (("-e", True), ("-q", False)):
        first = run(capsys, "health", level, "--from", "dgx-1-v100").out.partition("\n")[0]
        assert first.endswith("; nothing was measured") == ends


@pytest.mark.parametrize("option", ["--ticket", "--brief"])
def test_the_short_forms(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, "health", "--from", "dgx-1-v100-gpu-x8", option).out.splitlines()
    whole = "\n".join(lines)
    assert "serial 0000000002002" in whole
    assert "PCIe x8 instead of x16" in whole
    if option == "--brief":
        assert len(lines) <= 24
        assert "Not ok: GPU2 fail." in whole
    else:
        assert "[ ] 2. cold power cycle" in whole
        assert "nvidia-bug-report.sh" in whole
        assert "Serial number: MADEUP0001" in whole


@pytest.mark.parametrize(
    ("box", "told"),
    [("dgx-2-nvswitch-missing", "GPU0 to GPU7 fail"), ("dgx-1-v100-no-nvml", "GPU0 to GPU7 unknown")],
)
def test_brief_names_devices_of_one_state_together(box: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "health", "--from", box, "--brief").out.splitlines()[1] == f"Not ok: {told}."


def test_core_metrics_are_few_and_have_a_verdict_for_each_device(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "health", "--from", "dgx-a100-nvlink-down", "--format", "prometheus").out
    series = [line for line in out.splitlines() if not line.startswith("#")]
    assert len(series) <= 150
    verdicts = [line for line in series if line.startswith("dgxcheck_device_verdict{")]
    assert len(verdicts) == 8 + 12
    assert [line[-1] for line in verdicts if 'gpu="0"' in line] == ["2"]
    assert all('UUID="' in line and 'pci_bus_id="0000' in line for line in verdicts if 'gpu="' in line)
    out = run(capsys, "health", "--from", "dgx-a100-nvlink-down", "--format", "prometheus", "--metrics", "all").out
    assert len(out.splitlines()) > 1000


@pytest.mark.parametrize(
    ("name", "blamed"),
    [
        ("dgx-1-v100-silent-and-lost", "GPU2 GPU6"),  # of GPU6 something else is unknown
        ("dgx-1-v100-switch-dead", "GPU@0000:0a:00.0 GPU@0000:0b:00.0 mlx5_1"),  # GPU0 logged that they are gone
        ("dgx-a100-xid-48-recovery", "GPU1"),  # GPU4 logged an Xid of its traffic
        ("dgx-1-v100-nvlink-crc", "GPU1 GPU2"),  # counted at one end
        ("pcie-x8-uplink-slow", "GPU2 GPU3"),  # copies to and from all others are slow
        ("dgx-2-nvlink-slow", "GPU5"),
        ("dgx-1-v100-acs-redirect", ""),
        ("pcie-x8-sockets-slow", ""),  # each copy that crosses the interconnect is slow
        ("k80-x8-p2p-acs", ""),  # a port of the switch sends their traffic up
    ],
)
def test_the_state_blames_the_suspects_alone(name: str, blamed: str) -> None:
    states = overview.verdicts(assess(name, Request()))
    assert [device.name for device, status in states if status is not Status.PASS] == blamed.split()


def test_a_domain_of_five_digits_is_a_part_of_the_bus_id(tmp_path: Path) -> None:
    for folder, name in (("fixtures", "dgx-1-v100"), ("fixtures/faults", "dgx-1-v100-gpu-lost")):
        given = (ROOT / folder / f"{name}.json").read_text(encoding="utf-8")
        moved = re.sub(r"(?<![0-9a-f])0000:0(?=[0-9a-f]:)", "10000:0", given).replace("pci0000:00", "pci10000:00")
        (tmp_path / f"{name}.json").write_text(moved.replace('"base": "dgx-1-v100"', '"base": "dgx-1-v100.json"'))
    _, found = judged(str(tmp_path / "dgx-1-v100-gpu-lost.json"))
    assert any("(10000:0a:00.0): " in cause["headline"] for cause in found["causes"]), found["causes"]


def test_a_warning_does_not_stand_for_what_is_unknown(tmp_path: Path) -> None:
    """A GPU that shows ERR! beside persistence mode that is off."""
    path = tmp_path / "smi.txt"
    rows = (f"{at}, NVIDIA L40S, 00000000:{at}D:00.0, {temperature}, Disabled\n"
            for at, temperature in enumerate(("38", "[Unknown Error]")))  # fmt: skip
    path.write_text("index, name, pci.bus_id, temperature.gpu, persistence_mode\n" + "".join(rows))
    assessment = assess(str(path), Request())
    assert [cause.severity for cause in assessment.diagnosis.causes] == [Status.WARN]
    assert text.verdict_line(assessment).startswith("UNKNOWN  GPU1 0000:1d:00.0: ")


def test_a_finding_that_no_component_explains_alone_keeps_its_step(tmp_path: Path) -> None:
    """One of eight whose copies to and from the host are slow: its link, its switch or the GPU."""
    gpus = [gpu.bdf for gpu in assess("dgx-h100", Request()).topology.gpus]
    more = {"unit": "GB/s", "method": "copies", "tool": "dgxcheck", "how": "measured"}
    add = {f"measure {way} {bdf}": {"value": 26.0 if bdf == gpus[3] else 55.0, **more}
           for bdf in gpus for way in ("host-to-device", "device-to-host")}  # fmt: skip
    (path := tmp_path / "slow.json").write_text(json.dumps({
        "schema": "dgxcheck/overlay/1", "base": "dgx-h100", "fault": "x", "sources": ["x"], "add": add,
        "expect": {"findings": [], "component": "", "skips": []},
    }))  # fmt: skip
    assessment = assess(str(path), Request())
    assert assessment.diagnosis.causes == ()
    assert text.verdict_line(assessment) == (
        "FAIL  GPU3: device to host: 26 GB/s, 50 % of 52 GB/s -> check PCIe width and generation under load"
    )
