"""An overlay changes the facts of its base, and nothing that is not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from seam import document, is_one_clear_line, run, save

from dgxcheck.facts.missing import BadInput, Gap, Json, Missing
from dgxcheck.source.protocol import Source
from dgxcheck.source.recording.load import OVERLAY, open_source

PCI = "/sys/bus/pci/devices"
GPUS = [f"0000:{bus}:00.0" for bus in ("06", "07", "0a", "0b")]
COUNTERS = "/sys/class/infiniband/mlx5_0/ports/1/counters"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a base of four GPUs."""
    lines: dict[str, dict[str, Json]] = {
        PCI: {"names": ["0000:00:02.0", *GPUS], "link": {bdf: f"../../../devices/pci0000:00/{bdf}" for bdf in GPUS}},
        **{f"{PCI}/{bdf}": {"text": {"vendor": "0x10de\n", "class": "0x030200\n"}} for bdf in GPUS},
        "/sys/class/infiniband": {"names": ["mlx5_0"]},
        COUNTERS: {"names": ["symbol_error"], "text": {"symbol_error": "0\n"}},
        "nvml nvmlInit": {"": True},
        "nvml nvmlDeviceGetCount": {"": 4},
        "nvml nvmlDeviceGetHandleByIndex": dict(enumerate_text(GPUS)),
        **{f"nvml nvmlDeviceGetName {bdf}": {"": "Tesla V100"} for bdf in GPUS},
        f"nvml nvmlDeviceGetTopologyCommonAncestor {GPUS[0]} {GPUS[1]}": {"": 10},
        f"nvml nvmlDeviceGetTopologyCommonAncestor {GPUS[0]} {GPUS[2]}": {"": 20},
    }
    later: dict[str, dict[str, Json]] = {
        COUNTERS: {"text": {"symbol_error": "5\n"}},
        f"nvml nvmlDeviceGetName {GPUS[1]}": {"": "later"},
    }
    save(tmp_path / "base.json", lines, [(60, later)])
    return tmp_path


def enumerate_text(bdfs: list[str]) -> list[tuple[str, Json]]:
    return [(str(index), bdf) for index, bdf in enumerate(bdfs)]


def overlay(folder: Path, name: str = "fault", **members: Json) -> str:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"schema": OVERLAY, "base": "base.json", "fault": "as made here", **members}))
    return str(path)


def refused(path: str) -> str:
    with pytest.raises(BadInput) as error:
        open_source(path)
    assert "\n" not in str(error.value)
    return str(error.value)


def handles(source: Source) -> list[object]:
    count = source.nvml("nvmlDeviceGetCount")
    assert isinstance(count, int)
    return [source.nvml("nvmlDeviceGetHandleByIndex", "", index) for index in range(count + 1)]


def test_facts_are_changed_and_the_rest_stays(folder: Path) -> None:
    gap: Json = {"missing": "lost", "detail": "NVML 15: GPU is lost"}
    source = open_source(
        overlay(
            folder,
            facts={
                f"text {PCI}/{GPUS[0]}/vendor": "0xffff\n",
                f"nvml nvmlDeviceGetName {GPUS[0]}": gap,
                f"nvml nvmlDeviceGetTopologyCommonAncestor {GPUS[0]} {GPUS[2]}": 50,
                "nvml nvmlDeviceGetHandleByIndex 3": gap,
                "names /sys/class/infiniband": [],
            },
        )
    )
    assert source.text(f"{PCI}/{GPUS[0]}/vendor") == "0xffff\n"
    assert source.text(f"{PCI}/{GPUS[0]}/class") == "0x030200\n"
    assert source.text(f"{PCI}/{GPUS[1]}/vendor") == "0x10de\n"
    lost = Missing(Gap.LOST, f"nvmlDeviceGetName {GPUS[0]}", "NVML 15: GPU is lost", 15)
    assert source.nvml("nvmlDeviceGetName", GPUS[0]) == lost
    assert source.nvml("nvmlDeviceGetTopologyCommonAncestor", f"{GPUS[0]} {GPUS[2]}") == 50
    assert source.nvml("nvmlDeviceGetTopologyCommonAncestor", f"{GPUS[0]} {GPUS[1]}") == 10
    assert isinstance(source.nvml("nvmlDeviceGetHandleByIndex", "", 3), Missing)
    assert source.names("/sys/class/infiniband") == ()
    assert source.origin.provenance == "overlay"
    untouched = open_source(str(folder / "base.json"))
    assert untouched.text(f"{PCI}/{GPUS[0]}/vendor") == "0x10de\n"


@pytest.mark.parametrize("key", [f"text {PCI}/{GPUS[0]}/numa_node", "nvml nvmlDeviceGetCount 1", "names /sys", "junk"])
def test_a_key_of_facts_must_be_in_the_base(folder: Path, key: str) -> None:
    said = refused(overlay(folder, facts={key: "1\n"}))
    assert f"{key!r} is not in base.json; new facts belong under 'add'" in said


def test_new_facts_are_added(folder: Path) -> None:
    source = open_source(
        overlay(folder, add={f"text {PCI}/{GPUS[0]}/numa_node": "0\n", "nvml nvmlNew": 3, "text /etc/x": "y"})
    )
    assert source.text(f"{PCI}/{GPUS[0]}/numa_node") == "0\n"
    assert source.text(f"{PCI}/{GPUS[0]}/vendor") == "0x10de\n"
    assert source.nvml("nvmlNew") == 3
    assert source.text("/etc/x") == "y"
    assert "is already in base.json" in refused(overlay(folder, add={f"text {PCI}/{GPUS[0]}/vendor": "1"}))
    assert "not a valid fact key" in refused(overlay(folder, add={"rubbish": 1}))


def test_a_dropped_gpu_is_gone_everywhere_and_nvml_counts_anew(folder: Path) -> None:
    source = open_source(overlay(folder, drop=[GPUS[1]]))
    assert source.names(PCI) == ("0000:00:02.0", GPUS[0], *GPUS[2:])
    assert isinstance(source.link(f"{PCI}/{GPUS[1]}"), Missing)
    assert isinstance(source.text(f"{PCI}/{GPUS[1]}/vendor"), Missing)
    assert handles(source)[:3] == [GPUS[0], GPUS[2], GPUS[3]]
    assert isinstance(handles(source)[3], Missing)
    assert isinstance(source.nvml("nvmlDeviceGetName", GPUS[1]), Missing)
    assert isinstance(source.nvml("nvmlDeviceGetTopologyCommonAncestor", f"{GPUS[0]} {GPUS[1]}"), Missing)
    assert source.nvml("nvmlDeviceGetTopologyCommonAncestor", f"{GPUS[0]} {GPUS[2]}") == 20
    later = source.later(1)
    assert not isinstance(later, Missing)
    assert isinstance(later.nvml("nvmlDeviceGetName", GPUS[1]), Missing)
    assert later.text(f"{COUNTERS}/symbol_error") == "5\n"


def test_the_bridges_above_a_dropped_function_stay(tmp_path: Path) -> None:
    """No recording says where a bridge is that leads to something: what is below it does."""
    source = open_source(overlay(tmp_path, base="dgx-1-v100", drop=["0000:06:00.0"]))
    port = source.link(f"{PCI}/0000:04:10.0")
    assert port == "../../../devices/pci0000:00/0000:00:02.0/0000:03:00.0/0000:04:10.0"


def test_a_path_can_be_dropped(folder: Path) -> None:
    source = open_source(overlay(folder, drop=[f"{COUNTERS}/symbol_error", "mlx5_0"]))
    assert source.names("/sys/class/infiniband") == ()
    assert isinstance(source.text(f"{COUNTERS}/symbol_error"), Missing)
    assert isinstance(source.names(COUNTERS), Missing)


@pytest.mark.parametrize("drop", [["0000:99:00.0"], [3], "0000:06:00.0", [""], {"a": 1}])
def test_what_is_no_subject_cannot_be_dropped(folder: Path, drop: Json) -> None:
    assert "'drop'" in refused(overlay(folder, drop=drop))


def test_later_replaces_that_of_the_base_and_may_hold_what_is_new(folder: Path) -> None:
    moment: Json = {"at_s": 30, "facts": {COUNTERS: {"text": {"symbol_error": "9\n", "link_downed": "1\n"}},
                                         "kmsg": {"0": "NVRM: Xid"}, "/new": {"names": ["a"]}}}  # fmt: skip
    later = open_source(overlay(folder, later=[moment])).later(1)
    assert not isinstance(later, Missing)
    assert later.at_s == 30
    assert later.text(f"{COUNTERS}/symbol_error") == "9\n"
    assert later.text(f"{COUNTERS}/link_downed") == "1\n"
    assert later.names("/new") == ("a",)
    assert later.nvml("nvmlDeviceGetName", GPUS[1]) == "Tesla V100"
    none = open_source(overlay(folder, later=[])).later(1)
    assert isinstance(none, Missing)
    kept = open_source(overlay(folder)).later(1)
    assert not isinstance(kept, Missing)
    assert kept.text(f"{COUNTERS}/symbol_error") == "5\n"


def test_overlays_combine_in_order(folder: Path) -> None:
    overlay(folder, "one", facts={f"text {PCI}/{GPUS[0]}/vendor": "1\n"}, add={"text /etc/x": "one"})
    overlay(folder, "two", base="one.json", facts={"text /etc/x": "two"}, drop=[GPUS[3]])
    source = open_source(overlay(folder, "three", base="two.json", drop=[GPUS[0]]))
    assert source.text("/etc/x") == "two"
    assert handles(source)[:2] == GPUS[1:3]
    assert source.names(PCI) == ("0000:00:02.0", *GPUS[1:3])


def test_a_shipped_box_can_be_the_base(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = overlay(tmp_path, base="dgx-1-v100", drop=["0000:06:00.0"])
    run_ = run(capsys, "list", "--from", path)
    assert run_.code == 0
    assert "0000:06:00.0" not in run_.out
    assert [line.split()[:2] for line in run_.out.splitlines()[1:3]] == [["0", "0000:07:00.0"], ["1", "0000:0a:00.0"]]
    again = tmp_path / "again.json"
    assert run(capsys, "record", str(again), "--from", path).code == 0
    assert document(again)["provenance"] == {"kind": "overlay"}


def test_a_circle_of_overlays_is_refused(folder: Path) -> None:
    overlay(folder, "a", base="b.json")
    overlay(folder, "b", base="a.json")
    for path in (folder / "a.json", Path(overlay(folder, "self", base="self.json"))):
        assert "overlays based on each other" in refused(str(path))


@pytest.mark.parametrize(
    ("members", "due"),
    [
        ({"base": None}, "without a base recording"),
        ({"base": 3}, "without a base recording"),
        ({"base": "nothing.json"}, "no such recording"),
        ({"base": "dgx-1-v10"}, "did you mean dgx-1-v100"),
        ({"base": "a\0b"}, "no such recording"),
        ({"base": "."}, "not the plain name"),
        ({"base": "../dgx-1-v100"}, "not the plain name"),
        ({"base": "/etc/passwd"}, "not the plain name"),
        ({"facts": []}, "'facts' is not an object"),
        ({"add": 3}, "'add' is not an object"),
        ({"later": 3}, "'later' is not a list"),
    ],
)
def test_a_bad_overlay_is_one_line_and_exit_code_3(
    folder: Path, capsys: pytest.CaptureFixture[str], members: dict[str, Json], due: str
) -> None:
    done = run(capsys, "topo", "--from", overlay(folder, "fault", **members))
    assert (done.code, done.out) == (3, "")
    assert due in done.err
    assert is_one_clear_line(done.err)


def test_a_hostile_base_does_not_break_the_renumbering(folder: Path) -> None:
    lines: dict[str, dict[str, Json]] = {
        "nvml nvmlDeviceGetHandleByIndex": {"x": GPUS[0], "1": [], "0": {"missing": "lost"}, "10": GPUS[1]},
        PCI: {"names": [3, GPUS[0]], "link": [GPUS[0]]},
    }
    save(folder / "odd.json", lines)
    source = open_source(overlay(folder, base="odd.json", drop=[GPUS[0]]))
    assert source.nvml("nvmlDeviceGetCount") == 3
    assert GPUS[1] in handles(source)
