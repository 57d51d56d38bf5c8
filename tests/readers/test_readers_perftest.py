"""perftest: bandwidth and latency of HCAs, with memory of the host and of GPUs, and runs that failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text
from readers_text import member, one, unread, values

from dgxcheck.readers.benchmarks import perftest

WRITE = """\
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 1\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 PCIe relax order: ON
 ibv_wr* API     : ON
 TX depth        : 128
 CQ Moderation   : 1
 Mtu             : 4096[B]
 Link type       : IB
 Max inline data : 0[B]
 rdma_cm QPs\t : OFF
 Data ex. method : Ethernet
---------------------------------------------------------------------------------------
 local address: LID 0x01 QPN 0x0028 PSN 0x3a6e5b RKey 0x1fff00 VAddr 0x007f2c8a6a0000
 remote address: LID 0x02 QPN 0x0028 PSN 0xc1f6c2 RKey 0x1fff00 VAddr 0x007f0c8a6a0000
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 2          5000             0.06               0.06                 3.700000
 65536      5000             97.00              96.80                0.184631
---------------------------------------------------------------------------------------
"""


def test_ib_write_bw() -> None:
    found = one(perftest.read_perftest, WRITE)
    assert values(found) == {"rdma-write mlx5_0": 12.1}
    assert member(found, "rdma-write mlx5_0", "sizes") == [[2, 0.0075], [65536, 12.1]]
    rest = [line for line in unread([found], WRITE) if line > 1]
    assert rest == []


def test_a_port_of_ethernet_is_of_another_network(tmp_path: Path) -> None:
    """It is not compared with those of InfiniBand, whose rates the text does not show either."""
    ports = [WRITE.replace("mlx5_0", f"mlx5_{port}").replace("96.80", "391.90") for port in range(4)]
    slow = WRITE.replace("mlx5_0", "mlx5_4")
    assert of_text("".join([*ports, slow]), tmp_path)[0] == ("warn slow inspect",)
    assert of_text("".join([*ports, slow.replace("Link type       : IB", "Link type : Ethernet")]), tmp_path)[0] == ()


@pytest.mark.parametrize("unit", ["MB/sec", "MiB/sec"])
def test_ib_write_bw_counts_2_to_20_bytes(unit: str) -> None:
    text = WRITE.replace("Gb/sec", unit).replace("96.80 ", "11500.00 ")
    assert values(one(perftest.read_perftest, text)) == {"rdma-write mlx5_0": 12.0586}


def test_both_directions_and_latency_are_other_kinds() -> None:
    both = WRITE.replace("RDMA_Write BW", "Send Bidirectional BW")
    assert values(one(perftest.read_perftest, both)) == {"rdma-send-both mlx5_0": 12.1}
    latency = WRITE.replace("RDMA_Write BW", "RDMA_Read Latency").replace(
        "BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]",
        "t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]",
    )
    rows = latency.replace("0.06               0.06                 3.700000", "1.01 9.00 1.04 1.05 0.10")
    assert values(one(perftest.read_perftest, rows)) == {"rdma-read-latency mlx5_0": 1.04}


def test_rates_without_a_device_are_nobodys() -> None:
    rows = " Device         : mlx5_0\n" + WRITE[WRITE.index(" #bytes") :]
    assert perftest.read_perftest(tuple(rows.splitlines())) == ()


CUDA = """\
initializing CUDA
Listing all CUDA devices in system:
CUDA device 0: PCIe address is 1B:00
CUDA device 1: PCIe address is CA:00

Picking device No. 1
[pid = 4242, dev = 1] device name = [NVIDIA L40S]
creating CUDA Ctx
making it the current CUDA Ctx
cuMemAlloc() of a 131072 bytes GPU buffer
allocated GPU buffer address at 00007f0000000000 pointer=0x7f0000000000
"""


def test_memory_of_a_gpu() -> None:
    found = one(perftest.read_perftest, CUDA + WRITE)
    assert unread([found], CUDA) == []
    assert member(found, "rdma-write mlx5_0", "memory") == 1
    assert member(found, "device 0", "bdf") == "0000:1b:00.0"
    assert member(found, "device 1", "name") == "NVIDIA L40S"
    assert values(one(perftest.read_perftest, CUDA)) == {"device 0": None, "device 1": None}
    beyond = CUDA.replace("device 1:", "device 64:").replace("No. 1", "No. 64").replace("dev = 1]", "dev = 64]")
    assert values(one(perftest.read_perftest, beyond)) == {"device 0": None}
    host = WRITE.replace("mlx5_0", "mlx5_1")
    both = one(perftest.read_perftest, CUDA + WRITE + "deallocating GPU buffer 00007f0000000000\n" + host)
    assert isinstance(fact := both.facts["measure rdma-write mlx5_1"], dict)
    assert "memory" not in fact


@pytest.mark.parametrize(
    ("call", "key"),
    [
        ("ib_write_bw -d mlx5_4 --report_gbits -F host", "rdma-write mlx5_4"),
        ("/opt/perftest/bin/ib_send_bw --ib-dev=mlx5_4 -b", "rdma-send-both mlx5_4"),
        ("ib_read_bw --ib-dev mlx5_4 -D 10 --bidirectional host", "rdma-read-both mlx5_4"),
        ("ib_write_bw -F host", ""),
        ("try ib_write_bw -d mlx5_4 between them", ""),
    ],
)
def test_a_command_names_what_a_cut_head_does_not(call: str, key: str) -> None:
    text = call + "\n" + WRITE[WRITE.index(" #bytes") :]
    found = perftest.read_perftest(tuple(text.splitlines()))
    assert [values(part) for part in found] == ([{key: 12.1}] if key else [])


def test_latency_of_a_run_by_time() -> None:
    text = """\
ib_write_lat -d mlx5_4 -D 10 host
 #bytes        #iterations       t_avg[usec]    tps average
 2             4761905           2.10           476190.44
"""
    found = one(perftest.read_perftest, text)
    assert values(found) == {"rdma-write-latency mlx5_4": 2.1}
    assert "mean" in str(member(found, "rdma-write-latency mlx5_4", "method"))


def test_perftest_that_failed() -> None:
    text = """\
 Completion with error at client
 Failed status 4: wr_id 0 syndrom 0x51
scnt=128, ccnt=0
 Failed to complete run_iter_bw function successfully
"""
    found = one(perftest.read_failures, text)
    assert unread([found], text) == []
    (fact,) = found.facts.values()
    assert isinstance(fact, dict)
    assert (fact["outcome"], fact["fault"]) == ("fail", "rdma-access")


@pytest.mark.parametrize(("text", "fault"), [
    ("Couldn't connect to 10.0.0.9:18515\nUnable to open file descriptor for socket connection Unable to init the"
     " socket connection\n", "no-connection"),
    ("Received 10 times ADDR_ERROR\n Unable to perform rdma_client function\n", "no-connection"),
    ("Failed to modify QP to RTS\n Unable to Connect the HCA's through the link\n", "transfer-unanswered"),
    (" Port number 1 state is Down\n Couldn't set the link layer\n", "port-down"),
    (" Port number 1 state is Init\n Couldn't set the link layer\n", "no-subnet-manager"),
])  # fmt: skip
def test_perftest_that_did_not_begin(text: str, fault: str) -> None:
    """https://github.com/linux-rdma/perftest/pull/228, issues 132"""
    found = one(perftest.read_failures, text)
    assert unread([found], text) == []
    assert [fact["fault"] for fact in found.facts.values() if isinstance(fact, dict)] == [fault]


@pytest.mark.parametrize(("old", "new"), [("65536 ", "65536.5 "), ("96.80 ", "999999999.00 ")])
def test_a_row_with_a_figure_beyond_any_port_is_none(old: str, new: str) -> None:
    text = WRITE.replace(old, new)
    found = one(perftest.read_perftest, text)
    assert values(found) == {"rdma-write mlx5_0": None}
    assert 21 in unread([found], text)


def test_small_messages_show_no_rate_of_the_port() -> None:
    """A run over all sizes (``-a``) that was cut after its first rows."""
    cut = "\n".join(line for line in WRITE.splitlines() if not line.startswith(" 65536"))
    found = one(perftest.read_perftest, cut)
    assert values(found) == {"rdma-write mlx5_0": None}
    assert member(found, "rdma-write mlx5_0", "skipped") == "no-reference"
