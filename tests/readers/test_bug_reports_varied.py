"""Bug reports as scripts of other years, locales and machines write them, and damaged ones: same facts, or fewer."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from report_writer import LINE, sections
from sample import swept

from dgxcheck.assessment import Request, assess
from dgxcheck.assessment.importing.bundle import opened
from dgxcheck.source.recording.load import open_source

BOX = "pcie-x4"
NEW, OLD = (sections(open_source(BOX), old=old) for old in (False, True))
ERAS = {"new": NEW, "old": OLD}


def put(folder: Path, found: Sequence[str], name: str = "nvidia-bug-report.log") -> str:
    (folder / name).write_text("".join(found), encoding="utf-8")
    return str(folder / name)


def facts(folder: Path, found: Sequence[str]) -> dict[str, Any]:
    return opened(put(folder, found)).facts


@pytest.mark.parametrize("seed", swept(range(3), 2))
@pytest.mark.parametrize("era", ERAS)
def test_sections_in_any_order(era: str, seed: int, tmp_path: Path) -> None:
    head, *middle, foot = ERAS[era]
    moved = random.Random(seed).sample(middle, len(middle))
    assert facts(tmp_path, [head, *moved, foot]) == facts(tmp_path, [head, *middle, foot])


def with_dots(text: str) -> str:
    return text.replace("*** /proc/driver/nvidia/", "*** /proc/driver/nvidia/./")


def short(text: str) -> str:
    return text.replace("/usr/bin/nvidia-smi --query\n", "/usr/bin/nvidia-smi -q\n").replace(
        "/usr/bin/nvidia-smi --query --unit", "/usr/bin/nvidia-smi -q -u"
    )


def elsewhere(text: str) -> str:
    return text.replace("\n/usr/bin/", "\n/usr/local/bin/").replace("\n/sbin/", "\n/usr/sbin/")


def in_chinese(text: str) -> str:
    text = text.replace("Date: Mon 23 Nov 2026 10:00:00 AM CET", "Date: 2026年 11月 23日 星期一 10:00:00 CST")
    return text.replace(" 2026-11-23 10:00:00.123456789 +0100 ", " 11月 23 10:00 ")


def in_german(text: str) -> str:
    return text.replace("Date: Mon 23 Nov 2026 10:00:00 AM CET", "Date: Mo 23. Nov 10:00:00 CET 2026").replace(
        "  journalctl -b -0:\nNov ", "  journalctl -b -0:\nNov. "
    )


def of_windows(text: str) -> str:
    return text.replace("\n", "\r\n")


def with_long_lines(text: str) -> str:
    return text.replace(f"{LINE}\n", "_" * 48 + "\n")


WRITTEN: dict[str, Callable[[str], str]] = {
    write.__name__: write for write in (with_dots, short, elsewhere, in_chinese, in_german, of_windows, with_long_lines)
}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("era", swept(ERAS, 3))
def test_titles_dates_and_line_ends_of_other_scripts(era: str, name: str, tmp_path: Path) -> None:
    assert facts(tmp_path, [WRITTEN[name](each) for each in ERAS[era]]) == facts(tmp_path, ERAS[era])


NOISE = (
    "Skipping: mst output\nmst not found\n", "*** /proc/pci does not exist\n", "",
    "Summary of Skipped Sections:\n\nComponent | Details\n-----\nNVIDIA SMI | ok\n",
    "base64 \"nvidia-nvml-temp1.log\"\n\n" + "QUJD" * 19 + "\n",
    "*** /var/log/Xorg.0.log\n*** ls: -rw-r--r-- 1 root root 99 2026-11-23 10:00 x\n(EE) Failed to load module\n",
    "/usr/bin/systemctl status nvidia-imex.service\n\nUnit nvidia-imex.service could not be found.\n",
    "/usr/bin/lsusb\n\nBus 001 Device 001: ID 1d6b:0002 Linux Foundation 2.0 root hub\n",
)  # fmt: skip


@pytest.mark.parametrize("era", ERAS)
def test_sections_that_hold_no_facts_change_none(era: str, tmp_path: Path) -> None:
    head, *middle, foot = ERAS[era]
    mixed = [each for number, section in enumerate(middle)
             for each in (section, f"{LINE}\n\n{NOISE[number % len(NOISE)]}\n")]  # fmt: skip
    assert facts(tmp_path, [head, *mixed, foot]) == facts(tmp_path, [head, *middle, foot])


def alarms(spec: str) -> set[str]:
    return {each.id for each in assess(spec, Request()).findings if each.status.value in ("warn", "fail")}


@pytest.mark.parametrize("missing", swept(range(1, len(NEW) - 1), 12))
def test_a_section_that_is_missing_raises_no_alarm(missing: int, tmp_path: Path) -> None:
    assert alarms(put(tmp_path, [*NEW[:missing], *NEW[missing + 1 :]])) == set()


@pytest.mark.parametrize("seed", swept(range(24), 12))
def test_a_report_cut_anywhere_raises_no_alarm(seed: int, tmp_path: Path) -> None:
    """In the middle of a section, or of a gzip member."""
    chance = random.Random(seed)
    packed = b"".join(gzip.compress(each.encode(), 1) for each in NEW)
    cut = tmp_path / "nvidia-bug-report.log.gz"
    cut.write_bytes(packed[: chance.randrange(200, len(packed))])
    assert alarms(str(cut)) == set()
    text = "".join(NEW)
    assert alarms(put(tmp_path, [text[: chance.randrange(200, len(text))]])) == set()


@pytest.mark.parametrize("seed", swept(range(24), 12))
def test_a_damaged_member_raises_no_alarm(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    packed = bytearray(b"".join(gzip.compress(each.encode(), 1) for each in NEW))
    at = chance.randrange(100, len(packed))
    packed[at : at + 50] = chance.randbytes(50)
    path = tmp_path / "nvidia-bug-report.log.gz"
    path.write_bytes(packed)
    assert alarms(str(path)) == set()
