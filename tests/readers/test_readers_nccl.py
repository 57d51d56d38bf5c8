"""nccl-tests of several releases, NCCL 1's programs and Tartan's files."""

from __future__ import annotations

import pytest
from readers_text import member, one, unread, values

from dgxcheck.readers.benchmarks import nccl_tests, tartan
from dgxcheck.readers.benchmarks.nccl_tables import SizeRow, are_many, ranks_of

TODAY = """\
# nccl-tests version 2.17.9 nccl-headers=22903 nccl-library=22903
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 1 iters: 20 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   2574 on box17 device  0 [0000:06:00] NVIDIA Example
#  Rank  1 Group  0 Pid   2574 on box17 device  1 [0001:0a:00] NVIDIA Example
NCCL version 2.29.3+cuda13.1
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
box17:3442:3442 [0] NCCL INFO Launch mode Parallel
           8             2     float     sum      -1    10.00    0.00    0.00       0    10.10    0.00    0.00       0
  1073741824     268435456     float     sum      -1  10000.5  107.37  107.37       0  10001.0  107.36  107.36       0
   536870912     134217728     float     sum      -1   4000.0  134.22  134.22       0   4001.0  134.18  134.18       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 500.5
#
# Collective test concluded: all_reduce_perf
"""
OLD = """\
# Using devices
#   Rank  0 Pid 112424 on localhost device  0 [0x00] Example
#   Rank  1 Pid 112424 on localhost device  1 [0x00] Example
#   Rank  2 Pid 112424 on localhost device  2 [0x00] Example
#   Rank  3 Pid 112424 on localhost device  3 [0x00] Example
#
#                                                       out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
FIRST = """\
[admin@box single]$ ./reduce_test 10485760  2 0 4
# Using devices
#   Rank  0 uses device  0 [0x06] Example
#   Rank  1 uses device  4 [0x85] Example

#                                                       out-of-place                    in-place
#      bytes             N    type      op  root    time  algbw  busbw      res     time  algbw  busbw      res
    10485760      10485760    char     sum    0    3.500   3.00   3.00    0e+00    3.600   2.90   2.90    0e+00
    10485760      10485760    char     sum    1    2.600   4.00   4.00    0e+00    2.700   3.90   3.90    0e+00
"""


def test_the_largest_size_counts_and_the_average_does_not() -> None:
    found = one(nccl_tests.read, TODAY)
    assert found.tool == "nccl-tests 2.17.9"
    assert values(found) == {"collective all_reduce 2": 107.37, "device 0": None, "device 1": None}
    assert member(found, "collective all_reduce 2", "sizes") == [
        [8, 10.0, 0.0, 0.0],
        [536870912, 4000.0, 134.22, 134.22],
        [1073741824, 10000.5, 107.37, 107.37],
    ]
    assert member(found, "collective all_reduce 2", "in_place") == 107.36
    assert member(found, "collective all_reduce 2", "wrong") == 0
    assert member(found, "collective all_reduce 2", "hosts") == 1
    assert member(found, "device 1", "bdf") == "0001:0a:00.0"
    assert unread([found], TODAY) == []


def test_wrong_elements_of_both_groups_are_counted() -> None:
    text = TODAY.replace("107.37       0", "107.37       3").replace("134.18       0", "134.18       4")
    assert member(one(nccl_tests.read, text), "collective all_reduce 2", "wrong") == 7


def test_several_hosts_are_told() -> None:
    text = TODAY.replace("on box17 device  1", "on box18 device  0")
    found = one(nccl_tests.read, text)
    assert member(found, "collective all_reduce 2", "hosts") == 2
    assert "device 0" not in values(found)


@pytest.mark.parametrize(
    ("head", "row", "op"),
    [
        ("redop  ", "67108864 16777216 float sum 500.0 134.2 201.3 0e+00 501.0 134.0 201.0 0e+00", "all_reduce"),
        ("redop  ", "67108864 4194304 float sum 500.0 134.2 100.6 0e+00 501.0 134.0 100.5 0e+00", "reduce_scatter"),
        ("redop  ", "67108864 16777216 int8 sum 500.0 134.2 100.6 0e+00 501.0 134.0 100.5 0e+00", "reduce_scatter"),
        ("redop  ", "67108864 8388608 half sum 500.0 134.2 100.6 0e+00 501.0 134.0 100.5 0e+00", "reduce_scatter"),
        ("redop  ", "67108864 2097152 int64 sum 500.0 134.2 100.6 0e+00 501.0 134.0 100.5 0e+00", "reduce_scatter"),
        ("root   ", "67108864 16777216 float 0 500.0 134.2 134.2 0e+00 501.0 134.0 134.0 0e+00", "broadcast"),
        ("redop root", "67108864 16777216 float sum 0 500.0 134.2 134.2 N/A 501.0 134.0 134.0 N/A", "reduce"),
        ("       ", "67108864 4194304 float 500.0 134.2 100.6 0e+00 501.0 134.0 100.5 0e+00", "all_gather"),
        ("redop  ", "67108864 4194304 float 500.0 134.2 100.6 0e+00 501.0 134.0 100.5 N/A", "alltoall"),
        ("redop root", "67108864 16777216 float none 0 500.0 134.2 100.6 0 501.0 134.0 100.5 0", "unknown"),
        ("root   ", "67108864 4194304 float 500.0 134.2 100.6 0e+00 501.0 134.0 100.5 0e+00", "unknown"),
        ("redop root", "67108864 4194304 float none -1 500.0 134.2 100.6 0 501.0 134.0 100.5 0", "unknown"),
    ],
)
def test_old_tables_are_named_by_their_columns(head: str, row: str, op: str) -> None:
    text = OLD.replace("redop  ", head) + row + "\n"
    found = one(nccl_tests.read, text)
    assert list(values(found)) == [f"collective {op} 4"]
    assert unread([found], text) == []


def test_without_ranks_the_factor_tells_how_many() -> None:
    table = "\n".join(line for line in OLD.splitlines() if "Rank" not in line)
    row = "\n67108864 16777216 float sum 500.0 134.20 {} 0e+00 501.0 134.0 201.0 0e+00\n"
    assert list(values(one(nccl_tests.read, table + row.format("201.30")))) == ["collective all_reduce 4"]
    assert list(values(one(nccl_tests.read, table + row.format("251.62")))) == ["collective all_reduce 16"]
    assert nccl_tests.read(tuple((table + row.format("150.00")).splitlines())) == ()  # of 2.26 ranks
    assert list(values(one(nccl_tests.read, table + row.format("265.75")))) == ["collective all_reduce many"]


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter", "alltoall"])
def test_a_ratio_is_of_one_number_of_ranks_or_of_many(op: str) -> None:
    """Of n ranks it is (n - 1) / n, and twice that of an all-reduce."""
    fastest = 2 if op == "all_reduce" else 1

    def told(ratio: float) -> tuple[int | None, bool]:
        row = SizeRow(size=1 << 26, count=1 << 24, width=4, headed=3, redop="sum", root=-1, time_us=500.0, algbw=100.0,
                      busbw=ratio * 100 * fastest, in_place=None, wrong=None)  # fmt: skip
        return ranks_of((row,), op), are_many((row,), op)

    assert [told((ranks - 1) / ranks)[0] for ranks in range(2, 33)] == [*range(2, 33)]
    assert [told(ratio) for ratio in (0.0, 0.45, 0.55, 0.95)] == [(None, False)] * 3 + [(20, False)]
    assert [told(ratio)[1] for ratio in (0.951, 1.0, 1.001)] == [True, True, False]
    assert [told(ratio)[0] for ratio in (1.0, 1.001)] == [None, None]


ONE_ROW = "  8  2  float  sum  4.43  0.00  0.00  0e+00  0.31  0.03  0.00  0e+00"
SEVERAL_HOSTS = """\
# Using devices
#   Rank  0 Pid 3590428 on host3 device  0 [0x07] NVIDIA A100-SXM4-40GB
#   Rank  1 Pid 450047 on host4 device  0 [0x07] NVIDIA A100-SXM4-40GB
"""


@pytest.mark.parametrize("text", [SEVERAL_HOSTS, "\n".join([*OLD.splitlines()[:2], *OLD.splitlines()[5:], ONE_ROW])])
def test_a_list_over_several_hosts_or_of_one_rank_is_known(text: str) -> None:
    """https://github.com/NVIDIA/nccl-tests/issues/102 hung before its first row."""
    found = one(nccl_tests.read, text)
    assert values(found) == {}
    assert unread([found], text) == []


def test_a_sentence_about_a_test_names_it_and_is_not_read() -> None:
    row = "67108864 16777216 float sum 500.0 134.2 201.3 0e+00 501.0 134.0 201.0 0e+00"
    text = f"we ran all_reduce_perf\n{OLD}{row}\n"
    found = one(nccl_tests.read, text)
    assert unread([found], text) == [1]


def test_a_part_of_a_list_of_ranks_tells_neither_hosts_nor_places() -> None:
    last = [line for line in OLD.splitlines() if "Rank" in line][-1]
    part = "\n".join(line for line in OLD.splitlines() if "Rank" not in line or line == last)
    found = one(
        nccl_tests.read, f"{part}\n67108864 16777216 float sum 500.0 134.20 201.30 0e+00 501.0 134.0 201.0 0e+00\n"
    )
    assert not [key for key in found.facts if "device" in key]
    (fact,) = found.facts.values()
    assert isinstance(fact, dict)
    assert "hosts" not in fact


def test_small_messages_show_no_rate() -> None:
    row = "\n16384 4096 float sum 50.0 0.33 0.49 0e+00 50.0 0.33 0.49 0e+00\n"
    found = one(nccl_tests.read, OLD + row)
    (fact,) = (fact for key, fact in found.facts.items() if key.startswith("measure collective"))
    assert isinstance(fact, dict)
    assert fact["skipped"] == "no-reference"
    assert "value" not in fact


def test_programs_of_nccl_1_print_ms_and_several_rows_of_a_size() -> None:
    found = one(nccl_tests.read, FIRST)
    assert found.tool == "NCCL 1 tests"
    assert values(found) == {"collective reduce 2": 4.0, "device 0": None, "device 4": None}
    assert member(found, "collective reduce 2", "sizes") == [[10485760, 3500.0, 3.0, 3.0], [10485760, 2600.0, 4.0, 4.0]]
    assert member(found, "collective reduce 2", "devices") == [0, 4]
    assert unread([found], FIRST) == []


def test_runs_of_other_devices_are_told_apart() -> None:
    other = FIRST.replace("device  4 [0x85]", "device  1 [0x07]").replace("2.600   4.00   4.00", "1.500   7.00   7.00")
    found = one(nccl_tests.read, other + FIRST)
    assert member(found, "collective reduce 2", "devices") == [0, 1]
    also = member(found, "collective reduce 2", "also")
    assert isinstance(also, list)
    assert [(run["value"], run["devices"]) for run in also if isinstance(run, dict)] == [(4.0, [0, 4])]


@pytest.mark.parametrize("word", ["nan", "inf", "-107.37", "N/A", "9999999.99"])
def test_a_row_that_is_none_is_named(word: str) -> None:
    text = TODAY.replace("107.37  107.37", f"107.37  {word}")
    found = one(nccl_tests.read, text)
    assert values(found)["collective all_reduce 2"] == 134.22
    assert unread([found], text) == [15]


def test_a_row_that_lost_columns_is_none() -> None:
    """Each of them would be read one place too far to the right, and the time as a rate; the last four are spare."""
    row = "67108864 16777216 float sum 0 500.0 134.2 134.2 N/A 501.0 134.0 134.0 N/A"
    whole = OLD.replace("redop  ", "redop root") + row + "\n"
    for lost in range(1, 10):
        text = whole + " ".join(row.split()[:-lost]) + "\n"
        found = one(nccl_tests.read, text)
        assert values(found) == {"collective reduce 4": 134.2}
        assert unread([found], text) == ([] if lost <= 4 else [11])


def test_a_row_that_was_cut_in_its_second_group_counts() -> None:
    rows = [
        "  8388608  2097152  float  sum  -1   992.6  8.45  16.20  0   986.0  8.51  16.31  0",
        " 67108864 16777216  float  sum  -1 24410.0  2.75   5.27  0 244",
    ]
    assert values(one(nccl_tests.read, "\n".join(rows))) == {"collective all_reduce 24": 5.27}
    words = rows[1].split()
    for lost in range(len(words) - 1):
        text = "\n".join([rows[0], " ".join(words[:lost] + words[lost + 1 :])])
        found = one(nccl_tests.read, text)
        last = member(found, "collective all_reduce 24", "sizes")
        assert isinstance(last, list)
        assert last[-1] in ([8388608, 992.6, 8.45, 16.2], [67108864, 24410.0, 2.75, 5.27])


SWEEP = "".join(
    f"===== {size} =====\n"
    + "".join(
        f"{name}\n   D\\D     0      1 \n     0 500.00 {first:6.2f} \n     1 {first + 1:6.2f} 500.00 \n"
        for name, first in (("Uni-NVLink-Bandwidth", rate), ("Bi-PCIe-Bandwidth", rate), ("NVLink-Latency", rate))
    )
    for size, rate in ((1, 0.0), (16, 9.5), (1048576, 18.0))
)


def test_a_sweep_gives_bandwidth_at_the_largest_and_latency_at_16_bytes() -> None:
    found = one(tartan.read_tartan, SWEEP)
    assert {key: value for key, value in values(found).items() if key[-3:] != "0 0" and key[-3:] != "1 1"} == {
        "p2p 1 0": 18.0,
        "p2p 0 1": 19.0,
        "p2p-off-both 0 1": 19.0,
        "latency 1 0": 9.5,
        "latency 0 1": 10.5,
    }
    assert member(found, "p2p 1 0", "sizes") == [[1, 0.0], [16, 9.5], [1048576, 18.0]]
    assert unread([found], SWEEP) == []


CSV = """\
OP,GPU,Bandwidth
broadcast_perf,1,1999891.64
all_reduce_perf,8,62.24
OP,GPU,Latency
all_reduce_perf,8,0.045
OP,Packet,Bandwidth
all_gather_perf,32,0.00
all_gather_perf,1048576,7.87
"""


def test_tartans_csv() -> None:
    found = one(tartan.read_tartan, CSV)
    assert values(found) == {
        "collective all_reduce 8": 62.24,
        "collective-latency all_reduce 8": 45.0,
        "collective all_gather 8": 7.87,
    }
    assert unread([found], CSV) == []


def test_a_csv_without_its_first_line_is_nobodys() -> None:
    assert tartan.read_tartan(("all_reduce_perf,8,62.24",)) == ()


def test_rows_of_today_without_a_heading() -> None:
    rows = [
        "  8388608  2097152  float  sum  -1   992.6  8.45  16.20  0   986.0  8.51  16.31  0",
        " 67108864 16777216  float  sum  -1 24410.0  2.75   5.27  0 24425.0  2.75   5.27  0",
    ]
    assert values(one(nccl_tests.read, "\n".join(rows))) == {"collective all_reduce 24": 5.27}
    assert nccl_tests.read(("1 2 3 4 5 6 7 8 9 10 11 12 13",)) == ()


def test_rows_that_lines_of_nccl_cut() -> None:
    """With NCCL_DEBUG=INFO; a half that is missing makes no row."""
    told = "box:42:42 [1] NCCL INFO AllReduce: opCount 0 count 4"
    table = "\n".join(OLD.splitlines())
    halves = [
        "67108864 16777216 float sum -1" + told,
        told,
        "500.0 134.20 201.30 0" + told,
        told,
        "501.0 134.0 201.0 0",
    ]
    today = table.replace("redop  ", "redop root").replace("error", "#wrong")
    found = one(nccl_tests.read, "\n".join([today, *halves]))
    assert member(found, "collective all_reduce 4", "sizes") == [[67108864, 500.0, 134.2, 201.3]]
    assert member(found, "collective all_reduce 4", "in_place") == 201.0
    too_fast = ["67108864 16777216 float sum -1" + told, "500.0 1340.20 201.30 0" + told, halves[4]]
    for rest in (too_fast, *(halves[:missing] + halves[missing + 1 :] for missing in (0, 2, 4))):
        assert not [key for part in nccl_tests.read(tuple("\n".join([today, *rest]).splitlines()))
                    for key in part.facts if "collective" in key]  # fmt: skip
