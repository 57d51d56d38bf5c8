"""Dumps that tell of more GPUs than they show: the number of a GPU is known only where a text proves it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from smi_texts import TABLE

from dgxcheck.assessment import assess, examine
from dgxcheck.assessment.gpu_list import gpu_list
from dgxcheck.assessment.machine import open_source
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.source.protocol import Source

UUID = "GPU-{0}1111111-2222-3333-4444-55555555555{0}"
HEAD = "==============NVSMI LOG==============\n\nDriver Version : 570.86.15\n\nAttached GPUs : {0}\n"
COMMAND = "$ nvidia-smi -q -i {0}\n"
LOST = "Unable to determine the device handle for GPU 0000:{0:02X}:00.0: Unknown Error\n"
REMAP = """    Remapped Rows
        Correctable Error : 0
        Uncorrectable Error : 1
        Pending : Yes
        Remapping Failure Occurred : No
"""


def block(bus: int) -> str:
    return (
        f"GPU 00000000:{bus:02X}:00.0\n    Product Name : NVIDIA H200\n    GPU UUID : {UUID.format(bus)}\n"
        f"    Persistence Mode : Enabled\n{REMAP if bus == 3 else ''}"
    )


def as_xml(count: int, *buses: int) -> str:
    gpus = "".join(
        f'<gpu id="00000000:{bus:02X}:00.0">\n<product_name>NVIDIA H200</product_name>\n</gpu>\n' for bus in buses
    )
    return f"<nvidia_smi_log>\n<attached_gpus>{count}</attached_gpus>\n{gpus}</nvidia_smi_log>\n"


def names_list(*buses: int) -> str:
    return "".join(f"GPU {at}: NVIDIA H200 (UUID: {UUID.format(bus)})\n" for at, bus in enumerate(buses))


@pytest.fixture
def imported(tmp_path: Path) -> Callable[[str], Source]:
    def read(text: str) -> Source:
        file = tmp_path / "pasted.txt"
        file.write_text(text, encoding="utf-8")
        return open_source(str(file))

    return read


@pytest.mark.parametrize(("text", "numbers", "count"), [
    pytest.param(HEAD.format(8) + block(3), {"0000:03:00.0": None}, 8, id="one of eight"),
    pytest.param(HEAD.format(8) + block(3) + "(...)\n" + block(5), {"0000:03:00.0": None, "0000:05:00.0": None}, 8,
                 id="the rest left out"),
    pytest.param(HEAD.format(2) + block(3) + block(5), {"0000:03:00.0": 0, "0000:05:00.0": 1}, 2, id="all"),
    pytest.param(HEAD.format(1) + block(3), {"0000:03:00.0": 0}, 1, id="the only one"),
    pytest.param(COMMAND.format(4) + HEAD.format(8) + block(3), {"0000:03:00.0": 4}, 8, id="asked by number"),
    pytest.param(COMMAND.format("03:00.0") + HEAD.format(8) + block(3), {"0000:03:00.0": None}, 8, id="by bus id"),
    pytest.param(HEAD.format(8) + block(3) + "\n" + names_list(1, 2, 3, 4, 5, 6, 7, 8), {"0000:03:00.0": 2}, 8,
                 id="a list with UUIDs"),
    pytest.param(HEAD.format(2) + block(3) + HEAD.format(2) + block(5), {"0000:03:00.0": 0, "0000:05:00.0": 1}, 2,
                 id="every GPU in a dump of its own"),
    pytest.param(block(3) + block(5), {"0000:03:00.0": None, "0000:05:00.0": None}, 2, id="without its head"),
    pytest.param(as_xml(4, 3), {"0000:03:00.0": None}, 4, id="XML, one of four"),
    pytest.param(as_xml(1, 3), {"0000:03:00.0": 0}, 1, id="XML, all"),
])  # fmt: skip
def test_a_number_is_that_which_a_text_proves(
    text: str, numbers: dict[str, int | None], count: int, imported: Callable[[str], Source]
) -> None:
    source = imported(text)
    rows = {str(row.bdf): row.index for row in gpu_list(source).rows if isinstance(row.bdf, str)}
    assert {bdf: index if isinstance(index, int) else None for bdf, index in rows.items()} == numbers
    assert all(index.gap is Gap.UNRECORDED for index in rows.values() if isinstance(index, Missing))
    assert source.nvml("nvmlDeviceGetCount") == count


LSPCI = "".join(
    f"0{bus}:00.0 VGA compatible controller [0300]: NVIDIA Corporation GA102 [RTX 3080] [10de:2206] (rev {rev})\n"
    for bus, rev in ((1, "a1"), (2, "ff"), (3, "a1"))
)
AGAIN = "$ lspci -nnk -s 02:00.0\n" + LSPCI.splitlines()[1].replace("ff", "a1") + "\n\tKernel driver in use: nvidia\n"


def second_of_three() -> str:
    """It did not open."""
    table = "".join(f"{at}, 00000000:0{at + 1}:00.0, NVIDIA GeForce RTX 3080\n" for at in (0, 2))
    return f"{LOST.format(2).replace('GPU 0', 'GPU1: 0')}index, pci.bus_id, name\n{table}"


@pytest.mark.parametrize("text", [
    pytest.param(LSPCI, id="lspci"),
    pytest.param(LSPCI + AGAIN, id="lspci, later from its cache"),
    pytest.param(LSPCI.replace("ff", "a1"), id="lspci from its cache"),
])  # fmt: skip
def test_a_gpu_that_did_not_open_is_that_of_lspci(text: str, imported: Callable[[str], Source]) -> None:
    found = assess(imported(f"{text}\n{second_of_three()}"))
    assert [(cause.component.kind, cause.component.bdf) for cause in found.causes] == [("gpu", "0000:02:00.0")]
    assert found.verdict.value == "fail"


@pytest.mark.parametrize("text", [
    pytest.param(LOST.format(4), id="alone"), pytest.param(LSPCI + second_of_three(), id="beside others"),
])  # fmt: skip
def test_what_kept_a_gpu_from_opening_is_told_in_few_words(text: str, imported: Callable[[str], Source]) -> None:
    why = "Unknown Error, and " + "more of it " * 9
    found = assess(imported(text.replace("Unknown Error", why)))
    parts = {part for each in found.findings for part in each.judgement.message.split(": ")}
    assert {part for part in parts if part.startswith(why[:19])} == {why[:80]}


def test_the_gpu_that_did_not_open_counts_among_those_in_bus_order(imported: Callable[[str], Source]) -> None:
    source = imported(HEAD.format(3) + block(3) + block(5) + LOST.format(4))
    rows = {str(row.bdf): row.index for row in gpu_list(source).rows}
    assert (rows["0000:03:00.0"], rows["0000:05:00.0"]) == (0, 2)


def test_actions_name_the_bus_id_of_a_gpu_without_a_number(imported: Callable[[str], Source]) -> None:
    (cause,) = assess(imported(HEAD.format(8) + block(3))).causes
    assert cause.component.name == "GPU@0000:03:00.0"
    commands = [" ".join(words) for action in cause.actions for words in action.commands]
    assert "nvidia-smi -r -i 0000:03:00.0" in commands
    assert not any("GPU0" in (*action.disturbs, *commands) for action in cause.actions)


def test_a_matrix_of_more_gpus_than_a_benchmark_saw_is_the_box(imported: Callable[[str], Source]) -> None:
    matrix = "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tSYS\tSYS\nGPU1\tSYS\t X \tNODE\nGPU2\tSYS\tNODE\t X \n"
    saw = "# Using devices\n#   Rank  0 Pid 110 on test-a device  0 [0x3b] Tesla T4\n"
    rows = (
        "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
    )
    rows += (
        "     1048576        262144   float     sum    20.36   51.00   51.00  0e+00    20.07   51.00   51.00  0e+00\n"
    )
    topology = examine(imported(f"{matrix}\n# nThread 1 nGpus 1 minBytes 8\n#\n{saw}{rows}")).topology
    assert [gpu.name for gpu in topology.gpus] == ["GPU0", "GPU1", "GPU2"]


def test_a_table_that_ends_at_its_head_tells_the_driver(imported: Callable[[str], Source]) -> None:
    head = TABLE[: TABLE.index("|   0  ")]
    source = imported(f"{names_list(1)}$ nvidia-smi\n{head}")
    assert source.nvml("nvmlSystemGetDriverVersion") == "470.1.2"
    assert source.nvml("nvmlDeviceGetCount") == 1
