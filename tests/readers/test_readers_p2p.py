"""p2pBandwidthLatencyTest: both directions of both eras, and what is left of a cut table."""

from __future__ import annotations

import pytest
from readers_text import member, one, unread, values

from dgxcheck.readers.benchmarks import p2p_bandwidth_latency

TODAY = """\
[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, NVIDIA Example, pciBusID: 6, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA Example, pciBusID: a, pciDeviceID: 0, pciDomainID:1
Device=0 CAN Access Peer Device=1
Device=1 CAN Access Peer Device=0

***NOTE: In case a device doesn't have P2P access to other one, it falls back to normal memcopy procedure.
So you can see lesser Bandwidth (GB/s) and unstable Latency (us) in those cases.

P2P Connectivity Matrix
     D\\D     0     1
     0\t     1     1
     1\t     1     1
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 700.00  11.01
     1  11.10 700.11
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 701.00  48.01
     1  48.10 701.11
Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)
   D\\D     0      1
     0 702.00  47.10
     1  47.01 702.11
Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 703.00  20.01
     1  20.10 703.11
Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 704.00  96.01
     1  96.10 704.11
P2P=Disabled Latency Matrix (us)
   GPU     0      1
     0   1.70  17.01
     1  17.10   1.71

   CPU     0      1
     0   2.70   9.01
     1   9.10   2.71
P2P=Enabled Latency (P2P Writes) Matrix (us)
   GPU     0      1
     0   1.60   1.01
     1   1.10   1.61

   CPU     0      1
     0   2.60   3.01
     1   3.10   2.61

NOTE: The CUDA Samples are not meant for performance measurements. Results may vary when GPU Boost is enabled.
"""
OLD = """\
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 500.00   9.01
     1   9.10 500.11
Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 501.00  18.01
     1  18.10 501.11
P2P=Disabled Latency Matrix (us)
   D\\D     0      1
     0   3.00  19.01
     1  19.10   3.11
P2P=Enabled Latency Matrix (us)
   D\\D     0      1
     0   3.01   9.01
     1   9.10   3.12
"""


def test_every_line_of_a_whole_output_is_understood() -> None:
    found = one(p2p_bandwidth_latency.read_p2p_bandwidth_latency, TODAY)
    assert found.tool == "p2pBandwidthLatencyTest"
    assert unread([found], TODAY) == []
    assert values(found) == {
        "device 0": None,
        "device 1": None,
        "access 0 1": True,
        "access 1 0": True,
        "p2p-off 0 0": 700.0,
        "p2p-off 0 1": 11.01,
        "p2p-off 1 0": 11.1,
        "p2p-off 1 1": 700.11,
        "p2p 0 0": 702.0,
        "p2p 0 1": 48.01,
        "p2p 1 0": 48.1,
        "p2p 1 1": 702.11,
        "p2p-off-both 0 0": 703.0,
        "p2p-off-both 0 1": 20.1,
        "p2p-off-both 1 1": 703.11,
        "p2p-both 0 0": 704.0,
        "p2p-both 0 1": 96.1,
        "p2p-both 1 1": 704.11,
        "latency-off 0 0": 1.7,
        "latency-off 0 1": 17.01,
        "latency-off 1 0": 17.1,
        "latency-off 1 1": 1.71,
        "latency-cpu-off 0 0": 2.7,
        "latency-cpu-off 0 1": 9.01,
        "latency-cpu-off 1 0": 9.1,
        "latency-cpu-off 1 1": 2.71,
        "latency 0 0": 1.6,
        "latency 0 1": 1.01,
        "latency 1 0": 1.1,
        "latency 1 1": 1.61,
        "latency-cpu 0 0": 2.6,
        "latency-cpu 0 1": 3.01,
        "latency-cpu 1 0": 3.1,
        "latency-cpu 1 1": 2.61,
    }


def test_a_device_is_known_by_its_bus_id() -> None:
    found = one(p2p_bandwidth_latency.read_p2p_bandwidth_latency, TODAY)
    assert (member(found, "device 0", "bdf"), member(found, "device 1", "bdf")) == ("0000:06:00.0", "0001:0a:00.0")
    assert member(found, "device 1", "name") == "NVIDIA Example"


def test_reads_run_from_the_column_to_the_row() -> None:
    found = one(p2p_bandwidth_latency.read_p2p_bandwidth_latency, TODAY)
    assert member(found, "p2p 0 1", "from") == "line 20"
    assert member(found, "p2p 0 1", "also") == [
        {"value": 47.01, "from": "line 25", "method": "cudaMemcpyPeerAsync, pulled by the receiver"}
    ]


def test_samples_before_p2p_writes_copied_from_the_column_to_the_row() -> None:
    found = values(one(p2p_bandwidth_latency.read_p2p_bandwidth_latency, OLD))
    assert (found["p2p 1 0"], found["p2p 0 1"]) == (18.01, 18.1)
    assert (found["p2p-off 1 0"], found["latency-off 1 0"], found["latency 1 0"]) == (9.01, 19.01, 9.01)


def test_each_of_two_outputs_in_a_text_has_its_own_era() -> None:
    for text in (OLD + TODAY, TODAY + OLD):
        found = one(p2p_bandwidth_latency.read_p2p_bandwidth_latency, text)
        assert member(found, "p2p-off 0 1", "value") == 11.01
        also = member(found, "p2p-off 0 1", "also")
        assert isinstance(also, list)
        assert [run["value"] for run in also if isinstance(run, dict)] == [9.1]
        assert unread([found], text) == []


def test_the_same_table_twice_is_two_runs_and_the_best_is_the_value() -> None:
    again = OLD.replace("18.10", "12.50").replace("  9.10 ", "  8.00 ")
    found = one(p2p_bandwidth_latency.read_p2p_bandwidth_latency, OLD + again)
    assert member(found, "p2p 0 1", "value") == 18.1
    assert member(found, "latency 0 1", "value") == 8.0
    assert member(found, "p2p 0 1", "runs") == [{"value": 18.1, "from": "line 8"}, {"value": 12.5, "from": "line 24"}]


def test_without_access_the_enabled_table_went_through_the_host() -> None:
    text = TODAY.replace("Device=1 CAN ", "Device=1 CANNOT ").replace("     1\t     1     1", "     1\t     0     1")
    found = one(p2p_bandwidth_latency.read_p2p_bandwidth_latency, text)
    assert values(found)["access 1 0"] is False
    assert values(found)["access 0 1"] is True
    assert member(found, "p2p 0 1", "access") is False
    with pytest.raises(KeyError):
        member(found, "p2p-off 0 1", "access")


@pytest.mark.parametrize(("a", "b", "many"), [(0, 63, 1), (0, 64, 0), (64, 0, 0), (1, 1, 0)])
def test_a_line_of_access_is_of_two_gpus(a: int, b: int, many: int) -> None:
    line = f"Device={a} CAN Access Peer Device={b}"
    found = p2p_bandwidth_latency.read_p2p_bandwidth_latency((line,))
    assert sum(len(part.facts) for part in found) == many
    device = f"Device: {b}, Example, pciBusID: 6, pciDeviceID: 0, pciDomainID:0"
    assert len(p2p_bandwidth_latency.read_p2p_bandwidth_latency((device,))) == (b < 64)


def test_a_quoted_output_reads_the_same() -> None:
    quoted = "\n".join(f"> {line}" for line in TODAY.splitlines())
    assert values(one(p2p_bandwidth_latency.read_p2p_bandwidth_latency, quoted)) == values(
        one(p2p_bandwidth_latency.read_p2p_bandwidth_latency, TODAY)
    )


def test_a_number_that_lost_digits_at_the_end_of_the_file_is_not_taken() -> None:
    cut = OLD[: OLD.index("18.10") + 4]
    found = one(p2p_bandwidth_latency.read_p2p_bandwidth_latency, cut)
    assert "p2p 0 1" not in values(found)
    assert values(found)["p2p 0 0"] == 501.0
    assert unread([found], cut) == [8]


@pytest.mark.parametrize("word", ["nan", "inf", "-18.10", "N/A", "1e5", "999999.00", "18.1", "١٨.١٠"])
def test_a_cell_that_is_no_bandwidth_is_no_fact_and_its_line_is_named(word: str) -> None:
    text = OLD.replace("18.10", word)
    found = one(p2p_bandwidth_latency.read_p2p_bandwidth_latency, text)
    assert "p2p 0 1" not in values(found)
    assert values(found)["p2p 1 0"] == 18.01
    assert unread([found], text) == [8]


def test_rows_without_a_heading_say_nothing() -> None:
    rows = "     3 424.06 425.21\n     4 426.58 426.96\n"
    assert p2p_bandwidth_latency.read_p2p_bandwidth_latency(tuple(rows.splitlines())) == ()
    assert unread([one(p2p_bandwidth_latency.read_p2p_bandwidth_latency, rows + OLD)], rows + OLD) == [1, 2]


@pytest.mark.parametrize("row", ["     1  18.10 501.11 7.00", "     2  18.10 501.11", "     0  18.10 501.11"])
def test_more_cells_than_columns_or_another_gpu_are_no_row(row: str) -> None:
    text = OLD.replace("     1  18.10 501.11", row)
    found = one(p2p_bandwidth_latency.read_p2p_bandwidth_latency, text)
    assert "p2p 0 1" not in values(found)
    assert unread([found], text) == [8]


def test_indexes_beyond_any_box_are_garbled() -> None:
    assert (
        p2p_bandwidth_latency.read_p2p_bandwidth_latency(
            tuple(OLD.replace("D\\D     0      1", "D\\D     0    640").splitlines())
        )
        == ()
    )


def test_a_table_under_another_programs_heading_is_not_taken() -> None:
    other = "Uni-PCIe-Bandwidth\n   D\\D     0      1\n     0 500.00  77.77\n     1  77.77 500.00\n"
    found = one(p2p_bandwidth_latency.read_p2p_bandwidth_latency, OLD + other)
    assert 77.77 not in values(found).values()
    assert unread([found], OLD + other) == [17, 18, 19, 20]
