"""nvidia-smi's tables, lists and CSV of every driver: no cell becomes what it does not say, no number another GPU's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readers_text import one, unread
from seam import run
from smi_texts import LINKS, QUERY, STATION

from dgxcheck.facts.bdf import is_unplaced, unplaced
from dgxcheck.facts.missing import Json
from dgxcheck.readers.nvidia_smi import nvlink, query, query_csv, query_documents, table, topo

NEW = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 590.1.2                Driver Version: 590.1.2        CUDA Version: 13.1     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   2  Example 80GB                   On  |   00000000:83:00.0 Off |                   On |
| N/A   28C    P0            N/A /  700W  |      55MiB / 143771MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
|   5  Example 80GB                   On  |   00000000: Off        |                    3 |
| N/A   29C    P0             71W /  700W |       0MiB / 143771MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
+------------------+----------------------------------+-----------+-----------------------+
|  2    2   0   0  |              22MiB / 71424MiB    | 16      7 |  3   0    3    0    3 |
|                  |               0MiB / 59237MiB    |           |                       |
+------------------+----------------------------------+-----------+-----------------------+
"""
A = "0000:83:00.0"
CSV = """\
index, name, pci.bus_id, memory.total [MiB], ecc.errors.uncorrected.volatile.total, temperature.gpu, power.draw [W]
4, Example 80GB, 00000000:83:00.0, 81920 MiB, 0, 41, 55.50 W
5, Example 80GB, 00000000:84:00.0, 81920 MiB, [N/A], [Unknown Error], [GPU is lost]
"""


@pytest.mark.parametrize(("spare", "many"), [(0, 2), (-1, 0)])
def test_a_row_that_is_too_long_is_none(spare: int, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_csv, "LONGEST", max(map(len, CSV.splitlines())) + spare)
    found = [key for part in query_csv.read_csv(tuple(CSV.splitlines())) for key in part.facts]
    assert sum(key.startswith("nvml nvmlDeviceGetHandleByIndex") for key in found) == many


def fact(text: str, key: str) -> Json:
    return one(table.read_table, text).facts.get(f"nvml nvmlDeviceGet{key}")


def test_a_table_of_today_is_read_by_its_bars() -> None:
    assert unread([one(table.read_table, NEW)], NEW) == []
    assert fact(NEW, "HandleByIndex 2") == A
    assert fact(NEW, "HandleByIndex 5") == unplaced(5), "no bus id, and no other than the printed number"
    assert fact(NEW, f"TotalEccErrors {A} 1 0") == 7, "On says that MIG is on; its devices count"
    assert fact(NEW.replace("16      7", "16      0"), f"TotalEccErrors {A} 1 0") is None, "others may not be listed"
    for mode, many in (("Enabled ", 1), ("Enabled*", 0), ("        ", 0)):
        shown = one(table.read_table, NEW.replace("              Enabled ", f"              {mode}")).facts
        assert (f"nvml nvmlDeviceGetMigMode {A}" in shown) == many
    (instance,) = (line for line in NEW.splitlines() if "16      7" in line)
    for count in (6, 8):
        more = NEW.replace(instance, f"{instance}\n{instance.replace('16      7', f'16      {count}')}")
        assert fact(more, f"TotalEccErrors {A} 1 0") == max(7, count)
    assert fact(NEW, f"TotalEccErrors {unplaced(5)} 1 0") == 3
    assert fact(NEW, f"MigMode {A}") == [1, 1]
    assert fact(NEW, f"EnforcedPowerLimit {A}") == 700000


def test_a_gpu_that_tells_not_even_its_name_does_not_respond() -> None:
    dead = NEW.replace(
        "Example 80GB                   On  |   00000000:83", "ERR!                           On  |   00000000:83"
    )
    dead = dead.replace("28C    P0            N/A /", "ERR!   ERR!         ERR! /")
    answer = fact(dead, f"Temperature {A} 0")
    assert isinstance(answer, dict)
    assert answer["missing"] == "lost"
    assert fact(dead, f"Temperature {unplaced(5)} 0") == 29


def test_a_gpu_of_which_only_the_name_is_known_does_not_respond() -> None:
    row = "| N/A   28C    P0            N/A /  700W  |      55MiB / 143771MiB |     N/A      Default |"
    begin = "| ERR!  ERR!  ERR!          ERR! /  ERR! |"
    silent = NEW.replace(row, f"{begin}      ERR! / ERR!       |     ERR!     ERR!    |")
    partly = NEW.replace(row, f"{begin}      55MiB / 143771MiB |     N/A      Default |")
    for text, gap in ((silent, "lost"), (partly, "garbled")):
        answer = fact(text, f"Temperature {A} 0")
        assert isinstance(answer, dict)
        assert answer["missing"] == gap


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 120))
def test_a_table_cut_on_the_right_says_nothing_else(width: int) -> None:
    whole = one(table.read_table, NEW).facts
    for part in table.read_table(tuple(line[:width] for line in NEW.split("\n"))):
        assert all(whole[key] == each for key, each in part.facts.items())


def test_csv_with_any_columns() -> None:
    found = one(query_csv.read_csv, CSV).facts
    assert found["nvml nvmlDeviceGetHandleByIndex 4"] == A
    assert found[f"nvml nvmlDeviceGetPowerUsage {A}"] == 55500
    assert found[f"nvml nvmlDeviceGetTotalEccErrors {A} 1 0"] == 0
    lost = found["nvml nvmlDeviceGetPowerUsage 0000:84:00.0"]
    assert isinstance(lost, dict)
    assert lost["missing"] == "lost"


def test_csv_without_a_head_is_read_by_its_command() -> None:
    rows = "\n".join(CSV.splitlines()[1:]).replace(" MiB", "").replace(" W", "")
    assert query_csv.read_csv(tuple(rows.split("\n"))) == ()
    columns = re.sub(r" \[\w+\]", "", CSV.splitlines()[0]).replace(" ", "")
    text = f"$ nvidia-smi --query-gpu={columns} --format=csv,noheader,nounits\n{rows}\n"
    assert one(query_csv.read_csv, text).facts == one(query_csv.read_csv, CSV).facts


def test_a_list_has_numbers_and_no_bus_ids() -> None:
    found = one(nvlink.read_list, LINKS).facts
    assert found["nvml nvmlDeviceGetHandleByIndex 2"] == unplaced(2)
    assert found[f"nvml nvmlDeviceGetName {unplaced(2)}"] == "Example"
    assert nvlink.read_list(("GPU 3: it fell off the bus yesterday",)) == ()


def test_the_command_says_which_gpu_it_was() -> None:
    text = "$ nvidia-smi -i 3 -q\n" + QUERY[: QUERY.index("GPU 00000000:07")]
    assert one(query.read_text, text).facts["nvml nvmlDeviceGetHandleByIndex 3"] == "0000:06:00.0"


def test_other_programs_write_gpu_elements_too() -> None:
    assert query_documents.read_xml(('<system version="1">', '<gpu dev="0" sm="90" gdr="1">', "</gpu>")) == ()


@pytest.mark.parametrize("width", range(14, 96, 3))
def test_a_wrapped_matrix_says_nothing_else(width: int) -> None:
    text = STATION.replace("\x1b[4m", "").replace("\x1b[0m", "").expandtabs()
    (whole,) = (found.facts for found in topo.read_labels(tuple(text.split("\n"))))
    halves = [line[at : at + width] for line in text.split("\n") for at in range(0, max(len(line), 1), width)]
    for part in topo.read_labels(tuple(halves)):
        assert all(isinstance(each, dict) or whole.get(key) == each for key, each in part.facts.items())


def cells(text: str) -> dict[tuple[str, str], str]:
    """What a naive reader of tabs sees: the label of each pair."""
    head, *rows = [line.split("\t") for line in text.splitlines() if "\t" in line]
    names = [name for name in head if re.fullmatch(r"(?:GPU|NIC)\d+", name)]
    return {(row[0], name): cell.strip() for row in rows for name, cell in zip(names, row[1:], strict=False)}


def test_every_cell_of_a_matrix() -> None:
    found = one(topo.read_labels, STATION).facts
    naive = cells(STATION.replace("\x1b[4m", "").replace("\x1b[0m", ""))
    assert len(naive) == 25
    assert {key: label for key, label in found.items() if " label " in key} == {
        f"stated label {a} {b}": label for (a, b), label in naive.items()
    }


@pytest.fixture
def judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Findings of an imported text that are neither pass nor skip, and the text of the recording."""

    def judge(text: str) -> tuple[dict[str, str], str]:
        (tmp_path / "t.txt").write_text(text, encoding="utf-8")
        run(capsys, "import", str(tmp_path / "t.txt"), "-o", str(tmp_path / "box.json"))
        document = json.loads(run(capsys, "health", "--format", "json", "--from", str(tmp_path / "box.json")).out)
        bad = {each["id"]: f"{each['status']} {each['subject']['name']}" for each in document["findings"]
               if each["status"] not in ("pass", "skip")}  # fmt: skip
        assert not any(is_unplaced(each["subject"]["bdf"]) for each in document["findings"])
        return bad, run(capsys, "list", "--from", str(tmp_path / "box.json")).out

    return judge


def links(up: str, *, last: str) -> str:
    head = "GPU {0}: NVIDIA A100-SXM4-80GB (UUID: GPU-{0}1234567-89ab-cdef-0123-456789abcdef)\n"
    rows = ["".join(f"\t Link {n}: {last if gpu == 3 else up}\n" for n in range(12)) for gpu in range(4)]
    return "".join(head.format(gpu) + rows[gpu] for gpu in range(4))


ROWS = (
    "    Remapped Rows\n        Correctable Error : 0\n        Uncorrectable Error : 4\n        Pending : Yes\n"
    "        Remapping Failure Occurred : No\n"
)


DESKTOP = """
==============NVSMI LOG==============
GPU 00000000:01:00.0
    Product Name                          : GeForce RTX 2080
    Persistence Mode                      : Disabled
"""


@pytest.mark.parametrize(("text", "due"), [
    (links("25 GB/s", last="25 GB/s"), {}),
    (links("25 GB/s", last="12.5 GB/s"), {"nvlink.rate": "fail GPU3"}),
    (links("25 GB/s", last="<inactive>"), {"nvlink.state": "fail GPU3"}),
    (links("25.781 GB/s", last="").replace("A100-SXM4-80GB", "V100-SXM2-32GB").partition("GPU 1:")[0]
     .replace("Link 3: 25.781 GB/s", "Link 3: <inactive>"), {"nvlink.state": "unknown GPU0"}),
    ("GPU 6: NVIDIA A100-SXM4-80GB (UUID: GPU-01234567-89ab-cdef-0123-456789abcdef)\n"
     "NVML: Unable to retrieve NVLink information as all links are inactive\n", {"nvlink.state": "warn GPU6"}),
    ("GPU 0: NVIDIA GeForce RTX 2080 SUPER (UUID: GPU-01234567-89ab-cdef-0123-456789abcdef)\n"
     "NVML: Unable to retrieve NVLink information as all links are inactive\n", {}),
    ("NVML: Unable to retrieve NVLink information as all links are inActive\n",
     {"tools.reports": "unknown unnamed GPU"}),
    ("Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error\n",
     {"tools.reports": "fail GPU@0000:0b:00.0"}),
    ("Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error\n"
     "[  812.117000] NVRM: Xid (PCI:0000:0b:00): 79, pid=1, GPU has fallen off the bus.\n",
     {"tools.reports": "fail GPU@0000:0b:00.0", "kernel.off-bus": "fail GPU@0000:0b:00.0"}),
    (DESKTOP, {}), (DESKTOP.replace("GeForce RTX 2080", "NVIDIA GB10"), {}),
    ("index, name, memory.total [MiB], driver_version\n0, NVIDIA A100-SXM4-80GB, 81920 MiB, 580.105.08\n", {}),
    (DESKTOP.replace("GeForce", "Tesla").replace("RTX 2080", "V100-PCIE"), {"driver.persistence": "warn GPU0"}),
    (f"{DESKTOP}{DESKTOP.replace('01:', '02:')}", {}),
    (f"{DESKTOP}{DESKTOP.replace('01:', '02:')}".replace("GeForce RTX 2080", "NVIDIA RTX A6000"),
     {"driver.persistence": "warn GPU1"}),
    (f"{DESKTOP}    Display Mode : Enabled\n{DESKTOP.replace('01:', '02:')}"
     .replace("GeForce RTX 2080", "RTX A6000"), {}),
    (f"{DESKTOP}{DESKTOP.replace('01:', '02:').replace('GeForce RTX 2080', 'Tesla V100-PCIE-16GB')}",
     {"driver.persistence": "warn GPU1"}),
    (ROWS, {"ecc.row-remap": "fail unnamed GPU"}),
    (ROWS[: ROWS.index("        Remapping")], {"ecc.row-remap": "fail unnamed GPU"}),
    (f"{ROWS.replace('Yes', 'No')}--\n{ROWS}", {"ecc.row-remap": "fail unnamed GPU 2"}),
    ("    Clocks Event Reasons\n        Idle : Not Active\n        SW Power Cap : Not Active\n"
     "        HW Slowdown : Active\n            HW Thermal Slowdown : Active\n",
     {"clock.throttle": "warn unnamed GPU"}),
    ("Fabric\n    State : Completed\n    Status : Insufficient Resources\n    CliqueId : 0\n"
     "    ClusterUUID : 00000000-0000-0000-0000-000000000000\n", {"driver.fabric": "fail host"}),
])  # fmt: skip
def test_what_is_stated_is_judged(text: str, due: dict[str, str], judged: Any) -> None:
    bad, listed = judged(text)
    assert bad == due
    assert ":00:00.0" not in listed.split("\n\n")[0]  # as of one that is not placed


def test_a_gpu_that_registers_has_no_cluster_yet(judged: Any) -> None:
    def gpu(bus: str, *values: str) -> str:
        rows = zip(("State", "Status", "CliqueId", "ClusterUUID"), values, strict=True)
        head = f"GPU 0000:{bus}:00.0\n    Product Name : NVIDIA H100 80GB HBM3\n    Fabric\n"
        return head + "".join(f"        {name} : {value}\n" for name, value in rows)

    done = "Completed", "Success", "0", "00000000-0000-0000-0000-000000000000"
    bad, _ = judged(gpu("1B", "In Progress", "N/A", "N/A", "N/A") + gpu("43", *done) + gpu("52", *done))
    assert bad == {"driver.fabric": "fail GPU@0000:1b:00.0"}


@pytest.mark.parametrize("text", [
    "platform.host_id\nbbx.time_run\n\n####\nWed Aug 12 21:53:45 2026\n+-----+\n",
    "index\ndisplay_mode\nname\nserial\nuuid\n",
    "temperature.gpu\nthe hottest of all\n",
    "uuid\nAlice\nBob\n",
    "power.draw [W]\nnone of them\n",
    "POWER_SMOOTHING, POWER_PROFILES\nThe NVIDIA driver, as a word\n",
])  # fmt: skip
def test_a_list_of_words_is_no_table_of_one_column(text: str) -> None:
    assert query_csv.read_csv(tuple(text.split("\n"))) == ()


@pytest.mark.parametrize(("text", "gpus"), [
    ("$ nvidia-smi --query-gpu=temperature.gpu --format=csv,noheader\n31\n33\n", 2),
    ("name\nNVIDIA H200\nNVIDIA H200\n\nThat is all.\n", 2),
    ("power.draw [W]\n68.21 W\n70.00 W\nN/A\n", 3),
])  # fmt: skip
def test_a_table_of_one_column(text: str, gpus: int) -> None:
    (found,) = query_csv.read_csv(tuple(text.split("\n")))
    assert sum("HandleByIndex" in key for key in found.facts) == gpus
