"""nvbandwidth: text and JSON, which way the data went, and what failed."""

from __future__ import annotations

import json

import pytest
from readers_text import member, one, unread, values

from dgxcheck.readers.benchmarks import nvbandwidth
from dgxcheck.readers.derived import completed
from dgxcheck.readers.model import Reports

TEXT = """\
nvbandwidth Version: v0.8
Built from Git version: v0.8

CUDA Runtime Version: 13000
CUDA Driver Version: 13000
Driver Version: 580.95.05

box17
Device 0: NVIDIA Example (00000000:06:00)
Device 1: NVIDIA Example (00000001:0a:00)

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     26.03     25.94

SUM host_to_device_memcpy_ce 51.97

Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    270.01
 1    270.10       N/A

SUM device_to_device_memcpy_read_ce 540.11

Running device_to_device_memcpy_write_sm.
memcpy SM GPU(row) <- GPU(column) bandwidth (GB/s)
           0         1
 0      0.00    260.01
 1    260.10      0.00

SUM device_to_device_memcpy_write_sm 520.11

Running device_to_device_bidirectional_memcpy_read_ce.
memcpy CE GPU(row) <-> GPU(column) Read1 bandwidth (GB/s)
           0         1
 0       N/A    200.01
 1    200.10       N/A

SUM device_to_device_bidirectional_memcpy_read_ce_read1 400.11

memcpy CE GPU(row) <-> GPU(column) Read2 bandwidth (GB/s)
           0         1
 0       N/A    201.01
 1    201.10       N/A

SUM device_to_device_bidirectional_memcpy_read_ce_read2 402.11

memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)
           0         1
 0       N/A    401.02
 1    401.20       N/A

SUM device_to_device_bidirectional_memcpy_read_ce_total 802.22

Running host_to_device_bidirectional_memcpy_ce.
memcpy CE CPU(row) <-> GPU(column) bandwidth (GB/s)
           0         1
 0     18.56     18.37

SUM host_to_device_bidirectional_memcpy_ce 36.93

Running all_to_host_memcpy_sm.
memcpy SM CPU(row) <- GPU(column) bandwidth (GB/s)
           0         1
 0     12.00     12.10

SUM all_to_host_memcpy_sm 24.10

Running host_device_latency_sm.
memory latency SM CPU(row) <-> GPU(column) (ns)
           0         1
 0    772.58    780.00

SUM host_device_latency_sm 1552.58

Running device_to_device_latency_sm.
Device to Device Latency SM GPU(row) <-> GPU(column) (ns)
           0         1
 0    300.00    900.01
 1    900.10    300.00

SUM device_to_device_latency_sm 2400.11

Running device_local_copy.
memcpy local GPU(column) bandwidth (GB/s)
           0         1
 0    700.00    701.00

SUM device_local_copy 1401.00

NOTE: The reported results may not reflect the full capabilities of the platform.
Performance can vary with software drivers, hardware clocks, and system topology.
"""
EXPECTED = {
    "device 0": None,
    "device 1": None,
    "host-to-device 0": 26.03,
    "host-to-device 1": 25.94,
    "p2p 1 0": 270.01,
    "p2p 0 1": 270.1,
    "p2p-both 0 1": 401.2,
    "host-to-device-contended 0": 18.56,
    "host-to-device-contended 1": 18.37,
    "device-to-host-shared-sm 0": 12.0,
    "device-to-host-shared-sm 1": 12.1,
    "latency-host-sm 0": 772.58,
    "latency-host-sm 1": 780.0,
    "latency-sm 0 1": 900.01,
    "latency-sm 1 0": 900.1,
    "device-copy 0": 1400.0,
    "device-copy 1": 1402.0,
}


def test_every_line_of_a_whole_output_is_understood() -> None:
    found = one(nvbandwidth.read_text, TEXT)
    assert found.tool == "nvbandwidth v0.8"
    assert values(found) == EXPECTED
    assert unread([found], TEXT) == []
    assert member(found, "device 1", "bdf") == "0001:0a:00.0"


def test_a_read_copies_against_its_arrow() -> None:
    """``GPU(row) -> GPU(column)`` of the read test: the row pulls from the column."""
    assert member(one(nvbandwidth.read_text, TEXT), "p2p 1 0", "method") == "copy engine, pulled by the receiver"


def test_copies_by_kernel_and_by_engine_stand_side_by_side() -> None:
    """They differ on healthy boxes, so they are not two runs of one thing."""
    found = one(nvbandwidth.read_text, TEXT)
    assert member(found, "p2p 0 1", "also") == [
        {"value": 260.01, "from": "line 30", "method": "SM kernel, pushed by the sender"}
    ]
    with pytest.raises(KeyError):
        member(found, "p2p 0 1", "runs")


def test_headings_alone_are_enough() -> None:
    lines = [line for line in TEXT.splitlines() if not line.startswith(("Running", "SUM"))]
    found = values(one(nvbandwidth.read_text, "\n".join(lines)))
    told = {key: value for key, value in EXPECTED.items() if "contended" not in key and "shared" not in key}
    assert found == told | {"device-to-host-sm 0": 12.0, "device-to-host-sm 1": 12.1}


def test_the_sum_below_names_a_test_that_lost_its_first_line() -> None:
    lines = [line for line in TEXT.splitlines() if not line.startswith("Running")]
    assert values(one(nvbandwidth.read_text, "\n".join(lines))) == EXPECTED


def test_peer_latency_before_0_8_was_the_hosts() -> None:
    found = one(nvbandwidth.read_text, TEXT.replace("v0.8", "v0.7"))
    assert not {key for key in values(found) if key.startswith("latency-sm")}
    assert unread([found], TEXT) == []


def test_each_version_is_an_output_of_its_own() -> None:
    parts = nvbandwidth.read_text(tuple((TEXT + TEXT.replace("v0.8", "v0.6")).splitlines()))
    assert [part.tool for part in parts] == ["nvbandwidth v0.8", "nvbandwidth v0.6"]
    assert unread(parts, TEXT + TEXT) == []


def test_wrong_data_fails_the_test_that_was_running() -> None:
    text = (
        "Running device_to_device_memcpy_read_ce.\n Invalid value when checking the pattern at 0x70a640000000\n"
        " Current offset : 11136 \nASSERT in expression h_errorFlag == 0 in void memcmpPatternHelper()\nexit 1\n"
    )
    found = one(nvbandwidth.read_text, text)
    assert values(found) == {"p2p all": "integrity", "p2p-integrity all": 1}
    assert member(found, "p2p-integrity all", "first") == 11136
    assert "offset 11136" in str(member(found, "p2p all", "detail"))
    assert unread([found], text) == [5]


def test_wrong_data_of_a_host_copy_says_nothing_of_pairs() -> None:
    text = "Running host_to_device_memcpy_ce.\n Invalid value when checking the pattern at 0x70a640000000\n"
    assert values(one(nvbandwidth.read_text, text)) == {"host-to-device all": "integrity"}


def test_an_error_of_the_driver_is_named() -> None:
    text = "Running host_to_device_memcpy_ce.\n"
    text += "[CUDA_ERROR_ECC_UNCORRECTABLE] uncorrectable in expression cuMemcpy() in f\n"
    assert values(one(nvbandwidth.read_text, text)) == {"host-to-device all": "CUDA_ERROR_ECC_UNCORRECTABLE"}


@pytest.mark.parametrize("text", [
    "Waiving a_test_of_tomorrow.", "Running a_test_of_tomorrow.\nERROR: no memory", "Device 64: GPU (00000000:06:00)",
    "nvbandwidth Version: v0.8\nDevice 64: NVIDIA Example", "Device 0: NVIDIA Example",
    "memcpy SM GPU(column) bandwidth (GB/s)\n 0\n 0 1.00",
    "nvbandwidth Version: v0.7\nRunning device_to_device_latency_sm.\nERROR: no memory",
    "nvbandwidth Version: v0.7\nRunning device_to_device_latency_sm.\nInvalid value when checking the pattern at 0x7",
])  # fmt: skip
def test_what_measures_nothing_known_is_no_fact(text: str) -> None:
    assert [fact for part in nvbandwidth.read_text(tuple(text.splitlines())) for fact in part.facts.values()
            if not isinstance(fact, dict) or "outcome" not in fact] == []  # fmt: skip


def test_devices_without_bus_ids() -> None:
    found = one(nvbandwidth.read_text, TEXT.replace(" (00000000:06:00)", ""))
    fact = found.facts["measure device 0"]
    assert isinstance(fact, dict)
    assert (fact["name"], "bdf" in fact) == ("NVIDIA Example", False)
    assert [key.split("/")[5] for key in completed(found.facts) if key.endswith("/class")] == ["0001:0a:00.0"]


@pytest.mark.parametrize(("rows", "text", "whole"), [
    ((" 0 N/A 8.00 8.00 8.00", " 1 8.00 N/A 8.00 8.00", " 2 8.00 8.00 N/A 4.00"), "", 5),
    ((" 0 N/A 8.00 8.00 8.00", " 1 8.00 N/A 8.00 8.00", " 2 8.00 8.00 N/A 3.99"),
     "1 of 9 pairs below half of the usual 8 GB/s; 2 to 3 3.99", 5),
    ((" 0 N/A 8.00 8.00 3.99", " 1 8.00 N/A 8.00 8.00", " 2 8.00 3.99 N/A 8.00"),
     "2 of 9 pairs below half of the usual 8 GB/s; 0 to 3 3.99", 5),
    ((" 0 N/A 8.00 8.00 3.99", " 1 8.00 N/A 8.00 3.99", " 2 8.00 8.00 N/A 8.00"),
     "2 of 9 pairs below half of the usual 8 GB/s; 0 to 3 3.99; all have process 3 (of an unnamed host)", 5),
    ((" 0 N/A N/A N/A N/A",), "", 3), ((" 0 N/A 8.00 8.00 8.00", " 1 8.00"), "", 3),
    ((" 0 N/A 8.00 8.00 8.00", " 2 8.00 8.00 N/A 1.00"), "", 3), ((), "", 2),
])  # fmt: skip
def test_pairs_between_hosts(rows: tuple[str, ...], text: str, whole: int) -> None:
    """Slow is what has less than half of the usual rate; a row of another process, or a part of one, ends the table."""
    reports = Reports("nvbandwidth")
    lines = ("heading", "0 1 2 3", *rows)
    read = nvbandwidth._between_hosts(reports, "test", lines, 0, {})
    assert read == {*range(1, whole)}
    assert [fact["text"] for fact in reports.facts().values() if isinstance(fact, dict)] == ([text] if text else [])


@pytest.mark.parametrize("columns", [(), ("",), ("0 2",), ("x",)])
def test_a_heading_between_hosts_without_columns(columns: tuple[str, ...]) -> None:
    assert nvbandwidth._between_hosts(Reports("nvbandwidth"), "test", ("heading", *columns), 0, {}) == set()


def test_a_waived_test_is_skipped() -> None:
    found = one(nvbandwidth.read_text, "Waiving device_to_device_memcpy_read_ce.\n")
    assert member(found, "p2p all", "skipped") == "not-supported"


@pytest.mark.parametrize("word", ["nan", "inf", "-26.03", "26.0", "9999999.00"])
def test_a_cell_that_is_no_bandwidth_is_no_fact_and_its_line_is_named(word: str) -> None:
    text = TEXT.replace("26.03", word)
    found = one(nvbandwidth.read_text, text)
    assert "host-to-device 0" not in values(found)
    assert values(found)["host-to-device 1"] == 25.94
    assert unread([found], text) == [15]


def _json() -> str:
    body = {
        "version": "v0.8",
        "CUDA Runtime Version": 12040,
        "Driver Version": "550.54.15",
        "GPU Device list": [
            "0: NVIDIA Example (00000000:06:00): (box17)",
            "1: NVIDIA Example (00000001:0a:00): (box17)",
        ],
        "testcases": [
            {
                "name": "host_to_device_memcpy_ce",
                "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
                "bandwidth_matrix": [["26.0312", "25.94"]],
                "status": "Passed",
                "sum": 51.97,
            },
            {
                "name": "device_to_device_memcpy_read_ce",
                "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
                "bandwidth_matrix": [["N/A", "270.01"], ["270.1", "N/A"]],
                "status": "Passed",
            },
            {
                "name": "device_to_device_bidirectional_memcpy_write_ce",
                "bandwidth_description": "memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)",
                "bandwidth_matrix": [
                    ["N/A", "1"],
                    ["1", "N/A"],
                    ["N/A", "2"],
                    ["2", "N/A"],
                    ["N/A", "401.5"],
                    ["400", "N/A"],
                ],
                "status": "Passed",
            },
            {"name": "device_to_device_latency_sm", "status": "Waived"},
            {"name": "all_to_one_read_sm", "status": "Error"},
        ],
    }
    return json.dumps({"nvbandwidth": body}, indent=3)


JSON = _json()


_WRONG = " Invalid value when checking the pattern at <0x7f3a5a000000>:  Current offset [ 64/536870912]"


@pytest.mark.parametrize(("error", "facts"), [
    ("CUDA_ERROR_ILLEGAL_ADDRESS", {"p2p all": "ERROR"}), (_WRONG, {"p2p all": "integrity", "p2p-integrity all": 1}),
    (_WRONG.partition("Current")[0], {"p2p all": "integrity", "p2p-integrity all": 1}),
])  # fmt: skip
def test_an_error_that_ends_the_run_is_of_the_last_test(error: str, facts: dict[str, object]) -> None:
    tests = [{"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_matrix": [["26", "26"]]},
             {"name": "device_to_device_memcpy_read_ce"}]  # fmt: skip
    body = {"CUDA Runtime Version": 12040, "testcases": tests, "error": error, "version": "v0.8"}
    found = values(one(nvbandwidth.read_json, json.dumps({"nvbandwidth": body}, indent=3)))
    assert found == {"host-to-device 0": 26, "host-to-device 1": 26} | facts


def test_json_says_the_same() -> None:
    found = one(nvbandwidth.read_json, "some log line\n" + JSON + "\nanother\n")
    assert found.tool == "nvbandwidth v0.8"
    assert values(found) == {
        "device 0": None,
        "device 1": None,
        "host-to-device 0": 26.0312,
        "host-to-device 1": 25.94,
        "p2p 1 0": 270.01,
        "p2p 0 1": 270.1,
        "p2p-both 0 1": 401.5,
        "latency-sm all": None,
        "p2p-all-to-one all": "ERROR",
    }
    assert unread([found], "some log line\n" + JSON + "\nanother\n") == [1, len(JSON.splitlines()) + 2]
    unnamed = one(nvbandwidth.read_json, JSON.replace('"v0.8"', '"main"'))
    assert (unnamed.tool, values(unnamed)) == ("nvbandwidth", values(found))


def test_tests_of_a_json_that_was_cut_are_read_one_by_one() -> None:
    text = JSON[: JSON.index('"device_to_device_latency_sm"')]
    parts = nvbandwidth.read_json(tuple(text.splitlines()))
    assert {key: value for part in parts for key, value in values(part).items()} == {
        "host-to-device 0": 26.0312,
        "host-to-device 1": 25.94,
        "p2p 1 0": 270.01,
        "p2p 0 1": 270.1,
        "p2p-both 0 1": 401.5,
    }


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[" * 100_000,
        "{" * 5000,
        '{"nvbandwidth": 3}',
        '{"nvbandwidth": {"error": "CUDA_ERROR_UNKNOWN", "testcases": []}}',
        '{"nvbandwidth": {"error": "CUDA_ERROR_UNKNOWN", "GPU Device list": [5], "testcases": 5}}',
        '{"nvbandwidth": {"testcases": [1, null, {"name": []}]}}',
        "{}",
    ],
)
def test_json_that_is_none_says_nothing(text: str) -> None:
    assert nvbandwidth.read_json((text,)) == ()


def test_a_test_between_hosts_that_broke_off() -> None:
    """https://github.com/NVIDIA/nvbandwidth/issues/39"""
    text = (
        "nvbandwidth Version: v0.8\nMPI version: Open MPI v4.1.7rc1\n"
        "Process 0 (worker-0): device 0: NVIDIA H200 (00000000:8f:00)\n"
        "Running multinode_device_to_device_memcpy_read_ce.\n"
        "[CUDA_ERROR_NOT_PERMITTED] operation not permitted in expression cuMemCreate(&handle, size, &prop, 0 ) on x\n"
    )
    found = one(nvbandwidth.read_text, text)
    assert unread([found], text) == []
    assert member(found, "device 0", "bdf") == "0000:8f:00.0"
    (told,) = [fact for key, fact in found.facts.items() if key.startswith("stated report host")]
    assert isinstance(told, dict)
    assert (told["outcome"], "CUDA_ERROR_NOT_PERMITTED" in str(told["text"])) == ("unknown", True)


@pytest.mark.parametrize("many", [64, 65])
def test_a_table_of_more_than_the_most_gpus_is_none(many: int) -> None:
    heading = "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)"
    test = {"name": "device_to_device_memcpy_read_ce", "bandwidth_description": heading}
    found = [
        part.facts.keys()
        for matrix in ([["1.0"] * many], [["0", "1.0"], *[["0"]] * (many - 2), ["1.0"]])
        for part in nvbandwidth.read_json((json.dumps(test | {"bandwidth_matrix": matrix}),))
    ]
    assert [len(keys) for keys in found] == ([many - 1, 2] if many == 64 else [])


def test_json_numbers_beyond_reason_are_no_facts() -> None:
    text = JSON.replace('"26.0312"', '"1e999"').replace('"25.94"', '"NaN"').replace('"270.01"', "270.01")
    found = values(one(nvbandwidth.read_json, text))
    assert "host-to-device 0" not in found
    assert "host-to-device 1" not in found
    assert "p2p 1 0" not in found
