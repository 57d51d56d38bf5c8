"""An Xid that is there again after its cure: how far up the ladder, in which words, and when it is not the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from judging import judged
from sample import FAULTS
from seam import run
from test_checks_kernel import DAY, logged
from test_diagnosis import health

from dgxcheck.diagnosis.escalation import OF_COMPONENT
from dgxcheck.diagnosis.recurrence import Recurrence, escalates, remaining_steps
from dgxcheck.facts.faults.kind import Step
from dgxcheck.output.health.instructions import recurrence_text

GPU2 = "NVRM: Xid (PCI:0000:0a:00): "
UUID = "GPU-00000000-0000-0000-0002-000000000a00"
THIS_BOOT = "00000000-0000-4000-8000-000000000002"
"""Of the recording."""
RELOAD = ((7201.0, "nvidia-nvlink: Nvlink Core is being initialized, major device number 234"),
          (7202.0, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.127.05"))  # fmt: skip
GPU, MEMORY = OF_COMPONENT["gpu", ""], OF_COMPONENT["gpu", "memory"]
LOST: tuple[Step, ...] = ("power-cycle", "reseat", "field-diagnostic", "replace")


def earlier(boot: str, said: str = "62", uuid: str = UUID, begun_s: float = 13.0, gpu: str = GPU2) -> tuple[float, str]:
    """A line that a state file gave."""
    who = f", {uuid}" if uuid else ""
    return 0.0, f"dgxcheck: earlier: boot {boot}, begun {begun_s}, at 2026-11-18T09:00:00Z{who}: {gpu}{said}"


AFTER_RESET = "Xid {} came back after a reset or driver reload, which did not cure it"
ONCE = "Xid {} came back after 1 reboot (last seen at D): {}"
OFTEN = (
    "Xid {} came back after {} reboots (last seen at D): reset and reboots did not cure it, which points to hardware"
)
OFF_BUS = "the GPU fell off the bus again after {} (last seen at D): that did not cure it"


@pytest.mark.parametrize(
    ("steps", "number", "reset", "reboots", "first", "why"),
    [
        (GPU, 62, True, 0, "reboot", AFTER_RESET.format(62)),
        (GPU, 62, False, 1, "power-cycle", ONCE.format(62, "reset and reboot did not cure it")),
        (GPU, 62, True, 1, "power-cycle", ONCE.format(62, "reset and reboot did not cure it")),
        (GPU, 62, False, 2, "reseat", OFTEN.format(62, 2)),
        (GPU, 62, False, 9, "reseat", OFTEN.format(62, 9)),
        (MEMORY, 48, True, 0, "reboot", AFTER_RESET.format(48)),
        (MEMORY, 48, False, 1, "reboot", ONCE.format(48, "the reset did not cure it")),
        (MEMORY, 48, False, 2, "field-diagnostic", OFTEN.format(48, 2)),
        (LOST, 79, True, 0, "power-cycle", ""),
        (("reboot", *LOST), 79, True, 0, "reboot", ""),
        (("reboot", *LOST), 79, False, 1, "power-cycle", OFF_BUS.format("1 reboot or power cycle")),
        (("reboot", *LOST), 79, False, 3, "power-cycle", OFF_BUS.format("3 reboots or power cycles")),
        (("field-diagnostic", "replace"), 48, True, 5, "field-diagnostic", ""),
        (("reset-gpu",), 48, True, 5, "reset-gpu", ""), (("reset-gpu",), 48, True, 0, "reset-gpu", ""),
        (("reset-gpu", "replace"), 62, False, 1, "replace", ONCE.format(62, "the reset did not cure it")),
    ],
)  # fmt: skip
def test_what_was_tried_is_left_out(
    steps: tuple[Step, ...], number: int, reset: bool, reboots: int, first: Step, why: str
) -> None:
    left, recurrence = remaining_steps(steps, Recurrence(number=number, reset=reset, reboots=reboots, date="D"))
    assert left == steps[steps.index(first) :]
    assert (recurrence_text(recurrence) if recurrence else "") == why
    assert recurrence is None or recurrence.skipped == steps[: steps.index(first)]


@pytest.mark.parametrize("number", [8, 13, 31, 43, 45, 63, 92, 94, 106, 154, 999])
def test_what_is_no_fault_of_hardware_or_has_no_cure_never_escalates(number: int) -> None:
    assert not escalates(number, "Fatal")


def test_what_resets_and_restarts_cure_escalates() -> None:
    assert all(escalates(number, "") for number in (48, 62, 64, 74, 79, 95, 119, 140))
    assert escalates(149, "NETIR_LINK_EVT Fatal XC0")
    assert not escalates(149, "NETIR_LINK_EVT Nonfatal XC0")


def cause(folder: Path, *lines: tuple[float, str]) -> dict[str, Any]:
    (found,) = health(logged(folder, *lines))["causes"]
    assert isinstance(found, dict)
    return found


NOW = (9000.0, f"{GPU2}62, pid=4242, name=python3, x")
BEFORE = (3600.0, f"{GPU2}62, x")


@pytest.mark.parametrize(
    ("lines", "first", "why"),
    [
        ((BEFORE, NOW), "reset-gpu", None),  # twice, and nothing done between
        ((BEFORE, *RELOAD, NOW), "reboot", "Xid 62 came back after a reset or driver reload"),
        ((BEFORE, *RELOAD, (3600 + 30 * DAY, NOW[1])), "reboot", "Xid 62 came back after a reset or driver reload"),
        ((BEFORE, *RELOAD, (3601 + 30 * DAY, NOW[1])), "reset-gpu", None),
        (((3600.0, f"{GPU2}48, x"), *RELOAD, NOW), "reset-gpu", None),
        (((3600.0, "NVRM: Xid (PCI:0000:0b:00): 62, x"), *RELOAD, NOW), "reset-gpu", None),
        ((NOW, earlier("b1")), "power-cycle", "Xid 62 came back after 1 reboot (last seen at 2026-11-18T09:00:00Z)"),
        ((NOW, earlier("b1"), earlier("b2"), earlier("b2")), "field-diagnostic", "Xid 62 came back after 2 reboots"),
        ((NOW, earlier("b1", "48"), earlier("b2", "13")), "reset-gpu", None),
        ((NOW, earlier("b1", uuid="GPU-of-another")), "reset-gpu", None),
        ((NOW, earlier("b1", uuid="")), "power-cycle", "Xid 62 came back after 1 reboot"),
        ((NOW, earlier("b1", uuid="", gpu="NVRM: Xid (PCI:0000:0b:00): ")), "reset-gpu", None),
        ((NOW, earlier("b1", gpu="NVRM: Xid (PCI:0000:0b:00): ")), "power-cycle", "Xid 62 came back after 1 reboot"),
        ((NOW, earlier(THIS_BOOT)), "reset-gpu", None),  # of the same load of the driver: the same event
        ((*RELOAD, NOW, earlier(THIS_BOOT)), "reboot", "Xid 62 came back after a reset or driver reload"),
    ],
)  # fmt: skip
def test_the_same_gpu_number_and_a_cure_between(
    lines: tuple[tuple[float, str], ...], first: str, why: str | None, tmp_path: Path
) -> None:
    found = cause(tmp_path, *lines)
    assert found["action"]["action"] == first
    assert found["component"]["bdf"] == "0000:0a:00.0"
    if why is None:
        assert found["recurrence"] is None
    else:
        assert found["recurrence"]["text"].startswith(why)


@pytest.mark.parametrize(
    ("boots", "first", "why"),
    [(1, "reset-gpu", None), (2, "power-cycle", "Xid 62 came back after 1 reboot:"),
     (4, "field-diagnostic", "Xid 62 came back after 3 reboots: ")],
)  # fmt: skip
def test_a_saved_journal_of_several_boots_tells(boots: int, first: str, why: str | None, tmp_path: Path) -> None:
    rows = [
        f"-- Boot {boot:032x} --\n{at} Linux version 5.15\n{at} {BEFORE[1]}"
        for boot in range(boots)
        for at in [f"Nov {boot + 1} 10:00:00 dgx kernel:"]
    ]
    (tmp_path / "journal").write_text("\n".join(rows), encoding="utf-8")
    (found,) = health("dgx-1-v100", "--kernel-log", str(tmp_path / "journal"))["causes"]
    assert found["action"]["action"] == first
    assert found["recurrence"] is None if why is None else found["recurrence"]["text"].startswith(why)


def test_a_page_that_waits_is_cured_by_the_next_reset(tmp_path: Path) -> None:
    base = json.loads(Path(FAULTS["dgx-1-v100-xid-48"]).read_text(encoding="utf-8"))
    base["add"] |= {f"kmsg {n}": f"0.0;{earlier(f'b{n}', '48')[1]}" for n in (6, 7)}
    (tmp_path / "waits.json").write_text(json.dumps(base), encoding="utf-8")
    (found,) = health(str(tmp_path / "waits.json"))["causes"]
    assert (found["recurrence"], found["action"]["action"]) == (None, "reset-gpu")


def test_programs_at_fault_escalate_nothing(tmp_path: Path) -> None:
    before = [(1000.0 + n, f"{GPU2}13, pid={n}, name=x, y") for n in range(4)]
    after = [(8000.0 + n, f"{GPU2}13, pid={n}, name=x, y") for n in range(4)]
    found = cause(tmp_path, *before, *RELOAD, *after, earlier("b1", "13"), earlier("b2", "13"))
    assert (found["recurrence"], found["action"]["action"]) == (None, "check-program")


def test_a_fault_of_another_part_is_not_the_same_again(tmp_path: Path) -> None:
    """Only causes that explain the Xid go up."""
    document = health(logged(tmp_path, NOW, earlier("b1"), (9001.0, "NVRM: Xid (PCI:0000:85:00): 74, link 1")))
    assert {each["component"]["bdf"]: bool(each["recurrence"]) for each in document["causes"]} == {
        "0000:0a:00.0": True, "0000:85:00.0": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "steps"),
    [
        ("dgx-1-v100-xid-62-again", ["reboot", "power-cycle", "field-diagnostic", "contact-vendor"]),
        ("dgx-1-v100-xid-48-again", ["field-diagnostic", "contact-vendor"]),
        ("dgx-1-v100-xid-79-again", ["power-cycle", "field-diagnostic", "contact-vendor"]),
    ],
)
def test_the_shipped_faults_go_up(fault: str, steps: list[str]) -> None:
    (found,) = judged(fault)[1]["causes"]
    (first,) = judged(fault.removesuffix("-again"))[1]["causes"]
    assert [step["action"] for step in found["actions"]] == ["drain", *steps]
    assert [step["action"] for step in first["actions"]][-len(steps) :] == steps
    assert first["recurrence"] is None
    assert found["recurrence"]


def test_the_text_says_so_above_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "health", "--from", "dgx-1-v100-xid-62-again").out.splitlines()
    place = next(n for n, line in enumerate(said) if "Xid 62 came back after a reset or driver reload, which" in line)
    assert said[place + 1].strip().startswith("1. drain: ")
    assert said[place + 2].strip().startswith("2. reboot")


def test_a_lost_gpu_sits_where_the_others_do() -> None:
    (found,) = judged("dgx-1-v100-xid-79-again")[1]["causes"]
    assert found["actions"][-1]["text"] == "GPU tray and modules are serviced by the vendor only"
