"""Whole outputs of every shipped recording against golden files, and against what real boxes of the kind print."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from golden_text import FOLDER, UPDATE, agrees
from judging import briefly, printed
from sample import BOXES, FAULTS, FOUND_BY, swept
from smi_texts import STATION

from dgxcheck.cli import main
from dgxcheck.output.json_values import indented

COMMANDS = {
    "topo-m": ["topo", "-m"],
    "topo-mp": ["topo", "-mp"],
    "topo-m-sys": ["topo", "-m", "--labels", "sys"],
    "topo-nvidia-smi": ["topo", "-m", "--format", "nvidia-smi"],
    "topo-json": ["topo", "--format", "json"],
    "topo-tree": ["topo", "--tree"],
    "topo-rings": ["topo", "--rings"],
    "topo-p2p-r": ["topo", "-p2p", "r"],
    "topo-path": ["topo", "--path", "GPU0", "GPU3"],
    "topo-rdma": ["topo", "--rdma"],
    "topo-peers": ["topo", "--peers"],
    "topo-nearest": ["topo", "-n", "3", "-i", "0"],
    "list": ["list"],
    "list-json": ["list", "--format", "json"],
}
CHANGES = (
    "dgx-1-v100-gpu-missing", "dgx-1-v100-switch-x8", "dgx-1-v100-nvlink-down", "dgx-1-v100-hca-wrong-slot",
    "dgx-1-v100-power-cap", "dgx-1-v100-no-nvml", "dgx-1-p100-pages-63", "dgx-1-p100-wrong-model",
    "dgx-a100-md-degraded", "k80-x8-board-moved",
)  # fmt: skip
"""Faults that are compared with their healthy boxes."""


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("box", BOXES)
def test_output_is_golden(box: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([*COMMANDS[command], "--from", box])
    printed = capsys.readouterr()
    out = indented(printed.out) if "json" in command else printed.out  # a line per member, to see what changed
    agrees(f"{box}.{command}", f"{out}{printed.err}exit code {code}\n")


def test_every_finding_is_golden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of all boxes and of an imported matrix in one file, so that a new check changes one."""
    monkeypatch.chdir(tmp_path)
    Path("matrix.txt").write_text(STATION, encoding="utf-8")
    main(["import", "matrix.txt", "-o", "box.json"])
    told = []
    for source in (*BOXES, "box.json"):
        capsys.readouterr()
        code = main(["health", "-v", "--from", source])
        printed = capsys.readouterr()
        told.append(f"{source}\n{printed.out}{printed.err}exit code {code}\n")
    agrees("health-v", "\n".join(told))


@pytest.mark.parametrize("fault", CHANGES)
def test_a_change_is_golden(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["diff", fault[: fault.index("00-") + 2] if "k80" not in fault else "k80-x8", fault])
    agrees(f"{fault}.diff", f"{capsys.readouterr().out}exit code {code}\n")


@pytest.mark.parametrize("fault", swept(FAULTS, FOUND_BY.values(), others=pytest.mark.in_ci))
def test_a_fault_is_golden(fault: str) -> None:
    code, text = printed(fault)
    agrees(f"{fault}.health", f"{text}exit code {code}\n")
    assert UPDATE in os.environ or _figures(fault) in (FOLDER / "figures.txt").read_text(encoding="utf-8")


@pytest.mark.of_all_faults
def test_what_faults_measure_is_golden() -> None:
    """Of all of them in one file: the text of ``health`` does not say it, programs read it."""
    agrees("figures", "".join(map(_figures, FAULTS)))


def _figures(fault: str) -> str:
    rows = [f"  {each['key']}: {each['measured']} of {each['expected']} {each['unit']}\n"
            for each in briefly(fault)["findings"] if each["measured"] is not None]  # fmt: skip
    return f"{fault}\n{''.join(rows)}\n"


def test_the_command_prints_what_is_golden(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["health", "--from", "dgx-1-v100-hot"])
    assert (code, capsys.readouterr().out) == printed("dgx-1-v100-hot")


def test_recordings_is_golden(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recordings"]) == 0
    agrees("recordings", capsys.readouterr().out)


@pytest.mark.parametrize("argv", [["79"], ["63"], ["20034"], ["--list"]], ids=" ".join)
def test_xids_are_golden(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["xid", *argv]) == 0
    agrees(f"xid-{argv[0].strip('-')}", capsys.readouterr().out)


def test_no_golden_file_is_left_over() -> None:
    wanted = {f"{box}.{command}.txt" for box in BOXES for command in COMMANDS} | {
        "health-v.txt",
        "figures.txt",
        "recordings.txt",
        "remedies.txt",
        "measured.tables.txt",
        "pictures.txt",
        "findings.txt",
        "readers.txt",
        "readers-damaged.txt",
        "fleet.txt",
        "fleet-history.txt",
        "fleet-pairs.txt",
        *(f"xid-{name}.txt" for name in ("79", "63", "20034", "list")),
    }
    wanted |= {f"{fault}.health.txt" for fault in FAULTS}
    wanted |= {f"{fault}.diff.txt" for fault in CHANGES}
    assert {path.name for path in FOLDER.glob("*.txt") if not path.name.startswith("import-")} == wanted


@pytest.mark.parametrize("box", BOXES)
def test_matrix_is_symmetric_and_complete(box: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "--format", "json", "--from", box]) == 0
    document = json.loads(capsys.readouterr().out)
    names = [device["name"] for device in document["devices"]]
    assert len(document["links"]) == len(names) * (len(names) - 1) // 2
    assert all(link["label"] != "?" for link in document["links"])


RECORDED = Path(__file__).parents[2] / "shared" / "recordings" / "topo"
A100 = {f"NIC{n}": f"mlx5_{m}" for n, m in enumerate((0, 1, 2, 3, 6, 7, 8, 9, 10, 11))}
REAL = {
    "dgx-1-v100": ("dgx1-v100-ucxpy.txt", {}, True),
    "dgx-1-p100": ("dgx1-p100-sheffield.txt", {}, False),  # taken inside a job: its affinity is the job's
    "k80-x8": ("k80-8x-seed-ivb122.txt", {}, True),
    "dgx-a100": ("dgx-a100-10nic-legend.txt", A100, True),  # that unit lacks the card of mlx5_4 and mlx5_5
}


@pytest.mark.parametrize("box", REAL)
def test_matrix_is_what_such_boxes_print(box: str, capsys: pytest.CaptureFixture[str]) -> None:
    file, renamed, with_affinity = REAL[box]
    if not RECORDED.is_dir():
        pytest.skip("the recordings of other people's machines are not beside this checkout")
    assert main(["topo", "--format", "json", "--from", box]) == 0
    document = json.loads(capsys.readouterr().out)
    ours = {(link["a"], link["b"]): link["label"] for link in document["links"]}
    ours |= {(b, a): label for (a, b), label in ours.items()}
    affinity = {device["name"]: device["cpu_affinity"] for device in document["devices"]}
    rows = _rows((RECORDED / file).read_text(), renamed)
    for row, labels, rest in rows:
        for column, label in labels.items():
            assert row == column or ours[row, column] == label.replace("SYS", "SOC"), (row, column)
        if with_affinity and row.startswith("GPU"):
            assert affinity[row] == rest
    left_out = {"mlx5_4", "mlx5_5"} if renamed else set()
    assert {row for row, _, _ in rows} == set(affinity) - left_out


def _rows(text: str, renamed: dict[str, str]) -> list[tuple[str, dict[str, str], str]]:
    """Row name, label per column name, CPU affinity; columns come in the order of the rows."""
    lines = [line.split() for line in text.splitlines()]
    rows = [words for words in lines if words and words[0].startswith(("GPU", "mlx5_", "NIC")) and "X" in words]
    rows = [words for words in rows if words[0][-1] != ":"]
    names = [renamed.get(words[0], words[0]) for words in rows]
    return [
        (name, dict(zip(names, words[1:], strict=False)), words[len(rows) + 1] if len(words) > len(rows) + 1 else "")
        for name, words in zip(names, rows, strict=True)
    ]
