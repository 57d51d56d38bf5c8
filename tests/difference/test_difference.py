"""Two looks at a machine: what differs, and nothing else; the same seen from both ends."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sample import BY_NAME, FAULTS, SAMPLE
from test_probe_dimms import module

from dgxcheck.assessment.compare import compare as compare_sources
from dgxcheck.assessment.compare import side_of
from dgxcheck.assessment.machine import open_source as open_any
from dgxcheck.cli import main
from dgxcheck.difference.compare import compare
from dgxcheck.difference.measured import DRIFT
from dgxcheck.difference.model import Compared, Difference, Side
from dgxcheck.facts.missing import Json
from dgxcheck.facts.nvml.gpu import Nvml
from dgxcheck.facts.record import replace
from dgxcheck.facts.sysfs import SMBIOS
from dgxcheck.source.recording.keys import to_rows
from dgxcheck.source.recording.load import open_source

BOOT = "text /proc/sys/kernel/random/boot_id"
GPU1 = "0000:07:00.0"
VOLATILE = f"nvml nvmlDeviceGetTotalEccErrors {GPU1} 1 0"
REPLAYS = f"nvml nvmlDeviceGetPcieReplayCounter {GPU1}"
names = st.sampled_from(sorted(BY_NAME))
either = names if settings.get_current_profile_name() == "long" else st.sampled_from(SAMPLE)
"""Side of a pair: of all that ships in ``make test-all``."""
MATRIX = "     GPU0 GPU1 mlx5_0 CPU Affinity\nGPU0  X   NV1  PHB   0-19\nGPU1 NV1   X   PHB   0-19\nmlx5_0 PHB PHB  X\n"


@cache
def side(name: str) -> Side:
    return side_of(open_source(name))


def between(old: str, new: str) -> list[Difference]:
    return [*compare(side(old), side(new)).differences]


@pytest.fixture
def changed(tmp_path: Path) -> object:
    """Makes a side of a box with some facts changed."""

    def make(base: str = "dgx-1-p100", drop: tuple[str, ...] = (), add: dict[str, Json] | None = None, /,
             **facts: Json) -> Side:  # fmt: skip
        path = tmp_path / f"{len([*tmp_path.iterdir()])}.json"
        document = {"schema": "dgxcheck/overlay/1", "base": base, "fault": "made up", "sources": ["made up"],
                    "expect": {"findings": [], "component": "none", "skips": []}, "facts": facts,
                    "drop": [*drop], "add": add or {}}  # fmt: skip
        path.write_text(json.dumps(document))
        return side_of(open_source(str(path)))

    return make


@pytest.mark.in_ci
@given(names)
def test_a_box_is_what_it_is(name: str) -> None:
    assert compare(side(name), side(name)) == Compared(differences=(), notes=())


@pytest.mark.in_ci
@given(either, either)
@example("dgx-2", "k80-x8").via("an HCA where the other box has a GPU")
@example("dgx-1-p100", "dgx-b200").via("an HCA where the other box has a bridge to NVSwitches")
def test_any_two_boxes_can_be_compared_and_both_ways_tell_the_same(old: str, new: str) -> None:
    forth, back = between(old, new), between(new, old)
    changes = {(each.area, each.what, str(each.old), str(each.new)) for each in forth}
    assert changes == {(each.area, each.what, str(each.new), str(each.old)) for each in back}
    turned = {"worse": "better", "better": "worse", "neutral": "neutral"}
    kinds = sorted(turned[each.kind] for each in forth if each.area != "counter")
    assert kinds == sorted(each.kind for each in back if each.area != "counter")


@given(either, either)
def test_the_worst_stand_first(old: str, new: str) -> None:
    kinds = [each.kind for each in between(old, new)]
    assert kinds == sorted(kinds, key=("worse", "better", "neutral").index)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("dgx-1-v100-gpu-missing", ("hardware", "gone", "GPU3", "0000:0b:00.0", None)),
        ("dgx-1-v100-hca-missing", ("hardware", "gone", "mlx5_1", "0000:0c:00.0", None)),
        ("dgx-1-v100-switch-x8", ("link", "changed", "0000:08:00.0", 16, 8)),
        ("dgx-1-v100-gpu-x8", ("link", "changed", "GPU2", 16, 8)),
        ("dgx-1-v100-slot-gen2", ("link", "changed", "GPU2", 3, 2)),
        ("dgx-1-v100-nvlink-down", ("nvlink", "changed", "GPU2 - GPU3", 2, 1)),
        ("dgx-1-v100-gpu-lost", ("hardware", "changed", "GPU2", True, False)),
        ("dgx-1-v100-dimm-missing", ("host", "changed", "host", 526133493, 493250150)),
        ("dgx-1-v100-disk-missing", ("hardware", "gone", "sdb", "sdb", None)),
        ("dgx-1-v100-port-down", ("network", "changed", "mlx5_1/1", 4, 1)),
        ("dgx-a100-nvlink-down", ("nvlink", "changed", "GPU0 - NVSwitch", 12, 11)),
    ],
)
def test_a_fault_is_the_one_thing_that_is_worse(fault: str, told: tuple[object, ...]) -> None:
    base = str(json.loads(Path(FAULTS[fault]).read_text())["base"])
    worse = [each for each in between(base, fault) if each.kind == "worse"]
    assert [(each.area, each.change, each.device, each.old, each.new) for each in worse] == [told]


def test_a_moved_adapter_is_known_by_its_guid() -> None:
    (moved,) = (each for each in between("dgx-1-v100", "dgx-1-v100-hca-wrong-slot") if each.change == "moved")
    assert (moved.kind, moved.device, moved.old, moved.new) == ("neutral", "mlx5_1", "0000:0c:00.0", "0000:81:00.0")
    assert {(each.change, each.what) for each in between("k80-x8", "k80-x8-board-moved")} == {("moved", "path")}


def test_without_a_common_key_devices_are_known_by_place() -> None:
    old, new = side("dgx-1-v100"), side("dgx-1-v100-hca-wrong-slot")
    foreign = replace(new, namespace="0123456789abcdef", pseudonym=lambda identity: identity[::-1] + "x")
    said = compare(old, foreign)
    assert [note for note in said.notes if "identities not comparable" in note]
    assert {each.change for each in said.differences if each.device == "mlx5_1"} >= {"gone", "new"}
    assert not [each for each in said.differences if each.change in ("moved", "replaced")]


def test_another_board_in_the_same_place_is_replaced(changed: object) -> None:
    assert callable(changed)
    uuid = f"nvml nvmlDeviceGetUUID {GPU1}"
    new = changed(**{uuid: "GPU-11111111-2222-3333-4444-555555555555", VOLATILE: 7})
    (told,) = compare(side("dgx-1-p100"), new).differences
    assert (told.kind, told.change, told.device, told.bdf) == ("neutral", "replaced", "GPU1", GPU1)


def test_a_board_that_was_replaced_has_no_history_of_errors(changed: object) -> None:
    assert callable(changed)
    aer = f"text /sys/bus/pci/devices/{GPU1}/aer_dev_fatal"
    facts = {aer: "DLP 3\nTOTAL_ERR_FATAL 3\n"}
    (grown,) = compare(side("dgx-1-p100"), changed(**facts)).differences
    assert (grown.what, grown.kind) == ("fatal-pcie-errors", "worse")
    other = {f"nvml nvmlDeviceGetUUID {GPU1}": "GPU-11111111-2222-3333-4444-555555555555"}
    (told,) = compare(side("dgx-1-p100"), changed(**facts, **other)).differences
    assert told.change == "replaced"


def test_a_side_without_uuids_is_compared_by_serial_number(changed: object) -> None:
    assert callable(changed)
    new = changed(**{f"nvml nvmlDeviceGetUUID {GPU1}": {"missing": "unsupported"}})
    assert compare(side("dgx-1-p100"), new).differences == ()


@pytest.mark.parametrize("gap", ["unrecorded", "denied"])
def test_hcas_that_nobody_could_look_for_are_not_gone(gap: str, changed: object) -> None:
    assert callable(changed)
    key = "names /sys/class/infiniband"
    blind = changed(**{key: {"missing": gap}})
    for old, new in ((side("dgx-1-p100"), blind), (blind, side("dgx-1-p100"))):
        said = compare(old, new)
        assert said.differences == ()
        assert [note for note in said.notes if "HCAs" in note]
    without = changed(**{key: {"missing": "absent"}})
    assert {each.change for each in compare(side("dgx-1-p100"), without).differences} == {"gone"}
    inside = changed(**{key: {"missing": "absent"}, "text /.dockerenv": ""})
    assert compare(side("dgx-1-p100"), inside).differences == ()


def test_virtual_functions_come_and_go_as_a_site_needs_them(changed: object) -> None:
    assert callable(changed)
    hca = "0000:0c:00.0"
    old = changed(**{f"link /sys/bus/pci/devices/{hca}/physfn": "../0000:0c:00.1"})
    new = changed("dgx-1-p100", (hca, "/sys/class/infiniband/mlx5_1"))
    for before, after, change in ((old, new, "gone"), (new, old, "new")):
        (said,) = (each for each in compare(before, after).differences if each.what == "device")
        assert (said.kind, said.change, said.bdf) == ("neutral", change, hca)


def test_what_nvidia_smi_printed_has_no_bus_ids(tmp_path: Path) -> None:
    """A matrix tells which GPUs there are by number alone: none is gone, none is new, none has moved."""
    text = tmp_path / "topo.txt"
    text.write_text(MATRIX, encoding="utf-8")
    assert main(["import", str(text), "-o", str(tmp_path / "box.json")]) == 0
    matrix = side_of(open_source(str(tmp_path / "box.json")))
    assert [device.name for device in matrix.topology.gpus] == ["GPU0", "GPU1"]
    for old, new in ((side("dgx-1-v100"), matrix), (matrix, side("dgx-1-v100"))):
        assert not [each for each in compare(old, new).differences if each.area == "hardware"]


LISTED = "GPU 0: Tesla P100-SXM2-16GB (UUID: {})\n"


@pytest.mark.parametrize("end", ["{log}Attached GPUs : 8\n{gpu}", "{listed}Unable to determine the device handle for "
                                 "gpu 0000:07:00.0: Unknown Error\n"])  # fmt: skip
def test_gpus_that_a_text_does_not_reach_are_not_gone(end: str, tmp_path: Path) -> None:
    """It was cut off, or nvidia-smi gave up; a GPU without a bus id there has not moved."""
    known = side("dgx-1-p100")
    uuid = next(each.uuid for each in known.snapshot.listed_gpus if each.bdf == "0000:06:00.0")
    text, gpu = tmp_path / "smi.txt", f"GPU 00000000:06:00.0\n    Product Name : Tesla P100\n    GPU UUID : {uuid}\n"
    text.write_text(end.format(log="==============NVSMI LOG==============\n", gpu=gpu, listed=LISTED.format(uuid)))
    some = side_of(open_any(str(text)))
    for old, new in ((known, some), (some, known)):
        found = compare(old, new)
        assert not [each for each in found.differences if each.change in ("gone", "new", "moved")]
        assert any(note.startswith("not compared: GPUs that ") for note in found.notes)


def test_two_gpus_that_changed_places_are_moved(changed: object) -> None:
    assert callable(changed)
    a, b = "nvml nvmlDeviceGetUUID 0000:06:00.0", f"nvml nvmlDeviceGetUUID {GPU1}"
    nvml = side("dgx-1-p100").snapshot.gpu
    assert isinstance(nvml, Nvml)
    facts = {gpu.bdf: gpu.uuid for gpu in nvml.gpus}
    told = compare(side("dgx-1-p100"), changed(**{a: facts[GPU1], b: facts["0000:06:00.0"]})).differences
    assert {(each.change, each.old, each.new) for each in told} == {
        ("moved", "0000:06:00.0", GPU1), ("moved", GPU1, "0000:06:00.0"),
    }  # fmt: skip


def test_of_other_bus_numbers_only_the_moves_are_listed(tmp_path: Path) -> None:
    """As after a card was added: all functions behind it are one bus further."""
    path, recorded = tmp_path / "shifted.json", Path(BY_NAME["dgx-1-v100"]).read_text()
    path.write_text(re.sub("(?<=0000:)0[1-9a-eA-E](?=:)", lambda match: f"{int(match[0], 16) + 1:02x}", recorded))
    told = compare(side("dgx-1-v100"), side(str(path))).differences
    assert {(each.change, each.kind) for each in told} == {("moved", "neutral")}
    assert len(told) == 10


def test_a_renamed_interface_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "renamed.json"
    path.write_text(Path(BY_NAME["dgx-1-v100"]).read_text().replace("enp2s0f0", "eno1"))
    (told,) = compare(side("dgx-1-v100"), side(str(path))).differences
    assert (told.kind, told.what, told.device, told.message) == ("neutral", "name", "eno1", "was enp2s0f0")


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"nvml nvmlDeviceGetHandleByIndex 0": GPU1, "nvml nvmlDeviceGetHandleByIndex 1": "0000:06:00.0"},
         [("name", "GPU0", "was GPU1"), ("name", "GPU1", "was GPU0")]),
        ({"text /sys/class/block/sda/device/model": "OTHER"},
         [("disk", "sda", "disk MegaRAID VD 480 GB replaced by OTHER 480 GB")]),
        ({"text /sys/bus/pci/devices/0000:01:00.0/device": "0x005f\n"},
         [("pci-function", "0000:01:00.0", "storage controller replaced by 1000:005f")]),
        ({"text /sys/class/net/enp2s0f0/address": "02:00:00:00:09:09\n"},
         [("mac-address", "enp2s0f0", "MAC address: 02:00:00:00:01:01 -> 02:00:00:00:09:09")]),
        ({"text /sys/class/net/enp2s0f0/address": "02:00:00:00:01:02\n",
          "text /sys/class/net/enp2s0f1/address": "02:00:00:00:01:01\n"}, []),
    ],
)  # fmt: skip
def test_what_was_replaced_or_renamed_is_neutral(
    changed: object, facts: dict[str, Json], told: list[tuple[str, str, str]]
) -> None:
    assert callable(changed)
    found = compare(side("dgx-1-p100"), changed(**facts)).differences
    assert [(each.what, each.device, each.message) for each in found] == told
    assert {each.kind for each in found} <= {"neutral"}


def test_memory_is_known_by_slot_and_serial_number(changed: object) -> None:
    assert callable(changed)

    def table(*slots: str, serial: str = "12AB34CD") -> Side:
        made = b"".join((module("DIMM 30", serial), *(module(slot, "Not Specified", 65536) for slot in slots)))
        found: Side = changed(**{f"data {SMBIOS}": to_rows(made)})
        return found

    def numbered(**slots: str) -> Side:
        made = b"".join(module(slot, serial) for slot, serial in slots.items())
        found: Side = changed(**{f"data {SMBIOS}": to_rows(made)})
        return found

    two = numbered(A1="12AB34CD", B1="8CE00001")
    for later in (numbered(A1="8CE00001", B1="12AB34CD"), numbered(P0A="12AB34CD", P0B="8CE00001")):
        assert {(each.kind, each.change) for each in compare(two, later).differences} == {("neutral", "moved")}
    gone, moved = compare(two, numbered(C1="8CE00001")).differences
    assert (gone.change, gone.device, moved.message[-19:]) == ("gone", "A1", "moved from B1 to C1")
    whole = table("DIMM 31", "DIMM 32")
    (missing,) = compare(whole, table("DIMM 31")).differences
    assert (missing.kind, missing.change, missing.device) == ("worse", "gone", "DIMM 32")
    assert missing.message == "DIMM missing: 64 GiB Samsung M393A4K40"
    (other,) = compare(whole, table("DIMM 31", "DIMM 32", serial="8CE00001")).differences
    assert (other.kind, other.change, other.device) == ("neutral", "replaced", "DIMM 30")


def test_counters_grow(changed: object) -> None:
    assert callable(changed)
    old, new = changed(**{REPLAYS: 3, VOLATILE: 1}), changed(**{REPLAYS: 10, VOLATILE: 2})
    told = {each.what: each for each in compare(old, new).differences}
    assert {what: (each.kind, each.change) for what, each in told.items()} == {
        "pcie-replays": ("neutral", "grown"), "volatile-uncorrected-ecc-errors": ("worse", "grown"),
    }  # fmt: skip
    assert told["pcie-replays"].message.endswith("3 -> 10 (7 since OLD)")


def test_a_counter_that_fell_was_reset(changed: object) -> None:
    assert callable(changed)
    (told,) = compare(changed(**{VOLATILE: 5}), changed(**{VOLATILE: 2})).differences
    assert (told.kind, told.change, told.old, told.new) == ("neutral", "reset", 5, 2)


def test_after_a_reboot_counters_begin_anew(changed: object) -> None:
    assert callable(changed)
    other = "11111111-2222-3333-4444-555555555555\n"
    (told,) = compare(changed(**{VOLATILE: 5}), changed(**{VOLATILE: 5, BOOT: other})).differences
    assert (told.kind, told.change) == ("worse", "grown")
    assert "5 since the reboot" in told.message


def figure(value: float, samples: list[float]) -> Json:
    return {"value": value, "unit": "GB/s", "samples": [*samples], "method": "ce", "tool": "dgxcheck 0.1.0",
            "how": "measured"}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ((18.0, [17.9, 18.1]), (9.0, [8.9, 9.1]), ["worse"]),
        ((9.0, [8.9, 9.1]), (18.0, [17.9, 18.1]), ["better"]),
        ((18.0, [17.9, 18.1]), (18.0 * (1 - DRIFT) + 0.1, [16.2]), []),
        ((18.0, [8.0, 18.0, 19.0]), (9.0, [8.9, 9.1]), []),
        ((20.0, [20.0]), (20.0 * (1 - DRIFT), [18.0]), []),
        ((18.0, [17.0, 18.1]), (9.0, [9.0, 17.0]), []),
        ((9.0, [9.0, 17.0]), (18.0, [17.0, 18.1]), []),
    ],
)
def test_bandwidth_drifts_beyond_its_spread(
    changed: object, old: tuple[float, list[float]], new: tuple[float, list[float]], kinds: list[str]
) -> None:
    assert callable(changed)
    key = f"measure p2p 0000:06:00.0 {GPU1}"
    told = compare(*(changed("dgx-1-p100", (), {key: figure(*each)}) for each in (old, new))).differences
    assert [each.kind for each in told] == kinds
    assert all(each.what == "p2p" and each.device == "GPU0 -> GPU1" for each in told)


def test_figures_by_number_are_those_of_the_gpus(changed: object) -> None:
    """Imported figures know GPUs by number, measured ones by bus id."""
    assert callable(changed)
    by_number = changed("dgx-1-p100", (), {"measure p2p 0 1": figure(18.0, [18.0])})
    by_place = changed("dgx-1-p100", (), {f"measure p2p 0000:06:00.0 {GPU1}": figure(9.0, [9.0])})
    for old, new, kind in ((by_number, by_place, "worse"), (by_place, by_number, "better")):
        assert [(each.kind, each.device) for each in compare(old, new).differences] == [(kind, "GPU0 -> GPU1")]


FAILED: Json = {"failed": "integrity", "detail": "3 wrong words"}
SKIPPED: Json = {"skipped": "not-supported", "detail": "waived"}


@pytest.mark.parametrize(("old", "new", "expected"), [
    (figure(18.0, [18.0]), FAILED, [("worse", "p2p", None)]), (FAILED, figure(18.0, [18.0]), [("better", "p2p", 18.0)]),
    (FAILED, FAILED, []), (figure(18.0, [18.0]), SKIPPED, []), (SKIPPED, figure(18.0, [18.0]), []),
])  # fmt: skip
def test_a_pair_that_fails_now_is_worse(changed: object, old: Json, new: Json, expected: list[object]) -> None:
    assert callable(changed)
    key = f"measure p2p 0000:06:00.0 {GPU1}"
    told = compare(changed("dgx-1-p100", (), {key: old}), changed("dgx-1-p100", (), {key: new}))
    assert [(each.kind, each.what, each.new) for each in told.differences] == expected


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({f"nvml nvmlDeviceGetComputeMode {GPU1}": 3}, ("neutral", "compute-mode", "default -> exclusive process")),
        ({f"nvml nvmlDeviceGetPowerManagementLimit {GPU1}": 150000}, ("neutral", "power-limit", " -> 150 W")),
        ({"nvml nvmlSystemGetCudaDriverVersion": 12080}, ("neutral", "cuda-version", " -> 12.8")),
        ({"text /sys/module/nvidia_uvm/initstate": "going\n"}, ("worse", "module-state", "live -> going")),
        ({"text /proc/sys/kernel/numa_balancing": "2\n"}, ("neutral", "numa-balancing", " -> 2")),
        ({"text /sys/class/infiniband/mlx5_0/ports/1/counters/link_downed": "9\n"},
         ("worse", "link-downed", "0 -> 9 (9 since OLD)")),
        ({"text /sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data": "999999999999\n"}, None),
    ],
)  # fmt: skip
def test_each_fact_is_compared_by_its_row(
    changed: object, facts: dict[str, Json], told: tuple[str, str, str] | None
) -> None:
    assert callable(changed)
    found = compare(side("dgx-1-p100"), changed(**facts)).differences
    if told is None:
        assert found == ()
    else:
        (each,) = (each for each in found if each.what == told[1])
        assert each.kind == told[0]
        assert each.message.endswith(told[2])


def test_memory_of_two_texts_is_compared(tmp_path: Path) -> None:
    """Where no slot is left out: a text may be cut."""
    slot = "Handle 0x004{0}, DMI type 17, 92 bytes\nMemory Device\n\tSize: {1}\n\tLocator: DIMM_{0}\n\tType: DDR4\n\n"
    texts = []
    sizes = ("old", 2, "64 GB"), ("new", 2, "32 GB"), ("gone", 2, "No Module Installed"), ("cut", 3, "")
    for name, array, size in sizes:
        text = f"Handle 0x003E, DMI type 16, 23 bytes\nPhysical Memory Array\n\tNumber Of Devices: {array}\n\n"
        (tmp_path / name).write_text(text + slot.format(1, "64 GB") + slot.format(2, size or "64 GB"))
        texts.append(str(tmp_path / name))
    found = [[each.message for each in compare_sources(texts[0], other).differences] for other in texts]
    assert found == [[], ["memory: 64 -> 32 GiB"], ["DIMM missing: 64 GiB"], []]
