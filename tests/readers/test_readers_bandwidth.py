"""bandwidthTest and simpleP2P: units of two eras, sizes, several runs, and a verdict on the data."""

from __future__ import annotations

import pytest
from readers_text import member, one, unread, values

from dgxcheck.readers.benchmarks import cuda_samples

OLD = """\
[CUDA Bandwidth Test] - Starting...
Running on...

 Device 3: Tesla Example
 Quick Mode

 Host to Device Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)\tBandwidth(MB/s)
   33554432\t\t\t10000.0

 Device to Host Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)\tBandwidth(MB/s)
   33554432\t\t\t11000.5

 Device to Device Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)\tBandwidth(MB/s)
   33554432\t\t\t200000.0

Result = PASS

NOTE: The CUDA Samples are not meant for performance measurements. Results may vary when GPU Boost is enabled.
"""
P2P = """\
[./simpleP2P] - Starting...
Checking for multiple GPUs...
CUDA-capable device count: 2

Checking GPU(s) for support of peer to peer memory access...
> Peer access from Tesla Example (GPU0) -> Tesla Example (GPU1) : Yes
> Peer access from Tesla Example (GPU1) -> Tesla Example (GPU0) : Yes
Enabling peer access between GPU0 and GPU1...
Allocating buffers (64MB on GPU0, GPU1 and CPU Host)...
Creating event handles...
cudaMemcpyPeer / cudaMemcpy between GPU0 and GPU1: 10.00GB/s
Preparing host buffer and memcpy to GPU0...
Run kernel on GPU1, taking source data from GPU0 and writing to GPU1...
Run kernel on GPU0, taking source data from GPU1 and writing to GPU0...
Copy data back to host from GPU0 and verify results...
Disabling peer access...
Shutting down...
Test passed
"""


def test_mb_of_old_samples_are_1024000_bytes() -> None:
    found = one(cuda_samples.read_bandwidth, OLD)
    assert values(found) == {"host-to-device 3": 10.24, "device-to-host 3": 11.2645, "device-copy 3": 204.8}
    assert member(found, "host-to-device 3", "name") == "Tesla Example"
    assert unread([found], OLD) == []


def test_gb_of_new_samples_are_gb() -> None:
    found = one(cuda_samples.read_bandwidth, OLD.replace("MB/s", "GB/s").replace("10000.0", "25.8"))
    assert values(found)["host-to-device 3"] == 25.8


def test_two_runs_of_one_gpu_are_kept_apart_in_one_fact() -> None:
    found = one(cuda_samples.read_bandwidth, OLD + OLD.replace("10000.0", "3000.0"))
    assert member(found, "host-to-device 3", "runs") == [
        {"value": 10.24, "from": "line 10"},
        {"value": 3.072, "from": "line 34"},
    ]


def test_another_gpu_under_the_same_index_tells_its_name() -> None:
    other_gpu = OLD.replace("Tesla Example", "Tesla Other").replace("10000.0", "3000.0")
    found = one(cuda_samples.read_bandwidth, OLD + other_gpu)
    other = {"value": 3.072, "from": "line 34", "name": "Tesla Other"}
    assert member(found, "host-to-device 3", "also") == [other]


@pytest.mark.parametrize("old", ["PINNED Memory Transfers", "1 Device(s)"])
def test_pageable_copies_are_another_kind(old: str) -> None:
    new = {"PINNED Memory Transfers": "PAGEABLE Memory Transfers", "1 Device(s)": "1 Device(s), Paged memory"}[old]
    text = OLD.replace(old, new).replace("PINNED Memory Transfers", "")
    found = one(cuda_samples.read_bandwidth, text)
    assert set(values(found)) == {"pageable-host-to-device 3", "pageable-device-to-host 3", "device-copy 3"}


def test_of_a_range_the_largest_size_counts_and_all_are_kept() -> None:
    text = OLD.replace("   33554432\t\t\t10000.0", "   1000000\t9000.0\n  33554432\t9500.0\n  2000000\t9900.0")
    found = one(cuda_samples.read_bandwidth, text)
    assert member(found, "host-to-device 3", "value") == 9.728
    assert member(found, "host-to-device 3", "sizes") == [[1000000, 9.216], [2000000, 10.1376], [33554432, 9.728]]


_TWO = " Device 0: A\n Device 1: B"


@pytest.mark.parametrize(("listed", "count"), [(_TWO, 2), (_TWO, 1), ("", 2)])
def test_the_sum_of_all_devices_is_of_no_single_one(listed: str, count: int) -> None:
    text = OLD.replace(" Device 3: Tesla Example", listed).replace("1 Device(s)", f"{count} Device(s)")
    assert set(values(one(cuda_samples.read_bandwidth, text))) == {
        "host-to-device all",
        "device-to-host all",
        "device-copy all",
    }


def test_csv_mode() -> None:
    text = (
        "bandwidthTest-H2D-Pinned, Bandwidth = 12.1 GB/s, Time = 0.00264 s, Size = 32000000 bytes, NumDevsUsed = 1\n"
        "bandwidthTest-D2H-Paged, Bandwidth = 5.0 GB/s, Time = 0.00640 s, Size = 32000000 bytes, NumDevsUsed = 1\n"
        "bandwidthTest-D2D, Bandwidth = 500.5 GB/s, Time = 0.00006 s, Size = 32000000 bytes, NumDevsUsed = 1\n"
    )
    found = one(cuda_samples.read_bandwidth, text)
    assert values(found) == {"host-to-device 0": 12.1, "pageable-device-to-host 0": 5.0, "device-copy 0": 500.5}
    assert unread([found], text) == []


@pytest.mark.parametrize("word", ["nan", "inf", "-1.0", "10000", "99999999999.0", "N/A", "1e4"])
def test_a_rate_that_is_none_is_no_fact_and_its_line_is_named(word: str) -> None:
    text = OLD.replace("10000.0", word)
    found = one(cuda_samples.read_bandwidth, text)
    assert set(values(found)) == {"device-to-host 3", "device-copy 3"}
    assert unread([found], text) == [10]


def test_simple_p2p_measures_in_gib_and_proves_both_directions() -> None:
    found = one(cuda_samples.read_simple_p2p, P2P)
    assert values(found) == {
        "access 0 1": True,
        "access 1 0": True,
        "p2p-alternating 0 1": 10.7374,
        "p2p-integrity 0 1": 0,
        "p2p-integrity 1 0": 0,
    }
    assert member(found, "p2p-integrity 0 1", "checked") == 64 << 20
    assert unread([found], P2P) == []


@pytest.mark.parametrize("pair", ["GPU0 and GPU64", "GPU64 and GPU0", "GPU1 and GPU1"])
def test_a_copy_is_between_two_gpus(pair: str) -> None:
    text = P2P.replace("cudaMemcpy between GPU0 and GPU1", f"cudaMemcpy between {pair}")
    assert not [key for key in values(one(cuda_samples.read_simple_p2p, text)) if "alternating" in key]


def test_a_size_beyond_any_memory_is_none() -> None:
    text = OLD.replace("33554432\t\t\t10000.0", "9999999999999\t\t\t10000.0").replace("Device 3", "Device 64")
    found = one(cuda_samples.read_bandwidth, text)
    assert values(found).keys() == {"device-to-host 0", "device-copy 0"}


def test_simple_p2p_with_wrong_data() -> None:
    errors = "".join(f"Verification error @ element {n}: val = nan, ref = {n}.000000\n" for n in range(1, 13))
    text = P2P.replace("Disabling", errors + "Disabling").replace("Test passed", "Test failed!")
    found = one(cuda_samples.read_simple_p2p, text)
    assert values(found)["p2p-integrity 1 0"] == 12
    assert member(found, "p2p-integrity 0 1", "first") == 4
    assert unread([found], text) == []


@pytest.mark.parametrize(
    "text",
    [
        P2P.replace("Test passed", "Test failed!"),
        P2P.replace("Disabling", "Verification error @ element 1: val = 0.0, ref = 4.0\nDisabling"),
        P2P.replace("Test passed", ""),
        "Test passed\n" + P2P.replace("Test passed", ""),
    ],
)
def test_a_verdict_that_is_missing_or_contradicts_the_errors_is_none(text: str) -> None:
    assert not {key for key in values(one(cuda_samples.read_simple_p2p, text)) if key.startswith("p2p-integrity")}
