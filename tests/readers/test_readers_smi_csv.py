"""Tables of nvidia-smi as CSV: separators, decimal commas, several samples, retired pages, remapped rows, errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text
from readers_text import one, unread

from dgxcheck.facts.bdf import unplaced
from dgxcheck.facts.missing import Json
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi import query_csv


def answer(found: Imported, function: str, number: int, *args: str) -> Json:
    """NVML's answer about a GPU by its number."""
    return found.facts.get(" ".join((f"nvml nvmlDeviceGet{function}", unplaced(number), *args)))


@pytest.mark.parametrize(
    ("separator", "point", "unit"),
    [(", ", ".", ""), (",", ".", " W"), ("\t", ".", ""), ("; ", ",", ""), (";", ",", " W"), (", ", ",", "")],
)
def test_separators_and_decimal_commas(separator: str, point: str, unit: str) -> None:
    head = separator.join(("index", "name", "temperature.gpu", "power.draw [W]"))
    rows = [separator.join((str(n), "Tesla V100-SXM2-16GB", f"{34 + n}", f"5{n}{point}25{unit}")) for n in range(3)]
    text = "\n".join((head, *rows))
    found = one(query_csv.read_csv, text)
    assert unread([found], text) == []
    assert [answer(found, "PowerUsage", n) for n in range(3)] == [50_250, 51_250, 52_250]
    assert [answer(found, "Temperature", n, "0") for n in range(3)] == [34, 35, 36]


SAMPLES = """\
timestamp, index, temperature.gpu, clocks_throttle_reasons.active, ecc.errors.uncorrected.volatile.total
2026/03/02 10:00:00.123, 0, 34, 0x0000000000000001, 0
2026/03/02 10:00:00.125, 1, 36, 0x0000000000000001, 0
2026/03/02 10:00:05.123, 0, 88, 0x0000000000000040, 0
2026/03/02 10:00:05.125, 1, 36, 0x0000000000000001, 3
2026/03/02 10:00:10.123, 0, 70, 0x0000000000000001, 0
"""


def test_of_several_samples_the_hottest_then_the_last_counts() -> None:
    found = one(query_csv.read_csv, SAMPLES)
    assert unread([found], SAMPLES) == []
    assert [answer(found, "Temperature", n, "0") for n in (0, 1)] == [88, 36]
    assert answer(found, "CurrentClocksEventReasons", 0) == 0x40
    assert answer(found, "TotalEccErrors", 1, "1", "0") == 3


@pytest.mark.parametrize(
    ("cell", "gap"),
    [
        ("[GPU is lost]", "lost"), ("[GPU requires reset]", "lost"), ("[Insufficient Permissions]", "denied"),
        ("[Not Supported]", "unsupported"), ("[N/A]", "unsupported"), ("[Unknown Error]", "garbled"),
    ],
)  # fmt: skip
def test_errors_in_cells_are_gaps(cell: str, gap: str) -> None:
    text = f"index, name, temperature.gpu\n0, Tesla V100-SXM2-16GB, 34\n1, Tesla V100-SXM2-16GB, {cell}\n"
    value = answer(one(query_csv.read_csv, text), "Temperature", 1, "0")
    assert isinstance(value, dict)
    assert value["missing"] == gap


def test_a_sample_in_which_the_gpu_was_lost_counts() -> None:
    text = "index, temperature.gpu\n0, 80\n0, [GPU is lost]\n0, 30\n"
    value = answer(one(query_csv.read_csv, text), "Temperature", 0, "0")
    assert isinstance(value, dict)


def test_the_help_of_nvidia_smi_and_lines_far_below_a_table_are_no_rows() -> None:
    lines = ["POWER_SMOOTHING, POWER_PROFILES", "Flags can be combined", "Tesla V100 and others, which have ECC"]
    assert query_csv.read_csv(tuple(lines)) == ()
    for others, rows in ((7, 3), (8, 2)):
        table = ["index, name", "0, Tesla V100-SXM2-16GB", *["a sentence"] * others, "1, Tesla V100-SXM2-16GB"]
        assert len(one(query_csv.read_csv, "\n".join(table)).understood) == rows


@pytest.mark.parametrize(("column", "path"), [
    ("ecc.errors.corrected.volatile.total", "ecc errors/volatile/single bit/total"),
    ("ecc.errors.uncorrected.aggregate.total", "ecc errors/aggregate/double bit/total"),
    ("clocks_throttle_reasons.supported", "clocks event reasons/supported"),
    ("clocks_event_reasons.supported", "clocks event reasons/supported"),
    ("fabric.clique_id", "fabric/cliqueid"), ("fabric.cluster_uuid", "fabric/clusteruuid"),
])  # fmt: skip
def test_a_column_by_the_field_of_a_dump(column: str, path: str) -> None:
    assert query_csv.field(column) == path


@pytest.mark.parametrize(("columns", "limits"), [
    (("power.min_limit", "power.max_limit"), [100_000, 400_000]), (("power.min_limit",), None),
    (("power.max_limit",), None),
])  # fmt: skip
def test_one_limit_of_power_alone_is_no_range(columns: tuple[str, ...], limits: list[int] | None) -> None:
    cells = {"power.min_limit": "100.00", "power.max_limit": "400.00"}
    text = f"index, {', '.join(columns)}\n0, {', '.join(cells[name] for name in columns)}"
    found = one(query_csv.read_csv, text).facts
    assert [value for key, value in found.items() if "LimitConstraints" in key] == ([limits] if limits else [])


@pytest.mark.parametrize(("text", "unread_rows"), [
    ("index, name, temperature.gpu\nx, Tesla V100, 34\n64, Tesla V100, 34\n0, Tesla V100, 34", [2, 3]),
    ("name, temperature.gpu\n, \nTesla V100, 34", [2]), ("name, count\nTesla V100, 8\nFoo, 3", [3]),
    ("$ nvidia-smi --query-gpu=name,count --format=csv\nname, count\nFoo, 3", [1]),
])  # fmt: skip
def test_rows_that_are_of_no_gpu(text: str, unread_rows: list[int]) -> None:
    assert unread([one(query_csv.read_csv, text)], text) == unread_rows


def test_names_and_counts_of_something_else_are_no_table() -> None:
    assert query_csv.read_csv(("name, count", "Foo, 3")) == ()


ROWS = """\
$ nvidia-smi --query-remapped-rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure --format=csv,noheader
00000000:07:00.0, 1, 0
00000000:0F:00.0, 0, 1
"""


def test_remapped_rows() -> None:
    found = one(query_csv.read_csv, ROWS)
    assert unread([found], ROWS) == [1]  # the prompt belongs to the layout
    assert found.facts["nvml nvmlDeviceGetRemappedRows 0000:07:00.0"] == [None, None, 1, 0]
    assert found.facts["nvml nvmlDeviceGetRemappedRows 0000:0f:00.0"] == [None, None, 0, 1]


PAGES = """\
gpu_bus_id, gpu_uuid, retired_pages.address, retired_pages.cause
00000000:07:00.0, GPU-11111111-1111-1111-1111-111111111111, 0x0000000000012345, Double Bit ECC
00000000:0F:00.0, GPU-22222222-1111-1111-1111-111111111111, 0x0000000000000001, Single Bit ECC
00000000:07:00.0, GPU-11111111-1111-1111-1111-111111111111, 0x0000000000012346, Double Bit ECC
00000000:07:00.0, GPU-11111111-1111-1111-1111-111111111111, 0x0000000000012347, Single Bit ECC
"""


def test_retired_pages_by_gpu_and_cause() -> None:
    found = one(query_csv.read_pages, PAGES)
    assert unread([found], PAGES) == []
    assert query_csv.read_csv(tuple(PAGES.splitlines())) == ()
    assert {key.rpartition("Pages ")[2]: fact for key, fact in found.facts.items() if "RetiredPages" in key} == {
        "0000:07:00.0 1": [{"address": 0x12345}, {"address": 0x12346}],
        "0000:07:00.0 0": [{"address": 0x12347}],
        "0000:0f:00.0 0": [{"address": 1}],
    }


def test_retired_pages_by_uuid_below_the_command() -> None:
    lines = (
        "nvidia-smi --query-retired-pages=gpu_uuid,retired_pages.address,retired_pages.cause --format=csv,noheader",
        "GPU-11111111-1111-1111-1111-111111111111, 0x0000000000012345, Double Bit ECC",
    )
    headed = (lines[0].replace(",noheader", ""), "gpu_uuid, address, cause", lines[1])
    assert one(query_csv.read_pages, "\n".join(headed)).facts == one(query_csv.read_pages, "\n".join(lines)).facts
    assert unread([one(query_csv.read_pages, "\n".join(headed))], "\n".join(headed)) == []
    found = one(query_csv.read_pages, "\n".join(lines))
    assert unread([found], "\n".join(lines)) == []
    assert [fact for key, fact in found.facts.items() if "RetiredPages" in key] == [[{"address": 0x12345}]]


@pytest.mark.parametrize("rows", ["00000000:1b:00.0, [N/A], Single Bit ECC\n00000000:1b:00.0, [N/A], Double Bit ECC",
                                  ""])  # fmt: skip
def test_a_gpu_that_retires_no_pages_has_rows_without_addresses_or_none(rows: str) -> None:
    text = f"gpu_bus_id, retired_pages.address, retired_pages.cause\n{rows}"
    found = one(query_csv.read_pages, text)
    assert unread([found], text) == []
    assert not any("RetiredPages" in key for key in found.facts)


def test_rows_of_pages_that_say_nothing_stay_unread() -> None:
    head = "gpu_bus_id, retired_pages.address, retired_pages.cause\n"
    rows = ("00000000:1b:00.0, 0x12345, Double Bit ECC", "unknown, [N/A], Double Bit ECC",
            "00000000:1b:00.0, ?, Single Bit ECC", "00000000:1b:00.0, 0x12346, none")  # fmt: skip
    text = head + "\n".join(rows)
    assert unread([one(query_csv.read_pages, text)], text) == [3, 4, 5]


def test_a_list_of_addresses_of_something_else_is_none() -> None:
    assert query_csv.read_pages(("address, cause", "0x1, double")) == ()


def test_lspci_is_not_asked_for_the_number_of_a_gpu(tmp_path: Path) -> None:
    """As it takes that for a slot of any bus."""
    rows = "".join(f"{gpu}, NVIDIA H100 80GB HBM3, 5, {8 if gpu == 2 else 16}\n" for gpu in range(4))
    _, found = of_text(f"index, name, pcie.link.gen.current, pcie.link.width.current\n{rows}", tmp_path)
    (bad,) = (each for each in found["findings"] if each["status"] == "warn")
    assert "lspci -vv)" in bad["remedy"]
