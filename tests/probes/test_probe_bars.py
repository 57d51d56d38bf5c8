"""BARs: sizes, flags, what was not assigned, and which one is BAR1."""

from __future__ import annotations

from fake_source import FakeSource, function

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Bar
from probes.pci.functions import bar1, bars, resource

ABSENT_LINE = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
V100 = (
    "0x00000000f8000000 0x00000000f8ffffff 0x0000000000040200\n"
    "0x0000383800000000 0x0000383bffffffff 0x000000000014220c\n" + ABSENT_LINE +
    "0x0000383c00000000 0x0000383c01ffffff 0x000000000014220c\n" + ABSENT_LINE * 3
)  # fmt: skip


def test_bars_of_a_v100() -> None:
    got = resource(V100, "")
    assert not isinstance(got, Missing)
    assert [(bar.line, bar.size, bar.is_64bit, bar.is_prefetchable) for bar in got] == [
        (0, 16 << 20, False, False),
        (1, 16 << 30, True, True),
        (3, 32 << 20, True, True),
    ]
    assert all(bar.assigned and not bar.is_io for bar in got)
    assert bar1(got, "") == got[1]


def test_bar1_of_hopper_is_on_line_2() -> None:
    text = (
        "0x00000000a0000000 0x00000000a0ffffff 0x000000000014220c\n" + ABSENT_LINE +
        "0x0000002000000000 0x0000003fffffffff 0x000000000014220c\n" + ABSENT_LINE * 4
    )  # fmt: skip
    got = resource(text, "")
    assert not isinstance(got, Missing)
    found = bar1(got, "")
    assert isinstance(found, Bar)
    assert (found.line, found.size) == (2, 128 << 30)


def test_what_found_no_room_is_there_but_not_assigned() -> None:
    text = (
        "0x00000000f8000000 0x00000000f8ffffff 0x0000000000040200\n"
        "0x0000000000000000 0x00000003ffffffff 0x000000002014220c\n" + ABSENT_LINE +
        "0x0000000000000000 0x0000000000000000 0x000000000014220c\n" + ABSENT_LINE * 3
    )  # fmt: skip
    got = resource(text, "/resource")
    assert not isinstance(got, Missing)
    assert [bar.assigned for bar in got] == [True, False, False]
    found = bar1(got, "")
    assert isinstance(found, Bar)
    assert (found.assigned, found.size) == (False, 16 << 30)
    assert isinstance(got[2].size, Missing)


def test_io_ports_and_the_rom() -> None:
    text = "0x000000000000e000 0x000000000000e07f 0x0000000000040101\n" + ABSENT_LINE * 5
    text += "0x00000000f9000000 0x00000000f907ffff 0x0000000000046200\n"
    got = resource(text, "")
    assert not isinstance(got, Missing)
    assert [(bar.line, bar.is_io, bar.size) for bar in got] == [(0, True, 128), (6, False, 512 << 10)]
    found = bar1(got, "/resource")
    assert isinstance(found, Missing)
    assert found.gap is Gap.ABSENT


def test_a_garbled_line_is_named() -> None:
    got = resource(ABSENT_LINE * 3 + "0x10 0x0f 0x200\n" + ABSENT_LINE * 3, "/resource")
    assert got == Missing(Gap.GARBLED, "/resource", "line 3: 0x10 0x0f 0x200")
    assert isinstance(resource("", ""), Missing)
    assert isinstance(resource(ABSENT_LINE, ""), Missing)


def test_gpus_nvswitches_and_hcas_are_asked() -> None:
    denied = Missing(Gap.DENIED, "r")
    files = function("0000:06:00.0", class_="0x030200", vendor="0x10de", resource=V100)
    files |= function("0000:07:00.0", class_="0x030000", vendor="0x1a03", resource=V100)
    files |= function("0000:08:00.0", class_="0x020700", vendor="0x15b3", resource=denied)
    files |= function("0000:09:00.0", class_="0x020000", vendor="0x15b3", resource=V100)
    files |= function("0000:0a:00.0", class_="0x020000", vendor="0x8086", resource=V100)
    box = FakeSource(files, {"/sys/class/infiniband/mlx5_0/device": "../../../0000:09:00.0"})
    got = bars(box)
    assert not isinstance(got, Missing)
    assert [each.bdf for each in got] == ["0000:06:00.0", "0000:08:00.0", "0000:09:00.0"]
    assert (got[1].bars, got[1].bar1) == (denied, denied)
    assert isinstance(got[2].bar1, Bar)
