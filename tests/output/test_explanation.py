"""``--explain`` on a box: checks, one finding by its key, a fault word; and what it says of a mistyped one."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample import swept
from seam import run

from dgxcheck.assessment import assess
from dgxcheck.assessment.selection import findings_of, has_nvidia_gpu, topic, words
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.faults import Fault
from dgxcheck.output.health.explanation import on_box
from dgxcheck.settings import THRESHOLDS

NARROW = "dgx-1-v100-gpu-x8"
GPU2 = "0000:0a:00.0"


def members(page: str) -> dict[str, str]:
    """The page of the worst finding, by what stands before the colon."""
    lines = [line for line in page.splitlines() if line.startswith("  ") and ": " in line and line[2] != " "]
    return {name.strip(): rest.strip() for name, _, rest in (line.partition(":") for line in lines)}


@pytest.mark.parametrize(
    "word", ["pcie.width", "pcie.width/GPU2", "pcie.width/gpu2", f"pcie.width/{GPU2}", "link-narrow", f"pcie/{GPU2}"]
)
def test_a_page_says_why_what_and_where(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "health", "--explain", word, "--from", NARROW)
    assert (done.code, done.err) == (0, "")
    page = members(done.out)
    assert page["Reading"].startswith("PCIe x8 instead of x16; link 0000:09:08.0 - 0000:0a:00.0")
    assert (page["Measured"], page["Limit"]) == ("8 lanes", "16 lanes")
    assert page["Compared"] == "dgx-1-v100, NVIDIA DGX-1 with eight V100"
    assert page["Fault"].startswith("link-narrow: ")
    assert page["Blames"].startswith(f"PCIe link 0000:09:08.0 - {GPU2}")
    assert page["First"].startswith("cold power cycle")
    tree = [line for line in done.out.splitlines() if "─" in line]
    assert [line.split()[1] for line in tree] == ["0000:00:03.0", "0000:08:00.0", "0000:09:08.0", GPU2]
    assert tree[-1].endswith("[gen3 x8, narrow, both ends support x16]")


def test_on_a_healthy_box_there_is_a_line_per_device(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "health", "--explain", "pcie.width", "--from", "dgx-1-v100").out
    assert out.count("  PASS pcie.width GPU") == 8
    assert "Reading:" not in out


def test_a_threshold_is_explained_by_the_checks_that_compare_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "health", "--explain", "host.memory-missing").out
    assert [line for line in out.splitlines() if line[:1].strip()] == ["host.memory", "host.inventory"]
    assert out.count("  host.memory-missing: 3 % (") == 2
    assert all(topic(word).checks for word in THRESHOLDS)


@pytest.mark.parametrize(
    ("word", "due"),
    [
        ("link-narow", "no check 'link-narow'; did you mean link-narrow?"),
        ("pcie.with/GPU2", "no check 'pcie.with'; did you mean pcie.width?"),
        ("pcie.width/GPU22", "no finding 'pcie.width/GPU22'; did you mean pcie.width/GPU2?"),
        ("xyzzy", "no check 'xyzzy'; list the checks with 'dgxcheck health -H'"),
        ("", "no check ''; list the checks"),
    ],
)
def test_a_mistyped_word(word: str, due: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "health", "--explain", word, "--from", NARROW)
    assert (done.code, done.out) == (3, "")
    assert due in done.err


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("power-limit", ("power limit (GpuPower.limit_mw): setting", "Judged: alike among siblings",
                         "power limit 300 W: GPU0, GPU1", "power limit 163 W: GPU2")),
        ("gpupower.limit_mw", ("power limit 163 W: GPU2",)),
        ("Power limit", ("power limit 163 W: GPU2",)),
        ("symbol-error",
         ("(IbPort.counters.symbol_error): counter", "Allowed: ", "symbol error 0: mlx5_0/1, mlx5_1/1, mlx5_2/1")),
        ("module-state", ("Good: live", "module state live: ")),
        ("temperature", ("Possible: 1 °C to 150 °C",)),
    ],
)  # fmt: skip
def test_a_fact_has_its_row_and_its_values(
    word: str, told: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    done = run(capsys, "health", "--explain", word, "--from", "dgx-1-v100-power-cap")
    assert (done.code, done.err) == (0, "")
    assert [each for each in told if each not in done.out] == []


def test_a_fault_that_the_box_has_not(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "health", "--explain", "gpu-lost", "--from", "dgx-1-v100").out
    assert out.startswith(f"gpu-lost (hardware): {Fault.GPU_LOST.meaning}\n")
    assert "On this box: no such finding" in out


@pytest.mark.parametrize("box", swept([NARROW, "dgx-1-v100-not-root", "dgx-a100", "dgx-1-v100-no-nvml"], 3))
def test_every_finding_has_a_page(box: str) -> None:
    judged = assess(box)
    for finding in judged.findings:
        about = topic(finding.key if "/" in finding.key else finding.id)
        found = findings_of(about, judged)
        assert finding in found
        page = on_box(about, judged, found, judged.settings, 80)
        assert page.startswith(f"{finding.id}\n")
        assert all(len(line) <= 80 or " " not in line.strip() for line in page.splitlines()), page


def test_every_word_is_a_topic() -> None:
    for word in words():
        about = topic(word)
        assert about.checks or about.fault is not None, word
    assert {check.id for check in CHECKS} <= {*words()}


def test_a_machine_without_gpus_is_not_judged(tmp_path: Path) -> None:
    device = tmp_path / "sys/bus/pci/devices/0000:0a:00.0"
    assert not has_nvidia_gpu(str(tmp_path))
    device.mkdir(parents=True)
    assert not has_nvidia_gpu(str(tmp_path))
    (device / "vendor").write_text("0x8086\n")
    assert not has_nvidia_gpu(str(tmp_path))
    (device / "vendor").write_text("0x10de\n")
    assert has_nvidia_gpu(str(tmp_path))
