"""What ``--from`` may name, and in which order it is looked for."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from sample import swept
from seam import is_one_clear_line, run, save

from dgxcheck.facts.missing import BadInput, Json
from dgxcheck.source.recording.load import head_of, open_source, shipped
from dgxcheck.source.recording.replay import RecordedSource

BOXES = (
    "dgx-1-p100", "dgx-1-v100", "dgx-2", "dgx-a100", "dgx-station-v100", "k80-x8", "pcie-x4", "pcie-x8",
)  # fmt: skip


@pytest.mark.parametrize("part", swept(range(6), 6))
def test_the_shipped_boxes_are_there_and_open(part: int) -> None:
    found = dict(shipped())
    assert {*BOXES} <= {*found}
    for name, path in [*found.items()][part::6]:
        head = head_of(path)
        assert head["schema"]
        assert "facts" not in head
        source = open_source(name)
        assert isinstance(source, RecordedSource)
        assert source.head == head
        assert (source.origin.kind, source.origin.name) == ("recording", name)
        assert source.origin.provenance in ("recorded", "reconstructed", "overlay")


def test_a_shipped_name_means_the_shipped_box_wherever_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dgx-1-v100/sys").mkdir(parents=True)
    assert open_source("dgx-1-v100").origin.kind == "recording"
    assert open_source("./dgx-1-v100").origin.kind == "directory"


@pytest.mark.parametrize("name", ["../pyproject", "faults/none", ".", "..", "", "dgx-1-v100.json"])
def test_a_name_leads_nowhere_else(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput):
        open_source(name)


def test_a_packed_file_is_read_as_it_is(tmp_path: Path) -> None:
    plain = save(tmp_path / "box.json", {"nvml F": {"": 3}})
    packed = tmp_path / "box.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert open_source(str(packed)).nvml("F") == 3
    assert open_source(str(packed)).origin.recorded_at == "2026-01-01T00:00:00Z"


ODD: tuple[dict[str, Json], ...] = (
    {"provenance": 3}, {"provenance": {"kind": []}}, {"recorded_at": 7}, {"tool_version": []}, {"identities": None}
)  # fmt: skip


@pytest.mark.parametrize("head", ODD)
def test_an_odd_head_is_no_obstacle(head: dict[str, Json], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path / "box.json", {}, head=head)
    for argv in (("topo",), ("topo", "--format", "json"), ("list",), ("record", str(tmp_path / "again.json"))):
        done = run(capsys, *argv, "--from", str(path))
        assert done.code in (0, 3)
        assert "Traceback" not in done.err


def test_nothing_of_outside_is_recorded_from_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every file that a probe may ask leads to a marker outside of the tree."""
    marker = "marker-of-the-outside"
    outside = tmp_path / "outside"
    for directory in ("mlx5_0/ports/1/counters", "0000:06:00.0"):
        (outside / directory).mkdir(parents=True)
        for name in ("vendor", "node_desc", "fw_ver", "symbol_error"):
            (outside / directory / name).write_text(marker)
    (outside / "file").write_text(marker)
    root = tmp_path / "tree"
    for directory in ("sys/class", "sys/bus/pci", "proc/sys/kernel", "etc", "sys/module/nvidia"):
        (root / directory).mkdir(parents=True)
    (root / "sys/class/infiniband").symlink_to(outside)
    (root / "sys/class/net").symlink_to("../../../outside")
    (root / "sys/bus/pci/devices").symlink_to(outside)
    files = ("proc/cmdline", "proc/version", "proc/sys/kernel/hostname", "etc/dgx-release", "sys/module/nvidia/version")
    for name in files:
        (root / name).symlink_to("../" * (name.count("/") + 1) + "outside/file")
    box = tmp_path / "box.json"
    done = run(capsys, "record", str(box), "--from", str(root), "--keep-identity")
    assert done.code == 0
    assert marker not in box.read_text()
    assert box.read_text().count('"missing": "denied"') > 5
    assert marker not in run(capsys, "topo", "--from", str(root)).out


def test_recordings_lists_what_ships(capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "recordings")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == [name for name, _ in shipped()]
    assert is_one_clear_line(run(capsys, "recordings", "surplus").err)
