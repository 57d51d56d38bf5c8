"""Texts of machines at work, with the causes that ``health`` finds in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text

from dgxcheck.readers.host import messages

COLUMNS = ("pci.bus_id", "name", "pstate", "utilization.gpu [%]", "pcie.link.gen.current", "pcie.link.gen.max",
           "clocks_throttle_reasons.active")  # fmt: skip


def csv(second: tuple[str, ...]) -> str:
    """Four GPUs at work, the second one as given."""
    usual = ("P2", "100 %", "4", "4", "0x0000000000000004")
    rows = [(f"00000000:{bus}:00.0", "NVIDIA RTX A6000", *(second if bus == "31" else usual))
            for bus in ("17", "31", "B1", "CA")]  # fmt: skip
    return "\n".join(map(", ".join, (COLUMNS, *rows))) + "\n"


@pytest.mark.parametrize(("second", "due"), [
    (("P2", "100 %", "1", "4", "0x0000000000000004"), ("warn link-slow drain",)),
    (("P8", "0 %", "1", "4", "0x0000000000000001"), ()),
    (("P2", "[N/A]", "1", "4", "0x0000000000000004"), ()),
])  # fmt: skip
def test_a_link_is_judged_by_the_load_that_a_text_shows(
    second: tuple[str, ...], due: tuple[str, ...], tmp_path: Path
) -> None:
    assert of_text(csv(second), tmp_path)[0] == due


DMON = """\
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk
# Idx      W      C      C      %      %      %      %    MHz    MHz
    0    250     70     80    100     60      0      0   2619   1980
    1    250     70     80    100     60      0      0   2619   1980
"""


@pytest.mark.parametrize("state", ["P0, 1, 4, 0x0000000000000000", "P8, 1, 4, 0x0000000000000001"])
@pytest.mark.parametrize("before", [True, False])
def test_the_load_of_another_time_says_nothing(state: str, before: bool, tmp_path: Path) -> None:
    """Of samples that were taken before or after the links and states were read."""
    head = "index, pci.bus_id, name, pstate, pcie.link.gen.current, pcie.link.gen.max, clocks_throttle_reasons.active"
    query = "".join(f"{gpu}, 00000000:{bus}:00.0, NVIDIA RTX A6000, {state}\n" for gpu, bus in ((0, 17), (1, 31)))
    causes, found = of_text("\n".join([DMON, f"{head}\n{query}"][:: 1 if before else -1]), tmp_path)
    assert causes == ()
    assert not [each["id"] for each in found["findings"] if each["status"] in ("warn", "fail", "unknown")]


def matrices(slow: set[int]) -> str:
    """Of four GPUs; copies from these have a high latency with P2P on."""
    head = "   D\\D     0      1      2      3 \n"
    lines = ["[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]"]
    lines += [f"Device: {gpu}, NVIDIA H100 80GB HBM3, pciBusID: {bus}, pciDeviceID: 0, pciDomainID:0"
              for gpu, bus in enumerate(("1b", "43", "52", "61"))]  # fmt: skip
    lines += [f"Device={a} CAN Access Peer Device={b}" for a in range(4) for b in range(4) if a != b]
    text = "\n".join(lines) + "\n\nP2P Connectivity Matrix\n     D\\D     0     1     2     3\n"
    text += "".join(f"     {gpu}\t     1     1     1     1\n" for gpu in range(4))
    titles = ("P2P=Disabled Latency Matrix (us)", "P2P=Enabled Latency (P2P Writes) Matrix (us)")
    for fast, title in enumerate(titles):
        text += f"{title}\n{head}"
        for a in range(4):
            cells = [2.1 if a == b or (fast and a not in slow) else 28.3 if fast else 14.0 for b in range(4)]
            text += f"{a:>6}   " + "  ".join(f"{cell:5.2f}" for cell in cells) + "\n"
    return text


@pytest.mark.parametrize(("slow", "suspect"), [
    ({2}, [("GPU2", None)]), ({0, 1, 2, 3}, [("host", "P2P setting")]), (set(), []),
])  # fmt: skip
def test_slow_small_copies_have_what_they_share_as_their_cause(
    slow: set[int], suspect: list[tuple[str, str | None]], tmp_path: Path
) -> None:
    _, found = of_text(matrices(slow), tmp_path)
    assert [(each["component"]["name"], each["component"]["part"]) for each in found["causes"]] == suspect


@pytest.mark.parametrize(("figures", "suspect"), [
    ([14.2, 57.1, 56.7, 57.1], ["GPU0"]), ([57.1, 57.1, 14.2, 57.0], ["GPU2"]), ([57.1, 57.1, 14.2, 14.2], []),
])  # fmt: skip
def test_one_gpu_whose_host_copies_are_slow_is_to_blame_itself(
    figures: list[float], suspect: list[str], tmp_path: Path
) -> None:
    """Of several it may be the memory or the socket that they share."""
    buses = ("1b", "43", "52", "61")
    devices = "".join(f"Device {gpu}: NVIDIA H100 80GB HBM3 (00000000:{bus}:00)\n" for gpu, bus in enumerate(buses))
    text = (
        f"nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n\n{devices}\nRunning host_to_device_memcpy_ce.\n"
        "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n           0         1         2         3\n 0"
        f"{''.join(f'{each:>10.2f}' for each in figures)}\n\nSUM host_to_device_memcpy_ce {sum(figures):.2f}\n"
    )
    _, found = of_text(text, tmp_path)
    assert [each["component"]["name"] for each in found["causes"]] == suspect
    assert bool(found["unexplained"]) == (not suspect)


PASSED, FAILED = (f"||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= {end}" for end in (
    "  0.0002184 ...... PASSED", "        nan ...... FAILED"))  # fmt: skip


@pytest.mark.parametrize(("text", "due"), [
    (PASSED, ()), (FAILED, ("fail test-failed inspect",)), (f"{FAILED}\n{PASSED}", ("fail test-failed inspect",)),
    ("  1 tests completed and passed residual checks,\n  0 tests completed and failed residual checks,", ()),
    ("  0 tests completed and passed residual checks,\n  2 tests completed and failed residual checks,",
     ("fail test-failed inspect",)),
    ("Solution Validates: avg error less than 1.000000e-13 on all three arrays", ()),
    ("Failed Validation on array c[], AvgRelAbsErr > epsilon (1.0e-13)", ("fail test-failed inspect",)),
])  # fmt: skip
def test_wrong_results_of_benchmarks(text: str, due: tuple[str, ...], tmp_path: Path) -> None:
    causes, found = of_text(f"{text}\n", tmp_path)
    assert causes == due
    assert "tools.reports" in {each["id"] for each in found["findings"]}


def test_no_tests_of_hpl_have_no_result() -> None:
    assert messages.read_messages(("  0 tests completed and passed residual checks,",)) == ()
