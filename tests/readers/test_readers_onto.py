"""Outputs put together, and put onto the GPUs of a box: by index, by name, by bus id, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.bdf import unplaced
from dgxcheck.facts.missing import BadInput, Json
from dgxcheck.readers import listing
from dgxcheck.readers.combine import Part, combine
from dgxcheck.readers.derived import _slot
from dgxcheck.readers.model import Imported
from dgxcheck.readers.onto import mismatch, nvml_gpus, rebase_indexes
from dgxcheck.source.recording.keys import place

A, B, C = "0000:06:00.0", "0000:07:00.0", "0000:0b:00.0"
INDEX = "nvml nvmlDeviceGetHandleByIndex"


def part(facts: dict[str, Json], tool: str = "t", file: str = "f") -> Part:
    return Part(file, Imported(tool=tool, facts=facts, understood=frozenset((3,))))


@pytest.mark.parametrize(("key", "fact", "new", "answer"), [
    ("stated label GPU0 GPU1", "NV1", f"stated label {A} {B}", "NV1"),
    ("stated cpu-affinity GPU1", "0-9", f"stated cpu-affinity {B}", "0-9"),
    ("stated nic-name NIC0", "mlx5_0", "stated nic-name NIC0", "mlx5_0"),
    ("stated p2p-write GPU1 GPU0", "TNS", f"nvml nvmlDeviceGetP2PStatus {B} {A} 1", 3),
    ("stated p2p GPU1 GPU0", "OK", f"stated p2p {B} {A}", "OK"),
    ("stated nvlink GPU1 0", "<inactive>", f"nvml nvmlDeviceGetNvLinkState {B} 0", 0),
    ("stated nvlink GPU1", "none", f"nvml nvmlDeviceGetNvLinkState {B} 0",
     {"missing": "unsupported", "detail": "nvidia-smi: no NVLink"}),
    ("stated nvlink-remote GPU0 1", "00000000:07:00.0",
     f"nvml nvmlDeviceGetNvLinkRemotePciInfo {A} 1", {"busId": B}),
    ("measure p2p 0 1", {"value": 1}, f"measure p2p {A} {B}", {"value": 1}),
    ("measure host-to-device 1", {"value": 1}, f"measure host-to-device {B}", {"value": 1}),
    ("measure collective all_reduce 8", {"value": 1}, "measure collective all_reduce 8", {"value": 1}),
    ("measure ring 0 all", {"value": 1}, "measure ring 0 all", {"value": 1}),
    (f"nvml nvmlDeviceGetName {B}", "x", f"nvml nvmlDeviceGetName {B}", "x"),
    (f"nvml nvmlDeviceGetName {unplaced(1)}", "x", f"nvml nvmlDeviceGetName {B}", "x"),
    ("stated nvlink GPU1", "strange", f"stated nvlink {B}", "strange"),
    ("stated nvlink-errors GPU1 0", 5, f"stated nvlink-errors {B} 0", 5),
    ("stated nvlink-errors GPU1 0 2", 5, f"nvml nvmlDeviceGetNvLinkErrorCounter {B} 0 2", 5),
    ("measure collective all_reduce 2", {"devices": [0, 1, "x"], "also": [{"devices": [1]}]},
     "measure collective all_reduce 2", {"devices": [A, B, "x"], "also": [{"devices": [B]}]}),
])  # fmt: skip
def test_each_kind_of_fact_finds_its_gpus(key: str, fact: Json, new: str, answer: Json) -> None:
    assert rebase_indexes({key: fact}, {0: A, 1: B}) == {new: answer}


def test_nics_keep_their_names() -> None:
    facts: dict[str, Json] = {"stated label GPU0 GPU1": "NV1", "stated label mlx5_0 GPU1": "PIX"}
    assert rebase_indexes(facts, {0: A, 1: B}) == {f"stated label {A} {B}": "NV1", f"stated label mlx5_0 {B}": "PIX"}


def test_bus_ids_that_a_tool_prints_go_before_nvmls_order() -> None:
    facts: dict[str, Json] = {
        "measure device 0": {"value": None, "bdf": B}, "measure device 1": {"value": None, "bdf": A},
        "measure p2p 0 1": {"value": 5}, "stated cpu-affinity GPU0": "0",
    }  # fmt: skip
    found = rebase_indexes(facts, {0: A, 1: B})
    assert found[f"measure p2p {B} {A}"] == {"value": 5}
    assert found[f"stated cpu-affinity {A}"] == "0", "nvidia-smi counts as NVML does"
    with pytest.raises(BadInput, match=r"a tool prints bus id 0000:99:00\.0 for GPU 0"):
        rebase_indexes({"measure device 0": {"value": None, "bdf": "0000:99:00.0"}}, {0: A, 1: B})


@pytest.mark.parametrize(("key", "fact", "answers"), [
    ("stated nvlink GPU1 1", "25.781 GB/s", {f"NvLinkState {B} 1": 1, f"FieldValues {B} 1 164": 25781}),
    ("stated nvlink GPU1 17", "50 GB/s", {f"NvLinkState {B} 17": 1, f"FieldValues {B} 17 164": 50000}),
    ("stated nvlink GPU1", "MIG", {
        f"NvLinkState {B} 0": {"missing": "unsupported", "detail": "nvidia-smi: no NVLink queries in MIG mode"},
        f"MigMode {B}": [1, None]}),
])  # fmt: skip
def test_links_have_a_state_and_a_rate(key: str, fact: Json, answers: dict[str, Json]) -> None:
    due = {f"nvml nvmlDeviceGet{question}": answer for question, answer in answers.items()}
    assert rebase_indexes({key: fact}, {0: A, 1: B}) == due


@pytest.mark.parametrize(("key", "why"), [
    ("measure p2p 0 2", "GPU 2 does not exist; the last GPU of the box is GPU 1"),
    ("stated cpu-affinity GPU7", "GPU 7 does not exist"),
    ("stated label GPU0 mlx5_0", "the matrix has 1 GPU (up to GPU0), the box has 2"),
    ("stated p2p-read GPU0 GPU9", "the matrix has 2 GPUs (up to GPU9), the box has 2"),
    ("nvml nvmlDeviceGetName 0000:99:00.0", "GPU 0000:99:00.0 in a dump is not one of the 2 GPUs of the box"),
    (f"nvml nvmlDeviceGetName {unplaced(5)}", "GPU 5 does not exist; the last GPU of the box is GPU 1"),
    ("nvml nvmlDeviceGetName ffffffff:00:00.0", "a GPU without a bus id in a dump"),
])  # fmt: skip
def test_what_does_not_fit_says_why(key: str, why: str) -> None:
    assert why in mismatch({key: "x"}, {0: A, 1: B})
    with pytest.raises(BadInput):
        rebase_indexes({key: "x"}, {0: A, 1: B})


def test_words_that_name_no_gpu_are_none() -> None:
    assert mismatch({"stated label GPU0 GPU1": "NV1", "stated label GPU0 GPUx": "NV1"}, {0: A, 1: B}) == ""
    assert nvml_gpus({f"{INDEX} 0": "x", f"{INDEX} 1": A, f"{INDEX} 2": {"missing": "lost"}}) == (A,)


def test_the_bus_ids_of_a_tool_place_the_gpus_of_a_text_without_any() -> None:
    facts: dict[str, Json] = {"measure device 0": {"value": None, "bdf": A}, "measure p2p 0 1": {"value": 5}}
    assert rebase_indexes(facts, {0: unplaced(0), 1: unplaced(1)})[f"measure p2p {A} {unplaced(1)}"] == {"value": 5}


@pytest.mark.parametrize(("numbers", "without", "attached", "listed"), [
    ({}, (B, A), 2, {0: A, 1: B}), ({0: A}, (B,), 2, {0: A, 1: B}), ({1: A}, (B,), 2, {0: B, 1: A}),
    ({0: A}, (B,), 3, {0: A}), ({0: A}, (unplaced(7),), 2, {0: A}), ({}, (), 2, {}),
])  # fmt: skip
def test_gpus_without_a_number_have_that_of_their_place_where_these_are_all(
    numbers: dict[int, Json], without: tuple[str, ...], attached: int, listed: dict[int, str]
) -> None:
    assert listing.handles(listing.answers(numbers, without, attached)) == listed


def test_a_gpu_that_two_texts_number_differently_is_one() -> None:
    assert listing.handles(listing.gpu_list([{f"{INDEX} 0": A}, {f"{INDEX} 1": A}])) == {0: A}


@pytest.mark.parametrize(("printed", "placed"), [((A, B), {0: A, 1: B}), ((B, A), {}), ((A,), {})])
def test_numbers_of_cuda_are_nvmls_where_they_are_in_bus_order(printed: tuple[str, ...], placed: object) -> None:
    devices: dict[str, Json] = {f"measure device {at}": {"bdf": bdf} for at, bdf in enumerate(printed)}
    first, _ = listing.placed([{f"{INDEX} {at}": unplaced(at) for at in (0, 1)}, devices])
    assert {at: bdf for at, bdf in listing.handles(first).items() if bdf in (A, B)} == placed


@pytest.mark.parametrize(("numbers", "bdf", "slot"), [
    ({0: A, 2: C}, B, 1), ({0: A, 3: C}, B, 4), ({0: A, 2: C}, "0000:0c:00.0", 3), ({}, A, 0),
    ({0: {"missing": "lost"}, 2: C}, B, 1),
])  # fmt: skip
def test_the_number_that_the_others_leave_free(numbers: dict[int, Json], bdf: str, slot: int) -> None:
    assert _slot(numbers, bdf) == slot


def test_a_dump_without_its_bus_id_is_that_of_the_only_gpu() -> None:
    found = rebase_indexes({"nvml nvmlDeviceGetName ffffffff:00:00.0": "x"}, {0: A})
    assert found == {f"nvml nvmlDeviceGetName {A}": "x"}


def test_dumps_of_some_gpus_each_are_one_list_in_bus_order() -> None:
    found = combine([part({f"{INDEX} 0": B, f"nvml nvmlDeviceGetName {B}": "b"}), part({f"{INDEX} 0": A})])
    assert found.refused == ()
    assert nvml_gpus(found.facts) == (A, B)
    assert found.facts["nvml nvmlDeviceGetCount"] == 2


def test_the_order_of_a_whole_dump_stays() -> None:
    assert nvml_gpus(combine([part({f"{INDEX} 0": B, f"{INDEX} 1": A})]).facts) == (B, A)


def test_the_same_twice_is_no_contradiction() -> None:
    one = part({"stated label GPU0 GPU1": "NV1"})
    assert combine([one, one]).refused == ()
    other = part({"stated label GPU0 GPU1": "NV2", "measure p2p 0 1": {"value": 1}})
    found = combine([one, other])
    assert found.refused == (other,)
    assert found.facts == {"stated label GPU0 GPU1": "NV1"}


WORD = st.sampled_from(("GPU0", "GPU1", "GPU9", "GPUx", unplaced(0), unplaced(5),
                        "0", "1", "all", "mlx5_0", A, B, "0000:00:00.0", "x"))
KEY = st.builds(
    lambda kind, words: " ".join((*kind, *words)),
    st.sampled_from((("stated", "label"), ("stated", "nvlink"), ("stated", "p2p-read"), ("stated", "nvlink-remote"),
                     ("measure", "p2p"), ("measure", "device"), ("measure", "collective"), ("stated", "nic-name"),
                     ("nvml", "nvmlDeviceGetName"), ("nvml", INDEX[5:]))),
    st.lists(WORD, min_size=1, max_size=3),
)  # fmt: skip
FACT = st.sampled_from(("OK", "NV1", "<inactive>", A, 3, None, {"value": 1.0}, {"bdf": A}, {"missing": "garbled"},
                        "none", "MIG", {"devices": [0, "x", [1], 9], "also": [{"devices": [1]}, "x", None]}))


@given(st.dictionaries(KEY, FACT, max_size=6), st.sampled_from(((), (A,), (A, B))))
def test_any_facts_are_placed_or_refused(facts: dict[str, Json], gpus: tuple[str, ...]) -> None:
    try:
        found = rebase_indexes(facts, dict(enumerate(gpus)))
    except BadInput:
        return
    assert all(place(key) is not None for key in found)
