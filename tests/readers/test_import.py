"""``dgxcheck import``: what other tools printed becomes a recording; what cannot be read is named."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from golden_text import agrees
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemas import complaints
from seam import is_one_clear_line, run
from smi_texts import LINKS, QUERY, STATION, TABLE, matrix

A, B = "0000:06:00.0", "0000:07:00.0"
EIGHT = tuple(f"GPU{n}" for n in range(8))
P2P = """\
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 701.00  18.01
     1  18.10 701.11
"""


def put(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


@pytest.fixture
def written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Import texts into a recording: exit code, stderr and the document (None where no file was written)."""

    def make(*texts: str, onto: str | None = None) -> tuple[int, str, Any]:
        files = [put(tmp_path, f"{number}.txt", text) for number, text in enumerate(texts)]
        out = tmp_path / "box.json"
        done = run(capsys, "import", *files, *(("--onto", onto) if onto else ()), "-o", str(out))
        assert done.out == ""
        document = json.loads(out.read_text(encoding="utf-8")) if out.exists() else None
        if document is not None:
            assert complaints("recording", document) == []
        return done.code, done.err, document

    return make


def test_all_read_is_0_and_says_what_was_read(written: Any) -> None:
    code, said, document = written(STATION)
    assert (code, said.count("\n")) == (0, 1)
    assert said.endswith("facts imported from 0.txt\n")
    assert document["provenance"] == {
        "kind": "imported", "files": [{"file": "text 1", "tools": ["nvidia-smi topo -m"], "unread": 0}],
    }  # fmt: skip
    assert "recorded_at" not in document


def test_part_read_is_3_and_names_each_line(written: Any) -> None:
    code, said, document = written(f"first\nsecond\x1b[2J\n{STATION}\n")
    assert code == 3
    assert said.splitlines()[:2] == [
        "dgxcheck: 0.txt:1: not read: first",
        "dgxcheck: 0.txt:2: not read: second�[2J",
    ]
    assert document["provenance"]["files"][0]["unread"] == 2


def test_nothing_read_is_3_and_writes_no_file(written: Any) -> None:
    code, said, document = written("hello\n", "")
    assert (code, document) == (3, None)
    assert [line.partition(": contains no output")[0] for line in said.splitlines()[:2]] == [
        "dgxcheck: 0.txt",
        "dgxcheck: 1.txt: file is empty",
    ]
    assert said.splitlines()[2] == "dgxcheck: nothing was read; no file was written"


def test_a_file_without_anything_known_beside_others_is_part_read(written: Any) -> None:
    code, said, document = written(STATION, "hello\nworld\n")
    assert (code, document is None) == (3, False)
    assert said.startswith(
        "dgxcheck: 1.txt: contains no output of a supported tool; import reads the output of nvidia-smi, "
    )


def test_a_matrix_of_another_box_is_left_out(written: Any) -> None:
    other = matrix({(a, b): "NV9" for a in EIGHT for b in EIGHT}, EIGHT)
    code, said, document = written(STATION, other)
    assert code == 3
    assert "1.txt:1-9: nvidia-smi topo -m output is left out because it contradicts earlier output" in said
    assert "NV9" not in json.dumps(document)
    assert document["provenance"]["files"][1]["tools"] == []


def test_several_texts_are_one_box_and_runs_are_kept(written: Any) -> None:
    code, said, document = written(TABLE.replace("470.1.2", "550.1.2"), QUERY, P2P, P2P.replace("18.01", "17.01"))
    assert (code, said.count("\n")) == (0, 1)
    facts = document["facts"]
    assert facts["nvml nvmlDeviceGetHandleByIndex"] == {"0": A, "1": B}
    assert facts["nvml nvmlDeviceGetCount"] == {"": 2}
    assert facts["nvml nvmlDeviceGetTemperature 0000:06:00.0"] == {"0": 36}, "the first counts"
    figure = facts["measure p2p"][f"{A} {B}"]
    assert figure["value"] == 18.01
    assert [(run["value"], run["from"]) for run in figure["runs"]] == [
        (18.01, "text 3, line 3"),
        (17.01, "text 4, line 3"),
    ]


def test_a_dump_of_another_driver_is_left_out(written: Any) -> None:
    code, said, document = written(QUERY, QUERY.replace("550.1.2", "470.3.4"))
    assert code == 3
    assert "nvidia-smi -q 470.3.4 output is left out" in said
    assert document["facts"]["nvml nvmlSystemGetDriverVersion"] == {"": "550.1.2"}


def test_an_older_dump_is_no_second_moment(written: Any) -> None:
    code, said, document = written(QUERY, QUERY.replace("41 C", "80 C"))
    assert code == 3
    assert "nvidia-smi -q 550.1.2 output is left out" in said
    assert document["facts"][f"nvml nvmlDeviceGetTemperature {A}"] == {"0": 41}


def test_nvlinks_beside_a_dump_are_nvmls_answers(written: Any) -> None:
    two = LINKS[: LINKS.index("GPU 2")]
    _, _, document = written(two, QUERY)
    assert document["facts"][f"nvml nvmlDeviceGetNvLinkState {A}"] == {"0": 1, "1": 0}
    assert document["facts"][f"nvml nvmlDeviceGetNvLinkState {B}"] == {"0": 0}, "all are inactive"


FASTEST_FIRST = """\
Device: 0, NVIDIA L40S, pciBusID: c1, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA L40S, pciBusID: 2a, pciDeviceID: 0, pciDomainID:0
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 701.00  18.01
     1  25.10 701.11
"""


def test_gpus_that_a_benchmark_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CUDA's order is not that of the bus: figures stay at the GPUs whose bus ids the tool printed."""
    file = put(tmp_path, "p2p.txt", FASTEST_FIRST)
    document = json.loads(run(capsys, "topo", "--format", "json", "--from", file).out)
    assert [gpu["bdf"] for gpu in document["devices"]] == ["0000:2a:00.0", "0000:c1:00.0"]
    document = json.loads(run(capsys, "health", "--format", "json", "--from", file).out)
    figures = {(each["a"], each["b"]): each["value"] for each in document["measurements"] if each["kind"] == "p2p"}
    assert figures["0000:c1:00.0", "0000:2a:00.0"] == 18.01
    assert figures["0000:2a:00.0", "0000:c1:00.0"] == 25.1


NICS = """\
\tGPU0\tGPU1\tNIC0\tNIC1\tNIC2\tCPU Affinity
GPU0\t X \tNV4\tPIX\tNODE\tSYS\t0-7
GPU1\tNV4\t X \tNODE\tPXB\tSYS\t0-7

$ ibdev2netdev
mlx5_1 port 1 ==> ib1 (Up)
ibp9s0 port 1 ==> ib4 (Down)
"""


@pytest.mark.parametrize(("legend", "named", "printed", "unmatched"), [
    ("", ["NIC0", "NIC1", "NIC2"], [], "ibp9s0, mlx5_1"),
    ("NIC Legend:\n  NIC1: mlx5_1\n\n", ["NIC0", "mlx5_1", "NIC2"], ["  NIC1: mlx5_1"], "ibp9s0"),
    ("NIC Legend:\n  NIC0: mlx5_1\n  NIC1: ibp9s0\n  NIC2: mlx5_7\n\n", ["mlx5_1", "ibp9s0", "mlx5_7"],
     ["  NIC0: mlx5_1", "  NIC1: ibp9s0", "  NIC2: mlx5_7"], ""),
])  # fmt: skip
def test_a_nic_that_the_matrix_does_not_name_keeps_its_number(
    legend: str,
    named: list[str],
    printed: list[str],
    unmatched: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = put(tmp_path, "topo.txt", NICS.replace("$", f"{legend}$"))
    document = json.loads(run(capsys, "topo", "--format", "json", "--from", file).out)
    assert [device["name"] for device in document["devices"] if device["kind"] == "nic"] == named
    told = run(capsys, "topo", "--from", file).out
    assert (f"these are: {unmatched}." in told) == bool(unmatched)
    lines = run(capsys, "topo", "--format", "nvidia-smi", "--from", file).out.split("\n")
    rows = [dict(zip(lines[0].split("\t"), line.split("\t"), strict=False)) for line in lines[1:3]]
    assert [(row["NIC0"], row["NIC1"], row["NIC2"]) for row in rows] == [("PIX", "NODE", "SYS"), ("NODE", "PXB", "SYS")]
    assert [line for line in lines if line.startswith("  NIC")] == printed
    assert "ibp9s0" in run(capsys, "health", "--from", file).out


def test_gpus_that_no_output_shows_are_not_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "box:1:2 [0] NCCL INFO comm 0x5 rank 0 nranks 8 cudaDev 0 nvmlDev 2 busId 18000 commId 0x1 - Init COMPLETE\n"
    told = run(capsys, "topo", "--from", put(tmp_path, "nccl.txt", line)).out
    assert "Not shown by any output: GPU0, GPU1." in told
    assert "cannot open" not in told


def test_identities_leave_as_pseudonyms(written: Any) -> None:
    _, _, document = written(QUERY)
    assert document["identities"] == "pseudonyms"
    assert "1234567890123" not in json.dumps(document)
    assert "01234567-89ab" not in json.dumps(document)
    assert document["facts"][f"nvml nvmlDeviceGetSerial {A}"][""].isdecimal()


def test_names_of_files_do_not_leave(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    box = tmp_path / "rack7-acme.json"
    assert run(capsys, "record", str(box), "--from", "dgx-1-v100").code == 0
    text, out = put(tmp_path, "acme-node3.log", P2P), tmp_path / "out.json"
    assert run(capsys, "import", text, "--onto", str(box), "-o", str(out)).code == 0
    assert "acme" not in out.read_text()


def test_onto_a_box_indexes_are_its_gpus(written: Any) -> None:
    code, _, document = written(P2P, onto="dgx-1-v100")
    assert code == 0
    assert document["facts"]["measure p2p"][f"{A} {B}"]["value"] == 18.01
    assert "/sys/class/dmi/id" in document["facts"]
    assert document["provenance"]["onto"] == {"name": "dgx-1-v100", "kind": "reconstructed"}
    assert document["identities"] == "made up"


def test_onto_a_box_its_own_answers_stay(written: Any) -> None:
    _, _, document = written(QUERY.replace("Example SXM2", "Other"), onto="dgx-1-v100")
    assert "Tesla V100" in document["facts"][f"nvml nvmlDeviceGetName {A}"][""]


@pytest.mark.parametrize(("text", "onto", "why"), [
    (STATION, "dgx-1-v100", "the matrix has 4 GPUs (up to GPU3), the box has 8"),
    (P2P.replace(" 1", " 9"), "dgx-1-v100", "GPU 9 does not exist; the last GPU of the box is GPU 7"),
    (QUERY.replace("0000:06", "0000:99"), "dgx-1-v100", "GPU 0000:99:00.0 in a dump is not one of the 8 GPUs"),
    (QUERY[QUERY.index("    Ecc Mode") : QUERY.index("GPU 00000000:07")], "dgx-1-v100",
     "a GPU without a bus id in a dump is not one of the 8 GPUs of the box"),
])  # fmt: skip
def test_what_does_not_fit_the_box_is_refused(text: str, onto: str, why: str, written: Any) -> None:
    code, said, document = written(text, onto=onto)
    assert (code, document) == (3, None)
    assert is_one_clear_line(said)
    assert why in said


def test_onto_a_box_without_nvml_is_refused(written: Any, tmp_path: Path) -> None:
    (tmp_path / "root" / "sys" / "bus" / "pci" / "devices").mkdir(parents=True)
    code, said, document = written(P2P, onto=str(tmp_path / "root"))
    assert (code, document) == (3, None)
    assert "NVML lists no GPU of the box" in said


def test_stdin_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(STATION.encode())))
    done = run(capsys, "import", "-", "-o", str(tmp_path / "box.json"))
    assert (done.code, done.err.split()[-1]) == (0, "stdin")


def test_an_existing_file_is_replaced(written: Any, tmp_path: Path) -> None:
    put(tmp_path, "box.json", "old")
    assert written(STATION)[2]["schema"] == "dgxcheck/recording/1"


@pytest.mark.parametrize("command", [("topo",), ("topo", "--rings"), ("topo", "-mp")])
def test_a_matrix_is_shown_as_golden(
    command: tuple[str, ...], written: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    written(STATION)
    monkeypatch.chdir(tmp_path)
    done = run(capsys, *command, "--from", "box.json")
    agrees(f"import-matrix.{'-'.join(command).replace('--', '-')}", f"{done.out}{done.err}exit code {done.code}\n")


@pytest.mark.parametrize("text", [STATION, QUERY, TABLE, LINKS, STATION + QUERY, P2P])
def test_what_was_imported_is_told_in_json(
    text: str, written: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(text)
    for command in (("topo",), ("topo", "--rings"), ("topo", "--tree"), ("topo", "-p2p", "r"), ("health",), ("list",)):
        done = run(capsys, *command, "--format", "json", "--from", str(tmp_path / "box.json"))
        assert done.err == ""
        assert complaints(command[0], json.loads(done.out)) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_garbled_texts_end_in_a_recording_or_a_line(
    data: st.DataObject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = data.draw(st.sampled_from((STATION, QUERY, TABLE, LINKS)))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(text)))
        width = data.draw(st.integers(0, 30))
        text = (
            text[:at]
            + data.draw(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=6))
            + text[at + width :]
        )
    (tmp_path / "t").write_text(text, encoding="utf-8", newline="")
    out = tmp_path / "garbled.json"
    out.unlink(missing_ok=True)
    done = run(capsys, "import", str(tmp_path / "t"), "-o", str(out))
    assert done.code in (0, 3)
    assert "fault of dgxcheck" not in done.err
    if out.exists():
        for command in (("topo",), ("topo", "--format", "json"), ("health", "--format", "json")):
            shown = run(capsys, *command, "--from", str(out))
            assert shown.code in (0, 1, 2, 3)
            assert "fault of dgxcheck" not in shown.err
            assert "\x1b" not in shown.out


def test_what_a_box_has_of_its_own_is_counted(written: Any) -> None:
    """No fact of a text is dropped in silence."""
    _, said, _ = written(QUERY.replace("Example SXM2", "Other"), onto="dgx-1-v100")
    assert "not taken: the box has its own" in said
    assert "Name (" in said
