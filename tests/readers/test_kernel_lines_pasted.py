"""Lines of the kernel log as people paste them: without times, twice, behind a host or a program, quoted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from judging import judged, of_text
from kernel_lines import JUDGED
from sample import swept

from dgxcheck.facts.faults import Fault
from dgxcheck.readers.kernel_log.forms import as_rows

OF_MACHINES = {
    (Fault.HCA_STALLED.word, "NETDEV"): "which interfaces are Ethernet is not in the log",
    (Fault.MEMORY_ECC.word, "amd64"): "a desktop can lack ECC",
    (Fault.BMC_SILENT.word, ""): "a desktop's board declares a BMC that it lacks",
    (Fault.LINK_UNTRAINED.word, ""): "of an empty slot the kernel says the same",
}
"""Faults, and a word of the line, that need more than the log; with the reason."""
FORMS: dict[str, Callable[[Sequence[str]], Sequence[str]]] = {
    "bare": lambda lines: lines,
    "twice": lambda lines: [*lines, *lines],
    "dmesg": lambda lines: [f"[  100.{number:06}] {line}" for number, line in enumerate(lines)],
    "dmesg -T": lambda lines: [f"[Tue Nov 24 03:11:02 2026] {line}" for line in lines],
    "dmesg -T in German": lambda lines: [f"[Di Mär 24 03:11:02 2026] {line}" for line in lines],
    "dmesg -T in Portuguese": lambda lines: [f"[Ter Set 24 03:11:02 2026] {line}" for line in lines],
    "syslog": lambda lines: [f"Nov 24 03:11:02 dgx01 kernel: {line}" for line in lines],
    "pdsh": lambda lines: [f"dgx01: {line}" for line in [*lines, *lines]],
    "container": lambda lines: [f"2026-11-24T03:11:0{number}.123456789Z stdout F {line}"
                                for number, line in enumerate(lines)],
    "quoted": lambda lines: [f"> {line}" for line in lines],
    "fenced": lambda lines: ["```", *lines, "```"],
}  # fmt: skip


@pytest.mark.parametrize("form", swept(FORMS, ("bare", "twice")))
def test_a_line_that_is_judged_is_judged_in_a_text(form: str, tmp_path: Path) -> None:
    missed = []
    for number, (lines, _, fault) in enumerate(JUDGED):
        if any(fault.word == word and part in " ".join(lines) for word, part in OF_MACHINES):
            continue
        text = tmp_path / f"{number}.txt"
        text.write_text("\n".join(FORMS[form](lines)) + "\n", encoding="utf-8")
        found = {each.get("fault") for each in judged(str(text))[1]["findings"] if each["status"] in ("warn", "fail")}
        missed += [] if fault.word in found else [(fault.word, lines[0])]
    assert missed == []


PORT_LOST_A_GPU = (
    "pcieport 0000:00:03.0: AER: Multiple Uncorrected (Fatal) error received: 0000:00:03.0",
    "pcieport 0000:00:03.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)",
    "pcieport 0000:00:03.0:   device [8086:6f08] error status/mask=00004020/00000000",
    "pcieport 0000:00:03.0:    [14] CmpltTO                (First)",
    "nvidia 0000:03:00.0: AER: can't recover (no error_detected callback)",
    "snd_hda_intel 0000:03:00.1: AER: can't recover (no error_detected callback)",
    "pcieport 0000:00:03.0: AER: device recovery failed",
)
"""https://github.com/rwth-i6/returnn/issues/1500"""


@pytest.mark.parametrize("form", ["bare", "dmesg", "syslog"])
def test_the_gpu_that_an_error_of_its_port_cost_is_suspected(form: str, tmp_path: Path) -> None:
    _, found = of_text("\n".join(FORMS[form](PORT_LOST_A_GPU)) + "\n", tmp_path)
    assert [each["component"]["bdf"] for each in found["causes"]] == ["0000:03:00.0"]
    (message,) = [each["message"] for each in found["findings"] if each["status"] == "fail"]
    assert "could not recover GPU@0000:03:00.0" in message


def test_a_message_of_several_lines_in_one_of_rsyslog(tmp_path: Path) -> None:
    """imjournal writes the end of a line as its number: escapeControlCharactersOnReceive of rsyslog."""
    row = (
        "Nov 24 03:11:02 dgx01 kernel: [ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0#012NVRM: (PCI ID: 10de:26b5)"
        " installed in this system has#012NVRM: fallen off the bus and is not responding to commands.\n"
    )
    assert of_text(row, tmp_path)[0] == ("fail gpu-lost drain",)


@pytest.mark.parametrize("before", [
    "May  1 10:00:00 h myprog[1]: hello",
    "May  1 10:00:00 h myprog[1]: h kernel: NVRM: hello",
    "2026-05-01T10:00:00.1+00:00 h myprog[1]: hello",
    'May  1 10:00:00 h kernel: [  13.000000] audit: comm="x',
    "May  1 10:00:00 h kernel: [  13.000000] usb 1-1: Product: x",
    "May  1 10:00:00 h kernel: [  13.000000] EXT4-fs error (device sda1): htree_dirblock_to_tree:1070: comm ls:"
    " path /home/u/x",
])  # fmt: skip
def test_what_a_program_writes_behind_the_end_of_a_line_is_not_the_kernel_s(before: str) -> None:
    """Any user can log ``#012`` and a message of the driver behind it."""
    lines = (f"{before}#012NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",)
    assert [*as_rows(lines)] == [(0, lines[0])]


def test_an_entry_of_a_program_is_no_row_whatever_its_message_begins_with() -> None:
    entry = '{"MESSAGE": "[   13.000000] NVRM: Xid (PCI:0000:3b:00): 79, gone", "_TRANSPORT": "stdout"}'
    assert [*as_rows((entry,))] == [(0, None)]


def test_a_message_has_few_lines() -> None:
    row = f"May  1 10:00:00 h kernel: NVRM: The NVIDIA GPU 0000:b3:00.0{'#012NVRM: a' * 9999}"
    assert len([*as_rows((row,))]) == 65
