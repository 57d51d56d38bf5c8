"""Xids between runs: what a run leaves in its state file, what the next one makes of it, and what leaves nothing."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_box import Box, kmsg, shipped, with_gpus
from sample import swept
from seam import run

from dgxcheck.assessment.xid_history import read, remembered
from dgxcheck.cli import main
from dgxcheck.facts.host import Host
from dgxcheck.facts.kernel_log import EarlierXid
from dgxcheck.facts.nvml.gpu import Gpu, Nvml
from dgxcheck.facts.record import replace
from dgxcheck.kernel_messages.forms import earlier as earlier_of
from dgxcheck.source import state_file
from dgxcheck.source.kernel_log.kmsg import earlier
from dgxcheck.source.recording.load import open_source
from dgxcheck.survey import Snapshot, survey
from probes.kernel_log import facts

DATE = "2026-11-21T00:00:00Z"
GPU2 = "0000:0a:00.0"
UUID = "GPU-00000000-0000-0000-0002-000000000a00"
HEALTH = ("health", "--profile", "none", "--format", "json")
XID = "NVRM: Xid (PCI:0000:0a:00): 62, pid=4242, name=alicetool, 0000(0000)"
LOADED = ("nvidia-nvlink: Nvlink Core is being initialized, major device number 234",
          "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.127.05")  # fmt: skip


def seen(**more: Any) -> EarlierXid:
    return EarlierXid(**{"bdf": GPU2, "number": 62, "boot": "b1", "begun_s": 13.0, "date": DATE, **more})


@cache
def recorded_facts() -> Snapshot:
    return survey(open_source("dgx-1-v100"), ("host", "gpu"))


def box_with(*lines: tuple[float, str], boot: str = "b1", where: str = "/dev/kmsg") -> Snapshot:
    """The facts of a recorded box with these lines as its kernel log."""
    found = recorded_facts()
    assert isinstance(found.host, Host)
    log = facts([f"0;{state_file.NAME}", *(f"{seconds};{message}" for seconds, message in lines)], where)
    return replace(found, kernel_log=log, host=replace(found.host, boot_id=boot))


@given(
    st.builds(
        EarlierXid, bdf=st.sampled_from([GPU2, "10000:ff:1f.0"]), number=st.integers(0, 9999),
        boot=st.sampled_from(["b1", "0-f"]), begun_s=st.integers(0, 10**9).map(float),
        text=st.sampled_from(["", "Fatal"]), date=st.sampled_from(["", DATE]), uuid=st.sampled_from(["", UUID]),
    )
)  # fmt: skip
def test_a_line_of_the_state_file_reads_as_it_was_written(xid: EarlierXid) -> None:
    assert earlier_of(earlier(xid)) == xid


@given(st.text())
def test_any_line_is_an_xid_or_none(text: str) -> None:
    for each in (text, f"dgxcheck: earlier: {text}", f"dgxcheck: earlier: boot b1, begun 0: NVRM: Xid {text}",
                 f"dgxcheck: earlier: boot b1, begun {text}: {XID}"):  # fmt: skip
        found = earlier_of(each)
        assert found is None or found.number < 10000


@given(
    st.lists(st.one_of(st.text(), st.text().map(lambda text: f"dgxcheck: earlier: boot b1, at {DATE}, {text}: {XID}")))
)
def test_a_garbled_state_keeps_nothing_from_being_written(lines: list[str]) -> None:
    kept = remembered(lines, box_with((100.0, XID)), DATE)
    assert earlier(seen(begun_s=0.0, uuid=UUID)) in kept
    assert len(kept) <= state_file.MOST_XIDS
    assert remembered(kept, box_with((100.0, XID)), DATE) == kept


def test_it_keeps_who_what_and_when_and_no_process() -> None:
    (line,) = remembered((), box_with((5.0, LOADED[0]), (5.5, LOADED[1]), (100.0, XID), (101.0, XID)), DATE)
    assert earlier_of(line) == seen(begun_s=5.5, uuid=UUID)
    assert "alicetool" not in line


@pytest.mark.parametrize(
    ("line", "due"),
    [
        ("NVRM: Xid (PCI:0000:0a:00): 13, pid=1, name=x, y", []),
        ("NVRM: Xid (PCI:0000:0a:00): 94, x", []),
        ("NVRM: Xid (PCI:0000:0a:00): 149, NETIR Fatal XC0", [(149, "Fatal")]),
        ("NVRM: Xid (PCI:0000:0a:00): 149, NETIR Nonfatal XC0", []),
        ("NVRM: Xid (PCI:0000:0a:00): 79, GPU has fallen off the bus.", [(79, "")]),
        ("NVRM: GPU 0000:0a:00.0: GPU has fallen off the bus.", [(79, "")]),
    ],
)
def test_only_what_can_be_there_again_is_kept(line: str, due: list[tuple[int, str]]) -> None:
    kept = read(remembered((), box_with((100.0, line)), DATE), DATE)
    assert [(each.number, each.text) for each in kept] == due


def test_of_a_saved_log_and_of_a_boot_without_a_name_nothing_is_kept() -> None:
    assert remembered((), box_with((1.0, XID), where="dmesg.txt"), DATE) == ()
    assert remembered((), box_with((1.0, XID), boot="a b"), DATE) == ()
    old = (earlier(seen(date=DATE)),)
    assert remembered(old, box_with((1.0, XID), where="dmesg.txt"), DATE) == old


def test_what_is_long_ago_is_forgotten_and_of_much_the_newest_stays() -> None:
    old = [earlier(seen(boot=f"b{day}", date=f"2026-10-{day:02}T00:00:00Z")) for day in range(10, 32)]
    assert [each.boot for each in read(old, DATE)] == [f"b{day}" for day in range(22, 32)]
    many = [earlier(seen(boot=f"b{n}", date=f"2026-11-20T{n // 60:02}:{n % 60:02}:00Z")) for n in range(900)]
    kept = remembered(many, box_with(), DATE)
    assert len(kept) == state_file.MOST_XIDS
    assert read(kept, DATE)[-1].boot == "b899"


def test_a_lost_gpu_is_who_it_was_in_this_boot() -> None:
    before = remembered((), box_with((100.0, XID)), DATE)
    lost = box_with((100.0, XID), (200.0, "NVRM: GPU 0000:0a:00.0: GPU has fallen off the bus."))
    assert isinstance(lost.gpu, Nvml)
    gone: tuple[Gpu, ...] = tuple(gpu for gpu in lost.gpu.gpus if gpu.bdf != GPU2)
    kept = read(remembered(before, replace(lost, gpu=replace(lost.gpu, gpus=gone)), DATE), DATE)
    assert {(each.number, each.uuid) for each in kept} == {(62, UUID), (79, UUID)}


class Machine:
    """A served box whose boots a test makes."""

    def __init__(
        self, served: Any, standin: Path, folder: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.box: Box = served("dgx-1-v100", 3)
        self.patch, self.capsys = patch, capsys
        self.tree = folder / "tree"
        self.given = self.box.environment(standin, STATE_DIRECTORY=str(folder / "state"))
        self.file = folder / "state" / "counters.json"

    def boot(self, name: str, *lines: tuple[float, str]) -> None:
        """Another boot: another id, and the driver loaded; then what else the log has."""
        log = [(0.0, "Linux version 5.15"), (12.0, LOADED[0]), (13.0, LOADED[1]), *lines]
        (self.box.tree / "dev/kmsg").write_text(kmsg(f"{at:.6f};{said}" for at, said in log), encoding="utf-8")
        (self.box.tree / "proc/sys/kernel/random/boot_id").write_text(f"{name}\n", encoding="utf-8")

    def health(self, *more: str, **faults: str) -> dict[str, Any]:
        """What a run finds of GPU2's cause."""
        with self.patch.context() as patch:
            for name, value in (self.given | faults).items():
                patch.setenv(name, value)
            main([*HEALTH, *more], None, str(self.box.tree))
        printed = self.capsys.readouterr()
        assert printed.err == ""
        document: dict[str, Any] = json.loads(printed.out)
        return next((each for each in document["causes"] if each["component"]["bdf"] == GPU2), {})


@pytest.fixture
def machine(
    served: Any, standin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    made = Machine(served, standin, tmp_path, monkeypatch, capsys)
    before = {name: (made.box.tree / name).read_bytes() for name in ("dev/kmsg", "proc/sys/kernel/random/boot_id")}
    yield made
    for name, content in before.items():
        (made.box.tree / name).write_bytes(content)


BOOTS = [f"0f3c2e{n}0-1111-4222-8333-944445555666" for n in range(3)]


def test_an_xid_that_two_reboots_did_not_cure(machine: Machine) -> None:
    machine.boot(BOOTS[0], (100.0, XID))
    first = machine.health()
    assert (first["recurrence"], first["action"]["action"]) == (None, "reset-gpu")
    written = machine.file.read_bytes()
    assert machine.health()["recurrence"] is None
    assert machine.file.read_bytes() == written
    machine.boot(BOOTS[1], (50.0, XID))
    second = machine.health()
    assert second["recurrence"]["text"].startswith("Xid 62 came back after 1 reboot (last seen at 20")
    assert second["action"]["action"] == "power-cycle"
    machine.boot(BOOTS[2])
    assert machine.health() == {}
    machine.boot(BOOTS[2], (90.0, XID))
    third = machine.health()
    assert third["recurrence"]["text"].startswith("Xid 62 came back after 2 reboots (last seen at 20")
    assert third["action"]["action"] == "field-diagnostic"


def test_a_gpu_that_a_reboot_did_not_bring_back(machine: Machine) -> None:
    fallen = (100.0, "NVRM: Xid (PCI:0000:0a:00): 79, pid=7, name=x, GPU has fallen off the bus.")
    lost = {"NVML_STANDIN_FAULT": "error 15 * 2"}
    machine.boot(BOOTS[0], fallen)
    first = machine.health(**lost)
    assert (first["recurrence"], first["action"]["action"]) == (None, "reboot")
    machine.boot(BOOTS[1], fallen)
    second = machine.health(**lost)
    came_back = "the GPU fell off the bus again after 1 reboot or power cycle (last seen at 20"
    assert second["recurrence"]["text"].startswith(came_back)
    due = ["drain", "power-cycle", "field-diagnostic", "contact-vendor"]
    assert [step["action"] for step in second["actions"]] == due
    machine.boot(BOOTS[2])
    assert machine.health() == {}


def test_what_the_log_has_lost_since_a_reset_is_remembered(machine: Machine) -> None:
    machine.boot(BOOTS[0], (100.0, XID))
    machine.health()
    machine.boot(BOOTS[0], (500.0, LOADED[0]), (501.0, LOADED[1]), (600.0, XID))
    assert machine.health()["recurrence"]["text"].startswith("Xid 62 came back after a reset or driver reload")


@pytest.mark.parametrize("more", [("-q",), ("--window", "0.1"), ("--from", "dgx-1-v100-xid-62")])
def test_what_compares_with_no_earlier_run_leaves_nothing(machine: Machine, more: tuple[str, ...]) -> None:
    machine.boot(BOOTS[0], (100.0, XID))
    machine.box.live(machine.given, *HEALTH, *more)
    assert not machine.file.exists()


def test_a_saved_log_neither_learns_nor_teaches(machine: Machine, tmp_path: Path) -> None:
    machine.boot(BOOTS[0], (100.0, XID))
    machine.health()
    machine.boot(BOOTS[1], (100.0, XID))
    (tmp_path / "dmesg").write_text(f"[  100.000000] {XID}\n", encoding="utf-8")
    assert machine.health("--kernel-log", str(tmp_path / "dmesg"))["recurrence"] is None
    kept = state_file.read(str(machine.file))
    assert kept is not None
    assert kept.boot_id == BOOTS[1]
    assert [BOOTS[0] in line for line in kept.xids] == [True]


def test_a_file_of_its_own_is_read_and_written_alone(machine: Machine, tmp_path: Path) -> None:
    own = str(tmp_path / "own.json")
    machine.boot(BOOTS[0], (100.0, XID))
    assert machine.health("--state", own)["recurrence"] is None
    assert not machine.file.exists()
    machine.boot(BOOTS[1], (100.0, XID))
    assert machine.health()["recurrence"] is None
    assert machine.health("--state", own)["recurrence"]["text"].startswith("Xid 62 came back after 1 reboot")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from([earlier(seen()), "dgxcheck: earlier: "]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_any_json_may_stand_for_the_xids_of_a_state_file(tmp_path_factory: pytest.TempPathFactory, xids: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "any-state.json"
    head = {"schema": "dgxcheck/recording/1", "facts": {}}
    head["state"] = {"boot_id": "b0", "driver": "", "date": DATE, "at_s": 1.0, "xids": xids}
    path.write_text(json.dumps(head), encoding="utf-8")
    kept = state_file.read(str(path))
    assert kept is not None
    good = [each for each in xids if each == earlier(seen())] if isinstance(xids, list) else []
    assert len(read(kept.xids, DATE)) == len(good)
    assert len(remembered(kept.xids, box_with((100.0, XID)), DATE)) == 1 + bool(good)


@pytest.mark.parametrize(
    "xids", swept(["x", [7, None, "", "dgxcheck: earlier: boot b1"], {"a": 1}, [["deep"]]], 4, first=1)
)
def test_a_state_with_garbled_xids_counts_as_one_without(machine: Machine, xids: Any) -> None:
    machine.boot(BOOTS[0])
    machine.health()
    document = json.loads(machine.file.read_text(encoding="utf-8"))
    document["state"]["xids"] = xids
    machine.file.write_text(json.dumps(document), encoding="utf-8")
    machine.boot(BOOTS[1], (100.0, XID))
    assert machine.health()["recurrence"] is None
    kept = state_file.read(str(machine.file))
    assert kept is not None
    assert len(kept.xids) == 1


def test_a_recording_takes_them_along_under_other_names(machine: Machine, tmp_path: Path, capsys: Any) -> None:
    machine.boot(BOOTS[0], (100.0, XID))
    machine.health()
    machine.boot(BOOTS[1], (100.0, XID))
    due = machine.health()["recurrence"]
    path = str(tmp_path / "box.json")
    assert machine.box.live(machine.given, "record", path).code == 0
    text = Path(path).read_text(encoding="utf-8")
    assert "dgxcheck: earlier: boot " in text
    assert [name for name in (*BOOTS, UUID[4:], "alicetool") if name in text] == []
    said = json.loads(run(capsys, *HEALTH, "--from", path).out)
    assert [each["recurrence"] for each in said["causes"]] == [due]


def test_the_served_box_is_the_recorded_one() -> None:
    """The identity that the tests above count on."""
    lines = with_gpus(shipped("dgx-1-v100"), 3)["facts"]
    assert isinstance(lines, dict)
    assert lines[f"nvml nvmlDeviceGetUUID {GPU2}"] == {"": UUID}
