"""``nvidia-smi -q``, ``-q -x`` and the plain table: what NVML would have answered, and what is left when broken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from xml.sax.saxutils import escape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from readers_text import one, unread
from sample import swept
from smi_texts import LINKS, QUERY, TABLE

from dgxcheck.facts.missing import Json
from dgxcheck.readers.listing import ATTACHED, WITHOUT_NUMBER
from dgxcheck.readers.model import Reader
from dgxcheck.readers.nvidia_smi import nvlink, query, query_documents, table
from dgxcheck.source.recording.keys import place

A, B = "0000:06:00.0", "0000:07:00.0"
READERS = (query.read_text, query_documents.read_xml, query_documents.read_json, table.read_table, nvlink.read_nvlink)
TOLD: dict[str, Json] = {
    "nvml nvmlSystemGetDriverVersion": "550.1.2",
    "nvml nvmlSystemGetCudaDriverVersion": 12040,
    "nvml nvmlDeviceGetHandleByIndex 0": A,
    "nvml nvmlDeviceGetHandleByIndex 1": B,
    f"nvml nvmlDeviceGetName {A}": "Example SXM2",
    f"nvml nvmlDeviceGetPersistenceMode {A}": 1,
    f"nvml nvmlDeviceGetCurrPcieLinkWidth {A}": 8,
    f"nvml nvmlDeviceGetMaxPcieLinkGeneration {A}": 3,
    f"nvml nvmlDeviceGetCurrentClocksEventReasons {A}": 0x41,
    f"nvml nvmlDeviceGetMemoryInfo {A}": {"total": 16 << 30, "used": 3 << 20},
    f"nvml nvmlDeviceGetEccMode {A}": [1, 0],
    f"nvml nvmlDeviceGetTotalEccErrors {A} 1 0": 2,
    f"nvml nvmlDeviceGetTotalEccErrors {A} 1 1": 7,
    f"nvml nvmlDeviceGetRetiredPages {A} 1": [{"address": 0}, {"address": 0}],
    f"nvml nvmlDeviceGetTemperature {A} 0": 41,
    f"nvml nvmlDeviceGetPowerUsage {A}": 56080,
    f"nvml nvmlDeviceGetPersistenceMode {B}": {
        "missing": "lost",
        "code": 16,
        "detail": "nvidia-smi: GPU requires reset",
    },
    f"nvml nvmlDeviceGetTemperature {B} 0": {"missing": "garbled", "detail": "nvidia-smi: ERR!"},
    f"nvml nvmlDeviceGetEccMode {B}": {"missing": "unsupported", "detail": "nvidia-smi: N/A"},
}


def tree() -> Iterator[tuple[int, str, str | None]]:
    """Depth, label and value of the lines of the text's GPUs."""
    for line in QUERY.splitlines():
        label, colon, value = line.strip().partition(" : ")
        if line.startswith("    "):
            yield (len(line) - len(line.lstrip())) // 4, label.strip(), value.strip() if colon else None


def as_xml() -> str:
    """The same GPUs as XML, with tags made of the labels."""
    rows = [*tree(), (1, "", "")]
    gpus, ends = iter((A, B)), list[str]()
    out = ['<?xml version="1.0" ?>', '<!DOCTYPE nvidia_smi_log SYSTEM "x.dtd">', "<nvidia_smi_log>",
           "<driver_version>550.1.2</driver_version>", "<cuda_version>12.4</cuda_version>"]  # fmt: skip
    for (depth, label, value), (below, _, _) in pairwise(rows):
        if label == "Product Name":
            out += ["</gpu>"] * ("</gpu>" in ends) + [f'<gpu id="0000{next(gpus)}">']
            ends = ["</gpu>"]
        tag = re.sub(r"\W", "_", label.lower())
        if below > depth and value is None:
            out.append(f"<{tag}>")
            ends.append(f"</{tag}>")
        else:
            out.append(f"<{tag}>{escape(value or '')}</{tag}>")
            while len(ends) > below:
                out.append(ends.pop())
    return "\n".join([*out, "</gpu>", "</nvidia_smi_log>"])


def test_the_text_is_what_nvml_would_have_answered() -> None:
    found = one(query.read_text, QUERY)
    assert found.tool == "nvidia-smi -q 550.1.2"
    assert {key: found.facts[key] for key in TOLD} == TOLD
    assert unread([found], QUERY) == []


def test_the_xml_is_what_nvml_would_have_answered() -> None:
    found = one(query_documents.read_xml, as_xml())
    same = {key: fact for key, fact in TOLD.items() if "HwThermal" not in key and "EventReasons" not in key}
    assert {key: found.facts[key] for key in same} == same
    assert unread([found], as_xml()) == []


def test_xml_that_was_turned_into_json_is_read() -> None:
    gpu = {"@id": f"0000{A}", "product_name": "Example", "ecc_mode": {"current_ecc": "Enabled", "pending_ecc": "N/A"}}
    text = json.dumps(
        {"nvidia_smi_log": {"driver_version": "550.1.2", "gpu": [gpu, {**gpu, "@id": f"0000{B}"}]}}, indent=1
    )
    found = one(query_documents.read_json, text)
    assert found.facts[f"nvml nvmlDeviceGetName {B}"] == "Example"
    assert found.facts[f"nvml nvmlDeviceGetEccMode {A}"] == {"missing": "unsupported", "detail": "nvidia-smi: N/A"}
    assert found.facts["nvml nvmlSystemGetDriverVersion"] == "550.1.2"
    assert unread([found], text) == []


def test_documents_of_something_else() -> None:
    """What has no GPU, or an identity that is none; a member of the machine within a GPU is the GPU's."""
    assert query_documents.read_xml(("<nvidia_smi_log>", "<foo>x</foo>", "</nvidia_smi_log>")) == ()
    nameless = as_xml().replace('<gpu id="', '<gpu name="')
    assert not any("HandleByIndex" in key for part in query_documents.read_xml(tuple(nameless.splitlines()))
                   for key, fact in part.facts.items() if fact == A)  # fmt: skip
    for gpu in ({"@id": "x"}, {"id": {"id": f"0000{A}"}}):
        assert query_documents.read_json((json.dumps({"nvidia_smi_log": {"gpu": [gpu]}}),)) == ()
    inner = {"nvidia_smi_log": {"gpu": [{"@id": f"0000{A}", "driver_version": "9.9"}]}}
    assert "nvml nvmlSystemGetDriverVersion" not in one(query_documents.read_json, json.dumps(inner)).facts


@pytest.mark.parametrize(("old", "new", "key", "answer"), [
    ("Example SXM2-1...", "NVIDIA GeForce ...", f"nvml nvmlDeviceGetBrand {B}", 5),
    ("|   1  Example", "|  64  Example", f"nvml nvmlDeviceGetPersistenceMode {B}", None),
    ("Example SXM2-16GB ", "N/A               ", f"nvml nvmlDeviceGetName {A}", None),
])  # fmt: skip
def test_names_and_numbers_in_the_plain_table(old: str, new: str, key: str, answer: Json) -> None:
    assert one(table.read_table, TABLE.replace(old, new)).facts.get(key) == answer


def test_a_uuid_that_two_gpus_have_is_of_neither() -> None:
    row = "GPU {}: Example (UUID: GPU-{}1234567-89ab-cdef-0123-456789abcdef)"
    for other, uuids in ((1, 2), (0, 0)):
        found = one(nvlink.read_list, "\n".join((row.format(0, 0), row.format(1, other)))).facts
        assert sum("GetUUID" in key for key in found) == uuids
    text = f"{row.format(0, 0)}\n  MIG 1g.10gb     Device  0: (UUID: MIG-c6d4)\n  MIG mode is on\n"
    assert unread([one(nvlink.read_list, text)], text) == [3]


def test_the_plain_table_is_read_and_a_name_that_it_cuts_is_left_out() -> None:
    found = one(table.read_table, TABLE)
    assert unread([found], TABLE) == []
    assert found.facts[f"nvml nvmlDeviceGetName {A}"] == "Example SXM2-16GB"
    assert f"nvml nvmlDeviceGetName {B}" not in found.facts
    assert found.facts[f"nvml nvmlDeviceGetPersistenceMode {B}"] == 0
    assert found.facts[f"nvml nvmlDeviceGetEnforcedPowerLimit {A}"] == 163000
    assert found.facts[f"nvml nvmlDeviceGetPowerUsage {B}"] == {"missing": "garbled", "detail": "nvidia-smi: ERR!"}
    assert found.facts[f"nvml nvmlDeviceGetComputeMode {B}"] == 3


def test_nvlink_states_are_those_of_each_gpu() -> None:
    found = one(nvlink.read_nvlink, f"$ nvidia-smi nvlink -s\n{LINKS}")
    assert found.facts == {
        "stated nvlink GPU0 0": "25.781 GB/s", "stated nvlink GPU0 1": "<inactive>",
        "stated nvlink GPU1": "all inactive", "stated nvlink GPU2": "none",
    }  # fmt: skip
    assert unread([found], f"$ nvidia-smi nvlink -s\n{LINKS}") == []


@pytest.mark.parametrize(("option", "row"), [("R", "Remote Device 00000000:0A:00.0: Link 46"),
                                             ("p", "00000000:0A:00.0")])  # fmt: skip
def test_the_other_ends_of_nvlinks_are_read(option: str, row: str) -> None:
    text = f"GPU 3: x (UUID: GPU-0)\n\tLink 2: {row}\n\tLink 3: Remote Device nowhere\n"
    found = one(nvlink.read_nvlink, text)
    assert (found.tool, found.facts) == (f"nvidia-smi nvlink -{option}",
                                         {"stated nvlink-remote GPU3 2": "00000000:0a:00.0"})  # fmt: skip
    assert unread([found], text) == [3]


def test_a_piece_without_its_gpus_line_has_the_address_of_nowhere() -> None:
    piece = QUERY[QUERY.index("    Ecc Mode") : QUERY.index("GPU 00000000:07")]
    found = one(query.read_text, piece)
    assert found.facts[f"{WITHOUT_NUMBER} ffffffff:00:00.0"] is True
    assert found.facts["nvml nvmlDeviceGetTemperature ffffffff:00:00.0 0"] == 41


def test_notes_behind_the_lines_of_a_piece_change_nothing() -> None:
    piece = QUERY[QUERY.index("    ECC Errors") : QUERY.index("    Retired Pages")]
    noted = piece.replace("Volatile", "Volatile      # since the last boot").replace(": 3", ": 3   # in its life")
    assert noted != piece
    assert one(query.read_text, noted).facts == one(query.read_text, piece).facts
    assert unread([one(query.read_text, noted)], noted) == unread([one(query.read_text, piece)], piece)


def test_few_lines_with_colons_are_no_dump() -> None:
    assert query.read_text(("    Temperature", "        GPU Current Temp : 41 C", "  a : b", "c : d")) == ()


def test_a_dump_of_a_gpu_that_comes_again_is_another() -> None:
    body = QUERY[QUERY.index("GPU 0000") :]
    found = query.read_text(tuple((QUERY + body).splitlines()))
    assert [sum("ByIndex" in key for key in part.facts) for part in found] == [2, 2]
    assert unread(found, QUERY + body) == []


def test_text_around_a_dump_belongs_to_nobody() -> None:
    text = f"hello there\n{QUERY}bye : now\n"
    assert unread(query.read_text(tuple(text.splitlines())), text) == [1, len(text.splitlines())]


@pytest.mark.parametrize("cut", range(0, len(as_xml()), 97))
def test_cut_xml_tells_what_it_holds(cut: int) -> None:
    text = as_xml()[:cut]
    for found in query_documents.read_xml(tuple(text.splitlines())):
        assert all(found.facts[key] == TOLD.get(key, found.facts[key]) for key in found.facts if "Name" in key)


@pytest.mark.parametrize("first", swept(range(7), 7))
@pytest.mark.parametrize("reader", READERS)
def test_no_cut_says_what_the_whole_does_not(reader: Reader, first: int) -> None:
    for text in (QUERY, as_xml(), TABLE, LINKS):
        whole = {key: fact for part in reader(tuple(text.split("\n"))) for key, fact in part.facts.items()}
        for cut in range(first, len(text), 7):
            for part in reader(tuple(text[:cut].split("\n"))):
                for key, fact in part.facts.items():
                    if key.startswith((WITHOUT_NUMBER, ATTACHED)):
                        continue  # the head tells of more GPUs than are left
                    told = whole.get(key)
                    part_of = isinstance(fact, dict) and isinstance(told, dict) and fact.items() <= told.items()
                    if isinstance(fact, list) and isinstance(told, list) and len(fact) == len(told):
                        part_of = all(a in (None, b) for a, b in zip(fact, told, strict=True))
                    assert fact == told or part_of, (key, fact, told, text[:cut][-40:])


def test_entities_are_not_expanded() -> None:
    bomb = ('<!DOCTYPE a [<!ENTITY b "bbbb">]>', "<nvidia_smi_log>", '<gpu id="0:06:00.0">')
    (found,) = query_documents.read_xml((*bomb, "<product_name>&b;&lt;</product_name>"))
    assert found.facts[f"nvml nvmlDeviceGetName {A}"] == "&b;<"


LINES = st.sampled_from([*QUERY.splitlines(), *as_xml().splitlines(), *TABLE.splitlines(), *LINKS.splitlines(),
                         "{", "gpu: [", "id: '0:06:00.0'", "}", "a: {", "'b': 'c'", "nvidia_smi_log"])  # fmt: skip


@example(["Attached GPUs                       : 2", "GPU 00000000:06:00.0"])
@given(st.lists(LINES | st.text(max_size=40), max_size=40))
def test_no_text_breaks_the_readers(lines: list[str]) -> None:
    for reader in READERS:
        for found in reader(tuple(lines)):
            assert all(0 <= number < len(lines) for number in found.understood)
            assert all(place(key) is not None for key in found.facts)


VALUES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=30)


@given(st.sampled_from([key for _, key, value in tree() if value is not None]), VALUES)
def test_any_value_is_an_answer_or_a_gap(label: str, value: str) -> None:
    text = re.sub(rf"({re.escape(label)} +: ).*", lambda found: found[1] + value, QUERY)
    for found in query.read_text(tuple(text.split("\n"))):
        json.dumps(dict(found.facts), allow_nan=False)
        assert all(abs(fact) < 1e19 for fact in found.facts.values() if isinstance(fact, int))
