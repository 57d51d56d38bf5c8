"""Pictures of the wiring: nothing overlaps, everything is there, marks are seen."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from golden_text import agrees
from hypothesis import given
from hypothesis import strategies as st
from picture_rules import SOLID, faults
from sample import swept
from smi_texts import STATION
from topology_boxes import Box, gpu_at, ib, nic_at, nodes, nvml, tree

from dgxcheck.assessment import Request, assess
from dgxcheck.assessment.machine import Machine, examine
from dgxcheck.cli import main
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.output.health import page
from dgxcheck.output.health.cause_marks import cause_marks
from dgxcheck.output.picture import dot, layout
from dgxcheck.output.picture.marks import HOST, NVSWITCHES, At, Mark, between, ghost, link, node, of_host, pair
from dgxcheck.output.picture.marks import box as at_box
from dgxcheck.output.picture.shapes import Picture
from dgxcheck.output.topo.picture import wiring_marks
from dgxcheck.source.recording.load import shipped
from dgxcheck.topology.model import Topology

FAULTS = [name for name, path in shipped() if "faults" in Path(path).parts]
BOXES = [name for name, _ in shipped() if name not in FAULTS]
SOME = ("dgx-1-v100-nvlink-down", "dgx-1-v100-switch-x8", "dgx-1-v100-gpu-missing", "dgx-1-v100-numa-lost",
        "dgx-2-nvswitch-missing", "dgx-a100-nvlink-unsupported", "dgx-a100-nps1", "k80-x8-driver-hangs")  # fmt: skip
NO_NVLINK = Missing(Gap.UNSUPPORTED, "nvlink")


def picture_of(machine: Machine, marks: tuple[Mark, ...] = (), nvme: bool = False) -> Picture:
    marks = marks or tuple(wiring_marks(machine.topology))
    return layout.drawn(machine.topology, machine.snapshot.numa, "a box", marks, machine.topology.notes, nvme)


def devices_in(picture: Picture) -> list[str]:
    return sorted(box.lines[0].text for box in picture.boxes if box.kind in ("gpu", "nic"))


def mark_at(*at: At) -> Mark:
    return Mark(number=7, tone="fail", sign="FAIL", tag="memory", words="something is wrong here", at=at)


def tones(picture: Picture) -> list[str | None]:
    return [
        *(box.tone for box in picture.boxes),
        *(line.tone for line in picture.lines),
        *(a.tone for a in picture.arcs),
    ]


@pytest.mark.parametrize("name", [*BOXES, *SOME])
@pytest.mark.parametrize("nvme", swept([False, True], 4))
def test_nothing_overlaps_or_leaves_the_picture(name: str, nvme: bool) -> None:
    assert faults(picture_of(examine(name), nvme=nvme)) == []


@pytest.mark.parametrize("name", swept(BOXES, 3))
def test_a_tall_picture_fits_a_telephone_and_tells_nvlinks_in_words(name: str) -> None:
    machine = examine(name)
    picture = layout.drawn(machine.topology, machine.snapshot.numa, "a box", notes=machine.topology.notes,
                           widest=layout.TALL)  # fmt: skip
    assert faults(picture) == []
    assert devices_in(picture) == sorted(device.name for device in machine.topology.devices)
    assert picture.width <= 2 * layout.TALL
    assert not picture.arcs
    told = " ".join(line.text for box in picture.boxes if box.kind == "caption" for line in box.lines)
    assert (" NV" in told) == bool(picture_of(machine).arcs or "NVSwitches" in picture.description)


def test_a_tall_picture_says_which_nvlinks_a_cause_is_about() -> None:
    picture = page.picture_of(assess("dgx-1-v100-nvlink-down"), widest=layout.TALL)
    told = [line.text for box in picture.boxes if box.kind == "caption" for line in box.lines]
    assert sum("to GPU3 (FAIL 1)" in line or "to GPU2 (FAIL 1)" in line for line in told) == 2


@pytest.mark.parametrize(
    ("fault", "above", "kind", "number"),
    [("dgx-1-v100-gpu-missing", "PCIe switch", "gpu", 1), ("dgx-1-v100-hca-missing", "PCIe switch", "nic", 1),
     ("k80-x8-board-missing", "PCIe switch", "gpu", 2),
     ("dgx-station-v100-gpu-missing", "PCIe switch", "gpu", 1), ("pcie-x8-gpu-unplugged", "PCIe switch", "gpu", 1)],
)  # fmt: skip
def test_what_is_missing_is_a_ghost_at_its_place_and_its_neighbours_stay_plain(
    fault: str, above: str, kind: str, number: int
) -> None:
    picture = page.picture_of(assess(fault, Request(profile="k80-x8" if fault.startswith("k80") else "auto")))
    assert faults(picture) == []
    ghosts = [box for box in picture.boxes if box.gone]
    assert [(box.kind, box.lines[-1].text) for box in ghosts] == [(kind, "1: missing")] * number
    marked = [box for box in picture.boxes if box.tone and box.kind != "caption"]
    assert marked == ghosts
    names = {box.key: box.lines[0].text for box in picture.boxes if box.key}
    assert {names[line.ends[0]] for line in picture.lines if line.ends[1] in {box.key for box in ghosts}} == {above}


def test_a_missing_switch_is_a_ghost_below_the_host_bridge_of_its_socket() -> None:
    picture = page.picture_of(assess("pcie-x8-switch-missing"))
    assert [(box.kind, box.lines[0].text, box.key) for box in picture.boxes if box.gone] == [
        ("switch", "1: PCIe switch", "pci0000:80 PCIe switch 1")
    ]


@pytest.mark.parametrize("name", ["k80-x8-dimm-flood", "dgx-a100-off-bus-and-governor"])
def test_a_cause_of_the_host_alone_stands_at_the_title_in_every_format(name: str) -> None:
    assessment = assess(name)
    told = of_host(marks := cause_marks(assessment))
    assert told in ("host: 1 memory", "host: 2 CPU frequency governor")
    title = page.picture_of(assessment).boxes[0]
    assert [line.text for line in title.lines if line.tone == "warn"] == [told]
    assert told in dot.render(assessment.topology, nodes(2), "t", marks)


@pytest.mark.parametrize("name", ["dgx-1-p100", "dgx-1-v100"])
def test_nvlinks_of_a_cube_mesh_between_sockets_are_straight_and_the_others_leave_them_alone(name: str) -> None:
    picture = picture_of(examine(name))
    top, bottom = sorted({arc.start[1] for arc in picture.arcs} | {arc.end[1] for arc in picture.arcs})
    between = [arc for arc in picture.arcs if arc.start[1] != arc.end[1]]
    assert {arc.start[0] - arc.end[0] for arc in between} == {0}
    middle = (top + bottom) / 2
    own = [arc for arc in picture.arcs if arc not in between]
    assert own
    assert all((arc.at(0.5)[1] < middle) == (arc.start[1] < middle) for arc in own)


def test_a_ghost_is_dashed_in_dot_too() -> None:
    topology = examine("dgx-1-v100").topology
    assert "dashed" not in dot.render(topology, nodes(2), "t")
    assert "dashed" in dot.render(topology, nodes(2), "t", [mark_at(ghost("0000:08:00.0", "GPU", 1))])


def test_a_gpu_that_nvml_does_not_list_is_dashed() -> None:
    picture = picture_of(examine("dgx-1-v100-switch-dead"))
    assert [box.key for box in picture.boxes if box.gone] == ["0000:0a:00.0", "0000:0b:00.0"]


def test_the_line_between_nodes_belongs_to_the_way_and_to_a_cause_of_both() -> None:
    machine = examine("dgx-1-v100")
    way = mark_at(at_box("pci0000:00"), at_box("pci0000:80"))
    one = mark_at(at_box("pci0000:00"), node(0))
    assert [
        [line.tone for line in picture_of(machine, (mark,)).lines if line.kind == "socket"] for mark in (way, one)
    ] == [["fail"], [None]]


@pytest.mark.parametrize(("box", "joined"), [("dgx-1-v100", 1), ("dgx-station-v100", 0), ("dgx-a100", 5)])
def test_lines_lead_from_node_to_node(box: str, joined: int) -> None:
    lines = [line for line in picture_of(examine(box)).lines if line.kind == "socket"]
    assert len(lines) == joined
    assert all(a != b for a, b in (line.ends for line in lines))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FAULTS)
def test_nothing_overlaps_in_any_overlay_and_every_cause_has_a_place(name: str) -> None:
    assert faults(picture_of(examine(name))) == []
    assessment = assess(name)
    marks = cause_marks(assessment)
    texts = [line.text for box in page.picture_of(assessment).boxes if box.kind != "caption" for line in box.lines]
    numbers = {number for text in texts for number in text.partition(":")[0].split(",")}
    assert {str(mark.number) for mark in marks if HOST not in mark.at} <= numbers
    assert not of_host(marks) or any(text.startswith("host: ") for text in texts)


@pytest.mark.parametrize("name", swept(BOXES, 3, first=1))
def test_every_device_is_drawn_once(name: str) -> None:
    machine = examine(name)
    assert devices_in(picture_of(machine)) == sorted(device.name for device in machine.topology.devices)


def test_the_pictures_are_golden_by_structure() -> None:
    told = []
    for name in BOXES:
        picture = picture_of(examine(name))
        told += [name, *_structure(picture), ""]
    agrees("pictures", "\n".join(told))


def _structure(picture: Picture) -> list[str]:
    """Every box with its words, every line with its ends and label, how many arcs."""
    names = {box.key: box.lines[0].text for box in picture.boxes if box.key}
    labels = {line.hint: " ".join(each.text for each in box.lines) for box in picture.boxes if box.kind == "label"
              for line in picture.lines if line.hint == box.hint}  # fmt: skip
    told = [f"  {box.kind}: {' '.join(line.text for line in box.lines)}"
            for box in picture.boxes if box.kind in (*SOLID, "title", "caption")]  # fmt: skip
    told += [f"  {' - '.join(names.get(end, end) for end in line.ends)}: {labels.get(line.hint, '')}"
             for line in picture.lines]  # fmt: skip
    return [*told, f"  arcs: {len(picture.arcs)}", f"  {picture.description}"]


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("dgx-1-v100", at_box("0000:0a:00.0")),
        ("dgx-1-v100", at_box("0000:08:00.0")),
        ("dgx-1-v100", at_box("0000:09:08.0")),
        ("dgx-1-v100", at_box("pci0000:00")),
        ("dgx-1-v100", link("0000:08:00.0")),
        ("dgx-1-v100", pair("0000:0a:00.0", "0000:0b:00.0")),
        ("dgx-1-v100", pair("0000:0a:00.0", "0000:85:00.0")),
        ("dgx-1-v100", node(1)),
        ("dgx-1-v100", between(0, 1)),
        ("dgx-a100", between(3, 7)),
        ("dgx-2", pair("0000:34:00.0", "0000:e7:00.0")),
        ("dgx-2", NVSWITCHES),
        ("dgx-a100", link("0000:08:00.0")),
        ("dgx-a100", at_box("0000:c4:00.0")),
        ("dgx-a100", at_box("0000:05:00.0")),
    ],
)
def test_a_mark_is_seen_where_it_is_and_told_in_words(name: str, at: At) -> None:
    """Also at what is not drawn else: a disk, an NVSwitch on PCI, ports inside of a switch."""
    machine = examine(name)
    picture = picture_of(machine, (mark_at(at),))
    assert faults(picture) == []
    toned = tones(picture)
    captions = [box for box in picture.boxes if box.kind == "caption" and box.tone]
    assert [line.text for box in captions for line in box.lines] == ["FAIL 7: something is wrong here"]
    assert toned.count("fail") > len(captions)
    said = [line.text for box in picture.boxes if box.kind != "caption" for line in box.lines if line.tone == "fail"]
    assert any(text.startswith("7") for text in said), "its number stands in the picture, not its colour alone"
    assert "something is wrong here" in picture.description


def test_links_that_are_down_are_dashed_and_counted() -> None:
    picture = picture_of(examine("dgx-1-v100-nvlink-down"))
    assert [arc.tone for arc in picture.arcs if arc.down] == ["fail"]
    assert len(picture.arcs) == 24
    assert any("1 of 2 NVLinks up" in box.lines[0].text for box in picture.boxes if box.kind == "caption")


@pytest.mark.parametrize("box", swept(BOXES, 3, first=2))
def test_a_healthy_box_has_no_mark(box: str) -> None:
    picture = picture_of(examine(box))
    assert {*tones(picture)} == {None}


def test_a_path_is_drawn_link_by_link(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "--path", "GPU2", "mlx5_0", "--format", "svg", "--from", "dgx-1-v100"]) == 0
    out = capsys.readouterr().out
    assert out.count('class="pcie way"') == 4
    assert "GPU2 - mlx5_0: PHB" in out


def generated(gpus: int, nics: int, roots: int, deep: int, known: bool) -> tuple[Topology, int]:
    """A box of so many GPUs and NICs on each root bus, below so many levels of switches."""
    functions = []
    for root, number in product(range(roots), range(gpus + nics)):
        bus = 0x10 * root
        path = [f"pci0000:{bus:02x}", f"0000:{bus:02x}:{1 + number % 2:02x}.0"]
        for level in range(deep):
            path += [f"000{level + 1}:{bus:02x}:{number % 2:02x}.0", f"001{level}:{bus:02x}:{number:02x}.0"]
        place = gpu_at if number < gpus else nic_at
        end = f"0000:{bus + 1 + number // 32:02x}:{number % 32:02x}.0"
        functions.append(place(*path, end, node=root // 2 if known else Missing(Gap.ABSENT, "numa_node")))
    bdfs = [each.bdf for each in functions if each.class_code == 0x030200]
    hcas = tuple(ib(f"mlx5_{n}", each.bdf) for n, each in enumerate(f for f in functions if f.bdf not in bdfs))
    numa = nodes((roots + 1) // 2)
    return Box(tree(functions), hcas, nvml(bdfs), NO_NVLINK, NO_NVLINK, numa).topology(), roots * (gpus + nics)


SIZES = st.tuples(st.integers(0, 9), st.integers(0, 4), st.integers(1, 6), st.integers(0, 3), st.booleans())


@given(size=SIZES)
def test_boxes_that_nobody_has_seen_are_drawn_as_well(size: tuple[int, int, int, int, bool]) -> None:
    topology, devices = generated(*size)
    picture = layout.drawn(topology, nodes(3), "a box")
    assert faults(picture) == []
    assert len(devices_in(picture)) == devices


def test_an_imported_matrix_is_drawn_by_its_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("matrix.txt").write_text(STATION, encoding="utf-8")
    assert main(["import", "matrix.txt", "-o", "box.json"]) == 0
    machine = examine("box.json")
    picture = picture_of(machine)
    assert faults(picture) == []
    assert devices_in(picture) == sorted(device.name for device in machine.topology.devices)
    assert picture.arcs


def test_two_hcas_of_one_function_are_two_boxes() -> None:
    """Both are named by one bus id, and each has a place of its own."""
    function = nic_at("pci0000:00", "0000:00:01.0", "0000:01:00.0", node=0)
    hcas = (ib("mlx4_0", "0000:01:00.0"), ib("mlx4_1", "0000:01:00.0"))
    topology = Box(tree([function]), hcas, NO_NVLINK, NO_NVLINK, NO_NVLINK, nodes(1)).topology()
    picture = layout.drawn(topology, nodes(1), "a box", [mark_at(at_box("0000:01:00.0"))])
    assert faults(picture) == []
    assert devices_in(picture) == ["mlx4_0", "mlx4_1"]
    keys = [box.key for box in picture.boxes if box.key]
    assert len({*keys}) == len(keys)
    assert [box.tone for box in picture.boxes if box.kind == "nic"] == ["fail", "fail"]


def test_a_machine_without_anything_is_a_picture_too() -> None:
    nothing = Box((), (), NO_NVLINK, NO_NVLINK, NO_NVLINK, nodes(1)).topology()
    picture = layout.drawn(nothing, nodes(1), "nothing")
    assert faults(picture) == []
    assert any("No GPUs and no HCAs" in line.text for box in picture.boxes for line in box.lines)


@pytest.mark.parametrize("argv", [["-mp"], ["--rings"], ["-p2p", "r"], ["--rdma"]])
def test_questions_that_no_picture_answers_are_refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", *argv, "--format", "svg", "--from", "pcie-x4"]) == 3
    assert "--format svg is valid only with -m, --tree, --path" in capsys.readouterr().err


def test_disks_are_drawn_on_request_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "--nvme", "--from", "dgx-a100"]) == 3
    assert "--nvme is valid only with --format svg or dot" in capsys.readouterr().err
    machine = examine("dgx-a100")
    disks = [
        [box.key for box in picture_of(machine, nvme=asked).boxes if box.kind == "other"] for asked in (False, True)
    ]
    assert [len(each) for each in disks] == [0, 6]


@pytest.mark.parametrize(
    ("fault", "lines", "said"),
    [("dgx-1-v100-acs-everywhere", 12, "1: gen3 x16"),
     ("dgx-2-nvswitch-missing", 0, "1: 11 NVSwitches (missing NVSwitch)")],
)
def test_a_cause_of_the_host_is_marked_where_it_shows(fault: str, lines: int, said: str) -> None:
    picture = page.picture_of(assess(fault))
    assert faults(picture) == []
    assert sum(line.tone is not None for line in picture.lines) == lines
    assert said in [line.text for box in picture.boxes for line in box.lines]
