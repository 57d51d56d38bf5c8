"""What only the last run can tell: values that the state file keeps, and for how long."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import pytest
from read_box import SHIPPED, facts_in
from sample import BY_NAME
from test_health_checks import GPU2, NVML, changed

from dgxcheck.assessment.last_run import Present, counts, last_run, remembered_values
from dgxcheck.assessment.machine import topology_of
from dgxcheck.checks import registry
from dgxcheck.checks.by_nature.last_run import CHECK, CHECKS, _kept_leaves, _words, kept
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import BAD, Finding, Status
from dgxcheck.checks.engine.run import run
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import Storage
from dgxcheck.facts.inventory import Remembered
from dgxcheck.facts.missing import Gap, Json, Missing, items_of
from dgxcheck.facts.record import replace
from dgxcheck.source import state_file
from dgxcheck.source.protocol import Source
from dgxcheck.source.recording.keys import to_rows
from dgxcheck.source.recording.load import open_source
from dgxcheck.survey import Snapshot

LAST_RUN = [check for check in CHECKS if check.id == CHECK]
RAID = "0000:01:00.0"
HCAS = "/sys/class/infiniband"


def read(spec: str) -> tuple[Source, Snapshot]:
    """A file, which a test may write again, is read each time."""
    return _shipped(spec) if spec in SHIPPED else _read(spec)


def _read(spec: str) -> tuple[Source, Snapshot]:
    source = open_source(spec)
    return source, facts_in(source)


_shipped = lru_cache(maxsize=4)(_read)


def facts_of(spec: str) -> Snapshot:
    return read(spec)[1]


def ran(spec: str, file: Path, accepted: bool = False, checks: Sequence[Check] = LAST_RUN) -> list[Finding]:
    """After a run that read and renewed the state file."""
    source, facts = read(spec)
    topology = topology_of(facts)
    present = Present(counts=counts(facts, topology), accepted=False, changes_accepted=accepted)
    last = last_run(source, facts, str(file), present)
    box = Box(snapshot=facts, topology=topology, gpus=topology.gpus, kept=last.kept, present=present.counts)
    return [*run(box, checks)]


def words(found: list[Finding]) -> list[tuple[str, str, str]]:
    return [
        (each.status.value, each.subject.name, each.judgement.message.partition(" in the run")[0]) for each in found
    ]


@pytest.mark.parametrize(("facts", "due"), [
    ({f"{NVML}VbiosVersion {GPU2}": "88.00.18.00.0A"}, ("GPU2", "VBIOS 88.00.18.00.0A, was 88.00.18.00.01")),
    ({"text /sys/class/dmi/id/bios_version": "S2W_3A11\n"}, ("host", "BIOS S2W_3A11, was made up")),
    ({"text /proc/sys/kernel/numa_balancing": "1\n"}, ("host", "NUMA balancing 1, was 0")),
    ({"text /sys/class/block/sda/device/model": "OTHER\n"}, ("host", "")),
    ({"text /proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz-5.15.0-126-generic root=/dev/sda2 iommu=pt\n"},
     ("host", "kernel command line iommu=pt, was ro")),
])  # fmt: skip
def test_a_change_since_the_last_run_is_a_warning(facts: dict[str, Json], due: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "counters.json"
    assert [each.judgement.reason for each in ran("dgx-1-v100", file)] == ["no-history"]
    assert [each.status.value for each in ran("dgx-1-v100", file)] == ["pass"]
    spec = changed(tmp_path, facts)
    for _ in range(2):  # and is not forgotten at once
        ((status, name, message),) = words(ran(spec, file))
        assert (status, name) == ("warn", due[0])
        assert due[1] in message
    assert [each.status.value for each in ran("dgx-1-v100", file)] == ["pass"]


@pytest.mark.parametrize(("base", "facts", "found"), [
    ("dgx-b300", {"text /sys/class/net/eth1/speed": "100000\n"}, [("host.ethernet", "eth1")]),
    ("gb300-nvl72", {"text /sys/class/net/eth5/speed": "50000\n"}, [("host.ethernet", "eth5")]),
    ("dgx-b300", {"text /sys/class/net/ib4/speed": "400000\n",
                  f"text {HCAS}/mlx5_14/ports/1/rate": "400 Gb/sec (4X NDR)\n"}, [("network.port-rate", "mlx5_14/1")]),
    ("dgx-b300", {"text /sys/bus/pci/devices/0000:7a:00.0/current_link_width": "8\n",
                  f"{NVML}CurrPcieLinkWidth 0000:7a:00.0": 8}, [("pcie.width", "GPU3")]),
])  # fmt: skip
def test_what_a_check_reports_is_no_change_beside_it(
    base: str, facts: dict[str, Json], found: list[tuple[str, str]], tmp_path: Path
) -> None:
    file, spec = tmp_path / "counters.json", tmp_path / "next.json"
    ran(base, file)
    spec.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": base, "facts": facts}))
    bad = [each for each in ran(str(spec), file, checks=registry.CHECKS) if each.status in BAD]
    assert [(each.id, each.subject.name) for each in bad] == found


@pytest.mark.parametrize(("fault", "port", "word", "bits", "change"), [
    ("dgx-1-v100-acs-redirect", "0000:09:08.0", 0x10, 0x02, "ASPM L1, was off"),
    ("dgx-1-v100-max-payload", "0000:0b:00.0", 0x08, 0x10, "relaxed ordering off, was on"),
    ("dgx-1-v100-read-request", "0000:0c:00.0", 0x08, 0x10, "relaxed ordering off, was on"),
])  # fmt: skip
def test_a_finding_about_one_register_hides_no_change_of_another(
    fault: str, port: str, word: int, bits: int, change: str, tmp_path: Path
) -> None:
    file, spec, key = tmp_path / "counters.json", tmp_path / "next.json", f"/sys/bus/pci/devices/{port}/config"
    data = read(fault)[0].data(key)
    assert not isinstance(data, Missing)
    space = bytearray(data)
    at = space[0x34]
    while space[at] != 0x10:
        at = space[at + 1]
    space[at + word] ^= bits
    old = json.loads(Path(BY_NAME[fault]).read_text(encoding="utf-8"))
    spec.write_text(json.dumps({**old, "facts": {**old["facts"], f"data {key}": to_rows(bytes(space))}}))
    first = {each.id for each in ran(fault, file, checks=registry.CHECKS) if each.status in BAD}
    then = [each for each in ran(str(spec), file, checks=registry.CHECKS) if each.status in BAD]
    assert first < {each.id for each in then}
    of_siblings, of_last_run = ([each for each in then if each.id.endswith(end)] for end in (".uniform", CHECK))
    assert [message for _, _, message in words(of_last_run)] == [change]
    assert [message.partition(",")[0] for _, _, message in words(of_siblings)] == [change.partition(",")[0]]


def test_another_boot_has_other_names_and_queue_pairs(tmp_path: Path) -> None:
    """Adapters and disks under other names, and IP over InfiniBand with another queue pair and subnet prefix."""
    file = tmp_path / "counters.json"
    ran("dgx-h100", file)
    lines = json.loads(Path(BY_NAME["dgx-h100"]).read_text(encoding="utf-8"))["facts"]
    swapped = {f"{kind} {HCAS}/{one}/{name}": value for one, other in (("mlx5_0", "mlx5_3"), ("mlx5_3", "mlx5_0"))
               for kind, texts in lines[f"{HCAS}/{other}"].items() for name, value in texts.items()}  # fmt: skip
    mac = lines["/sys/class/net/ib0"]["text"]["address"].strip()
    spec = tmp_path / "next.json"
    spec.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-h100", "facts": {
        **swapped, "text /sys/class/net/ib0/address": f"00:00:10:29:fe:80:00:00:00:00:00:07:{mac[-23:]}\n",
        "names /sys/class/block/md0/slaves": ["nvme2n1", "nvme5n1"]}}))  # fmt: skip
    assert [each.status.value for each in ran(str(spec), file)] == ["pass"]


def test_a_bond_has_the_address_of_the_interface_that_came_first(tmp_path: Path) -> None:
    file, spec = tmp_path / "counters.json", tmp_path / "bond.json"
    lines = json.loads(Path(BY_NAME["dgx-2"]).read_text(encoding="utf-8"))["facts"]
    of_bond = ("enp134s0f0", "enp6s0")
    for first in of_bond:
        address = lines[f"/sys/class/net/{first}"]["text"]["address"]
        facts = {f"text /sys/class/net/{name}/address": address for name in of_bond}
        spec.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-2", "facts": facts}))
        found = ran(str(spec), file)
    assert [each.status.value for each in found] == ["pass"]


def test_a_controller_that_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "counters.json"
    ran("dgx-1-v100", file)
    spec = tmp_path / "without.json"
    spec.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": {}, "drop": [RAID]}))
    (found,) = ran(str(spec), file)
    assert (found.status, found.judgement.fault) == (Status.WARN, Fault.DRIFT)
    assert found.judgement.message.startswith("2 devices of the run of ")
    assert found.judgement.message.endswith(f" gone: 0000:00:01.0, {RAID}")  # with the port above it


def test_a_tree_that_cannot_be_read_loses_no_device(tmp_path: Path) -> None:
    file = tmp_path / "counters.json"
    ran("dgx-1-v100", file)
    found = ran(changed(tmp_path, {"names /sys/bus/pci/devices": {"missing": "denied"}}), file)
    assert not [each for each in found if each.subject.part == "devices"]


@pytest.mark.parametrize(("removable", "more"), [(True, 0), (False, 1), (Missing(Gap.DENIED, "x"), 1)])
def test_a_stick_is_no_disk_of_the_machine(removable: bool | Missing, more: int) -> None:
    facts = facts_of("dgx-1-v100")
    assert isinstance(facts.storage, Storage)
    assert isinstance(facts.storage.disks, tuple)
    disks = (*facts.storage.disks, replace(facts.storage.disks[0], name="sdz", model="STICK", removable=removable))
    after = kept(replace(facts, storage=replace(facts.storage, disks=disks)))
    assert len(items_of(after["BlockDevice"]["disks"])) == len(items_of(kept(facts)["BlockDevice"]["disks"])) + more


def test_an_acknowledged_change_is_the_next_reference(tmp_path: Path) -> None:
    file = tmp_path / "counters.json"
    ran("dgx-1-v100", file)
    spec = changed(tmp_path, {f"{NVML}VbiosVersion {GPU2}": "88.00.18.00.0A"})
    ran(spec, file, accepted=True)
    assert [each.status.value for each in ran(spec, file)] == ["pass"]


@pytest.mark.parametrize(("date", "is_new"), [("2026-11-21T09:59:00Z", False), ("2026-11-22T10:01:00Z", True)])
def test_a_change_is_accepted_after_a_day(date: str, is_new: bool, tmp_path: Path) -> None:
    before, now = facts_of("dgx-1-v100"), facts_of(changed(tmp_path, {f"{NVML}VbiosVersion {GPU2}": "88.1"}))
    old = Remembered("host", "2026-11-20T10:00:00Z", kept(before))
    first = remembered_values(old, now, "host", "2026-11-21T10:00:00Z", accepted=False)
    assert (first.values, first.changed) == (old.values, "2026-11-21T10:00:00Z")
    later = remembered_values(first, now, "host", date, accepted=False)
    assert (later.values == kept(now)) == is_new


def test_a_setting_of_many_devices_is_one_finding(tmp_path: Path) -> None:
    file = tmp_path / "counters.json"
    ran("dgx-1-v100", file)
    gpus = [gpu.bdf for gpu in topology_of(facts_of("dgx-1-v100")).gpus]
    spec = changed(tmp_path, {f"{NVML}VbiosVersion {bdf}": "88.00.18.00.0A" for bdf in gpus})
    ((status, name, message),) = words(ran(spec, file))
    assert (status, name) == ("warn", "host")
    assert message.startswith("VBIOS of 8 devices: VBIOS 88.00.18.00.0A, was")


@pytest.mark.parametrize(("gpus", "subjects"), [(4, ["GPU0", "GPU1", "GPU2", "GPU3"]), (5, ["host"])])
def test_four_devices_are_not_many(gpus: int, subjects: list[str], tmp_path: Path) -> None:
    file = tmp_path / "counters.json"
    ran("dgx-1-v100", file)
    bdfs = [gpu.bdf for gpu in topology_of(facts_of("dgx-1-v100")).gpus[:gpus]]
    spec = changed(tmp_path, {f"{NVML}VbiosVersion {bdf}": "88.00.18.00.0A" for bdf in bdfs})
    assert [name for _, name, _ in words(ran(spec, file))] == subjects


@pytest.mark.parametrize(("facts", "rest"), [
    (3, ["BIOS S2, was made up"]), (4, ["BIOS S2, was made up", "and 1 other fact"]),
])  # fmt: skip
def test_three_facts_are_named(facts: int, rest: list[str], tmp_path: Path) -> None:
    file, dmi = tmp_path / "counters.json", "text /sys/class/dmi/id"
    ran("dgx-1-v100", file)
    texts = {"text /proc/sys/kernel/osrelease": "6.1.0", f"{dmi}/board_name": "x", f"{dmi}/bios_version": "S2",
             f"{dmi}/bios_date": "01/01/2001"}  # fmt: skip
    ((_, _, message),) = words(ran(changed(tmp_path, {**dict([*texts.items()][:facts])}), file))
    assert message.split("; ")[2:] == rest


def test_the_file_keeps_values_and_a_damaged_one_is_dropped(tmp_path: Path) -> None:
    file = tmp_path / "counters.json"
    ran("dgx-1-v100", file)
    document = json.loads(file.read_text(encoding="utf-8"))
    assert document["state"]["kept"]["values"][f"Gpu {GPU2}"]["Gpu.vbios"] == "88.00.18.00.01"
    document["state"]["kept"] = {"mark": 7}
    file.write_text(json.dumps(document), encoding="utf-8")
    reading = state_file.read(str(file))
    assert reading is not None
    assert reading.kept is None
    assert [each.judgement.reason for each in ran("dgx-1-v100", file)] == ["no-history"]


@pytest.mark.parametrize(("was", "due"), [
    (["ID=ubuntu", "NAME=Debian"], "NAME=Ubuntu PRETTY_NAME=Ubuntu 20.04 VERSION_ID=20.04, was NAME=Debian"),
    (["ID=ubuntu"], "NAME=Ubuntu PRETTY_NAME=Ubuntu 20.04 VERSION_ID=20.04, was less"),
    ("debian", "ID=ubuntu NAME=Ubuntu PRETTY_NAME=Ubuntu..., was debian"),
    (None, "ID=ubuntu NAME=Ubuntu PRETTY_NAME=Ubuntu..., was none"),
])  # fmt: skip
def test_what_was_no_list_in_the_last_run_was_not_less(was: Json, due: str) -> None:
    leaf = next(leaf for *_, leaf in _kept_leaves(facts_of("big-sur")) if leaf[0] == "Host.os_release")
    assert _words(leaf, was) == f"operating system {due}"


def test_a_container_sees_what_it_is_given() -> None:
    facts = facts_of("dgx-1-v100-container")
    topology = topology_of(facts)
    before = Remembered("", "2026-11-20", kept(facts_of("dgx-1-v100")))
    (found,) = run(Box(snapshot=facts, topology=topology, gpus=topology.gpus, kept=before), LAST_RUN)
    assert found.judgement.reason == "not-visible"


@pytest.mark.parametrize("value", ["x", True, [], [True], {}, 1.5])
def test_a_value_of_another_type_is_damage_and_no_change(value: Json, tmp_path: Path) -> None:
    file = tmp_path / "counters.json"
    ran("dgx-1-v100", file)
    document = json.loads(file.read_text())
    values = document["state"]["kept"]["values"]
    for owner in values.values():
        owner |= {name: value for name, was in owner.items()
                  if (type(was) is not type(value) and {type(was), type(value)} != {int, float})
                  or (was and value == [True])}  # fmt: skip
    file.write_text(json.dumps(document))
    bad = [each.judgement.message for each in ran("dgx-1-v100", file) if each.status.value == "warn"]
    assert [message for message in bad if not message.startswith("disk")] == []
