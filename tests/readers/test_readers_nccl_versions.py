"""NCCL's log as its versions from 2.5 on write it: the same GPUs and the same ring; rows of nccl-tests at limits."""

from __future__ import annotations

import pytest
from readers_text import member, one, unread, values
from test_readers_nccl import OLD

from dgxcheck.readers.benchmarks import nccl_tables, nccl_tests, tartan
from dgxcheck.readers.benchmarks.nccl_tables import columns, headless
from dgxcheck.readers.nccl import log

Box = list[tuple[int, str, int]]
"""CUDA's number, the bus, NVML's number of each GPU."""
ERAS = {
    "2.5": ("comm 0x7 rank {rank} nranks {n} cudaDev {cuda} busId {bus}000 - Init COMPLETE", "{rank}[{bus}000]", ""),
    "2.17": ("comm 0x7 rank {rank} nranks {n} cudaDev {cuda} busId {bus}000 commId 0x1 - Init COMPLETE",
             "{rank}[{bus}000]", "/0"),
    "2.18": ("comm 0x7 rank {rank} nranks {n} cudaDev {cuda} nvmlDev {nvml} busId {bus}000 commId 0x1 - Init COMPLETE",
             "{rank}[{nvml}]", "/0"),
    "2.27": ("ncclCommInitRank comm 0x7 rank {rank} nranks {n} cudaDev {cuda} nvmlDev {nvml} busId {bus}000"
             " commId 0x1 - Init COMPLETE", "{rank}[{nvml}]", "/1"),
}  # fmt: skip
"""Init line, end of a channel, connection index: as those versions write them."""


def written(era: str, box: Box) -> str:
    init, end, index = ERAS[era]
    ranks = [
        {"rank": rank, "n": len(box), "cuda": cuda, "bus": bus, "nvml": nvml}
        for rank, (cuda, bus, nvml) in enumerate(box)
    ]
    lines = [init.format(**rank) for rank in ranks]
    for one_rank, other in zip(ranks, ranks[1:] + ranks[:1], strict=True):
        lines.append(f"Channel 00{index} : {end.format(**one_rank)} -> {end.format(**other)} via P2P/IPC")
    return "\n".join(f"node7:{40 + n}:{80 + n} [{n % len(box)}] NCCL INFO {line}" for n, line in enumerate(lines))


BOX: Box = [(0, "1b", 4), (1, "43", 5), (2, "c3", 6), (3, "e1", 7)]


@pytest.mark.parametrize("era", ERAS)
def test_every_version_names_the_same_gpus(era: str) -> None:
    text = written(era, BOX)
    found = one(log.read_log, text)
    assert unread([found], text) == []
    listed = {int(key.split()[-1]): fact for key, fact in found.facts.items() if key.startswith("nvml")}
    assert listed == ({nvml: f"0000:{bus}:00.0" for _, bus, nvml in BOX} if "nvmlDev" in ERAS[era][0] else {})
    shown = {key.split("/")[5] for key in found.facts if key.endswith("/class")}
    assert shown == {f"0000:{bus}:00.0" for _, bus, _ in BOX}
    pairs = {tuple(key.split()[2:]) for key in found.facts if key.startswith("measure access")}
    ring = [f"0000:{bus}:00.0" for _, bus, _ in BOX]
    assert pairs == set(zip(ring, ring[1:] + ring[:1], strict=True))


@pytest.mark.parametrize(("line", "is_one"), [
    ("size count type time algbw busbw", True), ("bytes N type time algbw busbw", True),
    ("size count time algbw busbw", False), ("size count type time busbw algbw", False),
    ("size count type time algbw", False), ("size count type algbw busbw", False),
    ("count size type time algbw busbw", False), ("size count type op root time algbw busbw", True),
])  # fmt: skip
def test_a_heading_of_nccl_tests(line: str, is_one: bool) -> None:
    assert (columns(line) is not None) == is_one


@pytest.mark.parametrize(("row", "is_one"), [
    ("8 2 float sum -1 1.0 0.01 0.01 0 1.0 0.01 0.01 0", True),
    ("8 2 word sum -1 1.0 0.01 0.01 0 1.0 0.01 0.01 0", False),  # no type
    ("9 2 float sum -1 1.0 0.01 0.01 0 1.0 0.01 0.01 0", False),  # no whole number of elements
    ("0 0 float sum -1 1.0 0.00 0.00 0 1.0 0.00 0.00 0", True),
    ("0 0 float sum -1 1.0 0.011 0.00 0 1.0 0.00 0.00 0", True),
    ("0 0 float sum -1 1.0 0.012 0.00 0 1.0 0.00 0.00 0", False),
    ("8 2 float sum -1 0.0004 0.01 0.01 0 1.0 0.01 0.01 0", False),
    ("0 0 float sum -1 1.0 0.011 0.011 0 1.0", True),  # cut
    ("0 0 float sum -1 0.0004 0.01 0.01 0 1.0", False),
    ("x 0 float sum -1 1.0 0.00 0.00 0 1.0 0.00 0.00 0", False),
    ("0 x float sum -1 1.0 0.00 0.00 0 1.0 0.00 0.00 0", False),
    ("0 0 float sum -1 x 0.00 0.00 0 1.0 0.00 0.00 0", False),
    ("0 0 float sum -1 1.0 x 0.00 0 1.0 0.00 0.00 0", False),
    ("0 0 float sum -1 1.0 0.00 x 0 1.0 0.00 0.00 0", False),
])  # fmt: skip
def test_a_row_of_nccl_tests(row: str, is_one: bool) -> None:
    """Of thirteen columns also without a heading."""
    assert (nccl_tables.row(row, nccl_tables.TODAY) is not None) == (is_one or " word " in row or row[0] == "9")
    assert (headless(row) is not None) == (is_one and len(row.split()) == 13)


@pytest.mark.parametrize(("row", "key"), [
    ("67108864 16777216 word sum 500.0 134.2 100.6 0 501.0 134.0 100.5 0", "unknown 4"),
    ("67108864 8388608 float sum 500.0 134.2 100.6 0 501.0 134.0 100.5 0", "unknown 4"),  # two ranks' worth
    ("67108864 0 float sum 500.0 134.2 100.6 0 501.0 134.0 100.5 0", "unknown 4"),
    ("0 0 float sum 500.0 0.00 0.00 0 501.0 0.00 0.00 0", ""),
])  # fmt: skip
def test_a_row_that_does_not_name_its_collective(row: str, key: str) -> None:
    found = [text for part in nccl_tests.read((*OLD.splitlines(), row)) for text in values(part)]
    assert found == ([f"collective {key}"] if key else [])


@pytest.mark.parametrize(("busbw", "op"), [(120.0, "all_reduce"), (60.0, "all_gather")])
def test_a_number_of_ranks_halfway_between_two_is_none(busbw: float, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size = nccl_tables.SizeRow(size=1 << 26, count=1 << 24, width=4, headed=3, redop="", root=-1, time_us=500.0,
                               algbw=100.0, busbw=busbw, in_place=None, wrong=None)  # fmt: skip
    for unequal, ranks in ((0.5, None), (0.51, 2)):
        monkeypatch.setattr(nccl_tables, "UNEQUAL", unequal)
        assert nccl_tables.ranks_of((size,), op) == ranks


@pytest.mark.parametrize(("cells", "bounds", "wrong"), [("N/A", 3, 3), ("1", 3, 3), ("2", 3, 4), ("0", 0, 0)])
def test_wrong_elements_of_the_sum_count_where_they_are_more(cells: str, bounds: int, wrong: int) -> None:
    table = OLD.replace("error", "#wrong")
    row = f"67108864 16777216 float sum 500.0 134.2 201.3 {cells} 501.0 134.0 201.0 {cells}"
    found = one(nccl_tests.read, f"{table}{row}\n# Out of bounds values : {bounds} FAILED\n")
    assert member(found, "collective all_reduce 4", "wrong") == wrong


CHANNEL = "node7:40:80 [0] NCCL INFO Channel 00 : 0[{}] -> 1[{}] via P2P/IPC"


@pytest.mark.parametrize(("a", "b", "pair"), [
    ("010", "1e0", "0000:00:01.0 0000:00:1e.0"), ("010", "010", ""), ("010", "99", ""), ("99", "010", ""),
    ("1b000", "43000", "0000:1b:00.0 0000:43:00.0"),
])  # fmt: skip
def test_a_channel_between_two_gpus_that_are_known(a: str, b: str, pair: str) -> None:
    refused = f"node7:40:80 [0] NCCL INFO Could not enable P2P between dev 0(={a}) and dev 1(={b})"
    for line in (CHANNEL.format(a, b), *([refused] if "99" not in (a, b) else [])):
        found = [key for part in log.read_log((line,)) for key in part.facts if key.startswith("measure access")]
        assert found == ([f"measure access {pair}"] if pair else [])


@pytest.mark.parametrize(("words", "many"), [("nvmlDev 5 ", 1), ("", 0), ("nvmlDev 5 busId 1b000 ", 1)])
def test_a_rank_without_a_bus_id_has_nvmls_number(words: str, many: int) -> None:
    line = f"node7:40:80 [0] NCCL INFO comm 0x7 rank 0 nranks 1 cudaDev 0 {words}- Init COMPLETE"
    found = [key for part in log.read_log((line,)) for key in part.facts]
    assert found.count("nvml nvmlDeviceGetHandleByIndex 5") == many


@pytest.mark.parametrize(("head", "row", "key"), [
    ("OP,Packet,Bandwidth", "all_gather_perf,1099511627776,7.87", "collective all_gather 8"),
    ("OP,Packet,Bandwidth", "all_gather_perf,1099511627777,7.87", ""),
    ("OP,Packet,Bandwidth", "all_gather_perf,8,99999999999.87", ""),
    ("OP,GPU,Bandwidth", "reduce_perf,2,7.87", "collective reduce 2"), ("OP,GPU,Bandwidth", "reduce_perf,1,7.87", ""),
    ("OP,GPU,Bandwidth", "reduce_perf,2,99999999999.87", ""), ("OP,GPU,Latency", "reduce_perf,2,99999999999.875", ""),
    ("OP,GPU,Latency", "reduce_perf,64,0.045", "collective-latency reduce 64"),
    ("OP,GPU,Latency", "reduce_perf,65,0.045", ""),
    ("OP,GPU,Latency", "reduce_perf,2,0.04", ""), ("OP,GPU,Bandwidth", "reduce_perf,2,7.875", ""),
])  # fmt: skip
def test_rows_of_tartan(head: str, row: str, key: str) -> None:
    found = [text for part in tartan.read_tartan((head, row)) for text in values(part)]
    assert found == ([key] if key else [])
