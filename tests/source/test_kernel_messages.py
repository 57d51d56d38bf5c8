"""Every line that is read, taken the whole way from every form of a log to the facts: nothing is put in behind it."""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, get_args

import pytest
from checkout import ROOT
from kernel_lines import JUDGED, UNJUDGED, Lines

from dgxcheck.facts.kernel_log import MARK, HcaTrouble, HostTrouble, IommuRefusal, KernelLog, ModuleTrouble, NoStart
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import fields
from dgxcheck.kernel_messages import gpu, hca, host, memory, pcie, storage
from dgxcheck.kernel_messages.forms import FORMS
from dgxcheck.package_files import table
from dgxcheck.source.kernel_log.kmsg import line, relevant_lines
from dgxcheck.source.kernel_log.saved import times
from probes import kernel_log
from probes.kernel_log import facts

EXAMPLES: tuple[Lines, ...] = (*(lines for lines, _, _ in JUDGED), *UNJUDGED)
FOLDER = ROOT / "dgxcheck" / "kernel_messages"
SUBJECTS = (gpu, hca, host, memory, pcie, storage)
AT_S = 1000.0
STEP_S = 0.05


def kmsg(lines: Lines) -> str:
    return "".join(f"4,{number},{micro(number)},-;{text}\n" for number, text in enumerate(lines))


def dmesg(lines: Lines) -> str:
    return "".join(f"[{seconds(number):12.6f}] {text}\n" for number, text in enumerate(lines))


def dmesg_x(lines: Lines) -> str:
    return "".join(f"kern  :err   : [{seconds(number):12.6f}] {text}\n" for number, text in enumerate(lines))


def dmesg_t(lines: Lines) -> str:
    return "".join(f"[Fri Nov 20 12:16:40 2026] {text}\n" for text in lines)


def journal(lines: Lines) -> str:
    return "".join(f"Nov 20 12:16:40 dgx kernel: {text}\n" for text in lines)


def journal_json(lines: Lines) -> str:
    rows = ({"_TRANSPORT": "kernel", "__MONOTONIC_TIMESTAMP": str(micro(number)), "MESSAGE": text}
            for number, text in enumerate(lines))  # fmt: skip
    return "\n".join(map(json.dumps, rows))


def syslog(lines: Lines) -> str:
    return "".join(f"2026-11-20T12:16:40.{number:06}+00:00 dgx kernel: [{seconds(number):12.6f}] {text}\n"
                   for number, text in enumerate(lines))  # fmt: skip


def one_record(lines: Lines) -> str:
    """A message of several lines, as /dev/kmsg gives it."""
    return f"4,1,{micro(0)},-;" + "\\x0a".join(lines) + "\n"


FORMATS = (kmsg, dmesg, dmesg_x, dmesg_t, journal, journal_json, syslog)


def seconds(number: int) -> float:
    return AT_S + number * STEP_S


def micro(number: int) -> int:
    return round(seconds(number) * 1e6)


def events(lines: Sequence[str]) -> dict[str, list[object]]:
    """What a log says, without the times."""
    log = facts(lines, "here")
    assert not isinstance(log, Missing)
    return {
        name: [
            {field: getattr(event, field) for field in fields(event) if field not in ("seconds", "begun_s")}
            for event in getattr(log, name)
        ]
        for name in fields(KernelLog)
        if isinstance(getattr(log, name), tuple)
    }


def read(text: str) -> tuple[str, ...]:
    log = times(text)
    assert log is not None
    return relevant_lines(log)


def test_every_form_has_an_example() -> None:
    messages = [message for lines in EXAMPLES for message in lines]
    read = [form for form in FORMS if not form.context]
    assert len(read) > 90
    assert [form.expression for form in read if not any(map(form.match, messages))] == []


def test_the_words_of_a_message_are_in_one_table() -> None:
    """Those of several subjects are a table of their own, from which each has its forms."""
    words = {(path.stem, row["before"].partition("}")[2], row["literal"], row["after"])
             for path in FOLDER.glob("*.tsv") if path.stem != "driver_errors"
             for row in table(f"kernel_messages/{path.name}") if row["literal"] and row["after"]}  # fmt: skip
    assert [each for each, times in Counter(row[1:] for row in words).items() if times > 1] == []
    silent = [form for module in (gpu, hca, pcie) for form in module.FORMS if form.literals == (" change power state",)]
    assert len(silent) == 3


OF_ALL = {"event", "context", "forgeable", "several lines", "goes on with it"}
"""Names that ``form.py`` and ``forms.py`` ask any table for."""
MEANINGS = {
    (gpu, "not started"): NoStart, (gpu, "goes on"): NoStart, (gpu, "module refused"): ModuleTrouble,
    (gpu, "nvlink trouble"): gpu.NvLinkTrouble, (hca, "trouble"): HcaTrouble, (pcie, "IOMMU"): IommuRefusal,
    (host, "event"): HostTrouble,
}  # fmt: skip


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_names_of_a_table_are_those_that_code_asks_for(subject: Any) -> None:
    code = inspect.getsource(subject) + (inspect.getsource(kernel_log) if subject is gpu else "")
    asked = {*re.findall(r"""(?:match|matches|found|bdf|_bar)\("([^"]+)"|FORMS\["([^"]+)"\]""", code)}
    rows = table(f"kernel_messages/{subject.__name__.rpartition('.')[2]}.tsv")
    named = {name for row in rows if row["literal"] for name in row["names"].split(", ")}
    assert {*map("".join, asked)} | OF_ALL == named | OF_ALL


@pytest.mark.parametrize(("subject", "name"), MEANINGS)
def test_meanings_are_known(subject: Any, name: str) -> None:
    meanings = {meaning.partition(": ")[0] for meaning in subject.FORMS[name].values()}
    assert meanings <= {*get_args(MEANINGS[subject, name])}


def test_a_line_is_of_one_subject() -> None:
    """Each parser sees the lines of its subject alone."""
    of = {form: module.__name__ for module in SUBJECTS for form in module.FORMS if not form.context}
    for lines in EXAMPLES:
        for message in lines:
            assert len({subject for form, subject in of.items() if form.match(message)}) < 2, message


@pytest.mark.parametrize("written", FORMATS, ids=lambda written: written.__name__)
def test_every_line_arrives(written: Callable[[Lines], str]) -> None:
    for lines in EXAMPLES:
        behind_the_filter = (line(0.0, MARK), *(line(seconds(number), text) for number, text in enumerate(lines)))
        expected, found = events(behind_the_filter), events(read(written(lines)))
        assert found == expected, lines
        assert any(found.values()) or lines in UNJUDGED, lines


def test_a_message_of_several_lines_arrives_as_one_record() -> None:
    whole = [lines for lines in EXAMPLES if len(lines) > 1 and lines[0].startswith(("NVRM: Th", "systemd"))]
    assert len(whole) > 5
    for lines in whole:
        assert any(events(read(one_record(lines))).values()), lines


def test_what_nobody_reads_is_not_kept() -> None:
    for text in (
        "EXT4-fs (sda2): mounted filesystem with ordered data mode. Opts: errors=remount-ro",
        "pci 0000:00:1c.0: BAR 13: no space for [io  size 0x1000]",
        "pci 0000:06:00.0: BAR 7: no space for [mem size 0x2000000 64bit pref]",
        "XFS (sda1): Mounting V5 Filesystem",
        "Loading of compiled-in X.509 certificates",
        "usb 1-1: new high-speed USB device number 2",
        "audit: type=1400 audit(1700000000.123:45): apparmor=\"STATUS\" operation=\"profile_load\" name=\"nvidia\"",
    ):
        assert len(read(dmesg((text,)))) == 1, text


@pytest.mark.parametrize(("counts_as", "logged", "expected"), [
    (154, set(), True), (154, {13}, True), (154, {79}, False), (154, {13, 79}, False), (119, {79}, True),
    (119, {119}, False), (119, {120}, False), (120, {119}, True),
])  # fmt: skip
def test_a_line_without_a_number_is_news_where_no_xid_says_the_same(
    counts_as: int, logged: set[int], expected: bool
) -> None:
    """A reset follows from every error of a GPU, not from what a program did."""
    assert gpu.is_news(counts_as, logged) is expected
