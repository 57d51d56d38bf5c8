"""``nvidia-smi topo``: matrices of every form that was seen pasted, and what is left of a broken one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from readers_text import one, unread
from smi_texts import STATION, matrix

from dgxcheck.readers.nvidia_smi import topo

PAIR = {("GPU0", "GPU1"): "NV2", ("GPU1", "GPU0"): "NV2"}
CELLS = {"stated label GPU0 GPU0": "X", "stated label GPU0 GPU1": "NV2",
         "stated label GPU1 GPU0": "NV2", "stated label GPU1 GPU1": "X"}  # fmt: skip
LABELS = st.sampled_from(("PIX", "PXB", "PHB", "NODE", "SYS", "SOC", "NV1", "NV18"))


def test_labels_affinities_and_the_names_of_nics_are_read() -> None:
    found = one(topo.read_labels, f"{STATION}\n")
    assert found.tool == "nvidia-smi topo -m"
    assert unread([found], STATION) == []
    assert found.facts["stated label GPU0 GPU3"] == "NV2"
    assert found.facts["stated label NIC0 GPU0"] == "PIX"
    assert found.facts["stated cpu-affinity GPU2"] == "8-15,24-31"
    assert found.facts["stated numa-affinity GPU3"] == "0-1"
    assert found.facts["stated gpu-numa-id GPU0"] == "N/A"
    assert found.facts["stated nic-name NIC0"] == "mlx5_bond_0"
    assert not any("affinity NIC0" in key for key in found.facts)


@pytest.mark.parametrize("text", [
    matrix(PAIR, ("GPU0", "GPU1")),
    matrix(PAIR, ("GPU0", "GPU1"), gap="     "),
    matrix(PAIR, ("GPU0", "GPU1"), own="X"),
    "GPU0GPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n",
    "GPU0 GPU1\nGPU0 X NV2\nGPU1 NV2X\n",
    " 0 1  CPU Affinity\nGPU0 X NV2 0-9\nGPU1 NV2 X 0-9\n",
    "GPU0 GPU1 CPU Affinity | |\nGPU0 X NV2 0-9 | |\nGPU1 NV2 X 0-9 | |\n",
    "> \tGPU0\tGPU1\tCPU     Affinity\n> GPU0\t X \tNV2\t0-9\n> GPU1\tNV2\t X \t0-9\n",
    "GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X NV2 0-9 0\n\nGPU1 NV2 X 10-19 1\n",
])  # fmt: skip
def test_a_matrix_is_read_however_it_was_pasted(text: str) -> None:
    found = one(topo.read_labels, text)
    assert {key: fact for key, fact in found.facts.items() if "label" in key} == CELLS
    assert unread([found], text) == []


@pytest.mark.parametrize(("head", "rest"), [
    ("CPU Affinity    NUMA Affinity   GPU NUM\nA ID", "0-9\t0\tN/A"), ("CPU Affinity    NUMA Aff\ninity", "0-9\t0"),
])  # fmt: skip
def test_a_head_that_is_broken_within_a_title_is_one(head: str, rest: str) -> None:
    found = one(topo.read_labels, f"\tGPU0\tGPU1\t{head}\nGPU0\t X \tNV2\t{rest}\nGPU1\tNV2\t X \t{rest}\n")
    assert found.facts.items() >= CELLS.items()
    assert found.facts["stated numa-affinity GPU1"] == "0"


@pytest.mark.parametrize(("before", "cell", "after", "kind"), [
    ("", "NV1", "", "label"),
    ("", "PIX", "", "label-pci"),
    ("", "PIX", "Legend:\n  NV#  = # NVLinks\n", "label"),
    ("", "PIX", "Legend:\n  SOC = Path traverses a socket-level link (e.g. QPI)\n", "label"),
    ("$ nvidia-smi topo -m\n", "PIX", "", "label"),
    ("$ nvidia-smi topo -mp\n", "PIX", "", "label-pci"),
    ("$ nvidia-smi topo --matrix_pci\n", "PIX", "Legend:\n  PIX  = a switch\n", "label-pci"),
])  # fmt: skip
def test_a_matrix_tells_of_nvlinks_only_where_it_would_show_them(before: str, cell: str, after: str, kind: str) -> None:
    text = before + matrix({("GPU0", "GPU1"): cell, ("GPU1", "GPU0"): cell}, ("GPU0", "GPU1")) + after
    found = one(topo.read_labels, text)
    assert found.facts[f"stated {kind} GPU0 GPU1"] == cell
    assert unread([found], text) == []


def test_a_broken_row_is_named_and_its_good_cells_are_kept() -> None:
    text = "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV1\t?!\nGPU1\tNV1\nsegmentation fault\nGPU2\tPHB\tPHB\t X \n"
    found = one(topo.read_labels, text)
    assert unread([found], text) == [2, 3, 4]
    assert found.facts["stated label GPU0 GPU1"] == "NV1"
    assert found.facts["stated label GPU0 GPU2"] == {"missing": "garbled", "detail": "?!"}
    assert "stated label GPU1 GPU2" not in found.facts
    assert found.facts["stated label GPU2 GPU1"] == "PHB"
    assert "stated label GPU1 GPU0" not in found.facts, "half a label may be another label"


def test_no_cut_says_what_the_whole_does_not() -> None:
    p2p = " \tGPU0\tGPU1\t\n GPU0\tX\tGNS\t\n GPU1\tCNS\tX\t\n"
    for reader, text in ((topo.read_labels, STATION), (topo.read_p2p, p2p)):
        whole = one(reader, text).facts
        for cut in range(len(text)):
            for part in reader(tuple(text[:cut].split("\n"))):
                known = {key: fact for key, fact in part.facts.items() if not isinstance(fact, dict)}
                assert known.items() <= whole.items(), text[:cut][-40:]


def test_two_matrices_are_two() -> None:
    text = f"$ nvidia-smi topo -m\n{STATION}\n$ nvidia-smi topo -mp\n" + matrix(
        {("GPU0", "GPU1"): "PHB", ("GPU1", "GPU0"): "PHB"}, ("GPU0", "GPU1")
    )
    found = topo.read_labels(tuple(text.splitlines()))
    assert [part.tool for part in found] == ["nvidia-smi topo -m", "nvidia-smi topo -mp"]
    assert unread(found, text) == []


@pytest.mark.parametrize(("command", "kind"), [
    ("", "p2p"), ("$ nvidia-smi topo -p2p r\n", "p2p-read"), ("# nvidia-smi topo -p2p n\n", "p2p-nvlink"),
])  # fmt: skip
def test_peer_to_peer_status_is_of_the_capability_that_the_command_names(command: str, kind: str) -> None:
    text = (
        f"{command} \tGPU0\tGPU1\t\n GPU0\tX\tGNS\t\n GPU1\tOK\tX\t\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n"
    )
    found = one(topo.read_p2p, text)
    assert found.facts[f"stated {kind} GPU0 GPU1"] == "GNS"
    assert found.facts[f"stated {kind} GPU1 GPU0"] == "OK"
    assert unread([found], text) == []
    assert topo.read_labels(tuple(text.splitlines())) == ()


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(LABELS, min_size=n * n, max_size=n * n), st.sampled_from("\t "))
    )
)
def test_what_is_printed_is_read_again(drawn: tuple[int, list[str], str]) -> None:
    count, cells, gap = drawn
    names = [*(f"GPU{n}" for n in range(count)), "mlx5_0"]
    pairs = [(a, b) for a in names for b in names if a != b]
    labels = {pair: cells[at % len(cells)] for at, pair in enumerate(pairs)}
    text = matrix(labels, names, gap=gap if gap == "\t" else "   ")
    found = one(topo.read_labels, text)
    kind = "label" if any(label.startswith("NV") for label in labels.values()) else "label-pci"
    read = {tuple(key.split()[2:]): fact for key, fact in found.facts.items() if fact != "X"}
    assert {key.split()[1] for key in found.facts} == {kind}
    assert read == labels
    assert unread([found], text) == []


WORDS = st.sampled_from(
    ("GPU0", "GPU1", "GPU999", "X", " X ", "NV1", "NV999", "SYS", "OK", "\t", "  ", "NIC0", "mlx5_0", "CPU Affinity",
     "0-9", "N/A", "Legend:", "NIC0: a", "\x1b[4m", "| |", "nvidia-smi topo -p2p r", "0", "1", "\u0661", "X = Self")
)  # fmt: skip


@given(st.lists(st.lists(WORDS, max_size=8).map("".join) | st.text(max_size=30), max_size=20))
def test_no_text_breaks_the_readers(lines: list[str]) -> None:
    for reader in (topo.read_labels, topo.read_p2p):
        for found in reader(tuple(lines)):
            assert found.facts
            assert all(0 <= number < len(lines) for number in found.understood)
            assert all(key.startswith("stated ") and 3 <= len(key.split(" ")) <= 4 for key in found.facts)


@pytest.mark.parametrize("cut", ["8-15,", "8-15,24-", "0N/A"])
def test_an_affinity_that_is_cut_is_unknown(cut: str) -> None:
    text = f"\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSYS\t0-7,16-23\nGPU1\tSYS\t X \t{cut}\n"
    found = one(topo.read_labels, text).facts
    assert found["stated cpu-affinity GPU0"] == "0-7,16-23"
    assert "stated cpu-affinity GPU1" not in found
    assert found["stated label-pci GPU1 GPU0"] == "SYS"


@pytest.mark.parametrize(("first", "rest", "cell"), [
    ("GPU0\t X \tNV1", "8\tSYS\t0-9", "NV18"), ("GPU0\t X \tNV1", " 8\tSYS\t0-9", None),
    ("GPU0\t X \tNV", "18\tSYS\t0-9", "NV18"), ("GPU0\t X \tNV18", "SYS\t0-9", "NV18"),
    ("GPU0\t X \tNV1", "123\t0-9", "NV1"), ("GPU0\t X \tNV1 ", "8\tSYS\t0-9", None),
])  # fmt: skip
def test_a_row_that_a_terminal_broke_within_a_word(first: str, rest: str, cell: str | None) -> None:
    head = "\tGPU0\tGPU1\tGPU2\tCPU Affinity"
    text = f"{head}\n{first}\n{rest}\nGPU1\tNV18\t X \tSYS\t0-9\nGPU2\tSYS\tSYS\t X \t0-9\n"
    found = one(topo.read_labels, text).facts
    shown = found.get("stated label GPU0 GPU1", found.get("stated label-pci GPU0 GPU1"))
    assert shown == cell or (cell is None and shown in ("NV1", None))


@pytest.mark.parametrize(("head", "columns"), [
    ("0\t1\tmlx5_0\tCPU Affinity", ("GPU0", "GPU1", "mlx5_0")), ("0\t2\tCPU Affinity", None),
    ("GPU0\tGPU1\tCPU Affinity", ("GPU0", "GPU1")), ("0\tx1\tCPU Affinity", ("GPU0", "x1")),
])  # fmt: skip
def test_the_head_of_an_old_matrix_numbers_its_gpus(head: str, columns: tuple[str, ...] | None) -> None:
    found = topo._head(head)
    assert (found and found[0]) == columns


@pytest.mark.parametrize(("head", "row", "is_read"), [
    (40_960, 4095, True), (40_961, 4095, False), (40_960, 4096, False),
])  # fmt: skip
def test_lines_of_a_matrix_have_a_longest(head: int, row: int, is_read: bool) -> None:
    lines = ("\tGPU0\tGPU1".ljust(head), "GPU0\t X ", "\tNV2".ljust(row), "GPU1\tNV2\t X ")
    found = [key for part in topo.read_labels(lines) for key in part.facts]
    assert ("stated label GPU0 GPU1" in found) == is_read
