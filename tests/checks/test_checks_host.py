"""Checks of the host: CPUs, memory, disks, Ethernet, governor; each held to a reference machine made here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from test_health_checks import box, changed

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.host import cpu, disks, ethernet, memory
from dgxcheck.checks.host.cpu import offline_cpus
from dgxcheck.facts.missing import Gap, Json, Missing, rows
from dgxcheck.facts.record import replace
from dgxcheck.profiles.model import Number, Profile, SelectedProfile, Selection
from dgxcheck.settings import Settings
from dgxcheck.source.recording.load import open_source, shipped
from dgxcheck.survey import COUNTERS, Snapshot, survey

JUDGED = ("host.cpu", "host.governor", "host.memory", "host.edac")
CHECKS = (
    *(check for check in (*cpu.CHECKS, *memory.CHECKS) if check.id in JUDGED), *disks.CHECKS, *ethernet.CHECKS,
)  # fmt: skip
DGX_1 = {"host.sockets": 2, "host.cores": 40, "host.memory": 512, "host.dimm": 32, "host.data": 7.68,
         "host.ethernet": 10}  # fmt: skip
NUMBERS: Mapping[str, Mapping[str, float]] = {
    "dgx-1-p100": DGX_1,
    "dgx-1-v100": DGX_1,
    "dgx-station-v100": {"host.sockets": 1, "host.cores": 20, "host.memory": 256, "host.dimm": 32, "host.data": 5.76,
                         "host.ethernet": 10},
    "k80-x8": {"host.sockets": 2, "host.cores": 20},
    "dgx-a100": {"host.sockets": 2, "host.cores": 128, "host.memory": 1024, "host.data": 15.36},
    "dgx-2": {"host.sockets": 2, "host.cores": 48, "host.memory": 1536, "host.data": 30.72},
    "pcie-x4": {"host.sockets": 1, "host.cores": 6}, "pcie-x8": {"host.sockets": 2, "host.cores": 28},
}  # fmt: skip
BAD = (Status.WARN, Status.FAIL, Status.UNKNOWN)
FAULTS = [
    "dgx-1-v100-cores-offline", "dgx-1-v100-dimm-missing", "dgx-1-v100-disk-missing", "dgx-1-v100-edac-corrected",
    "dgx-1-v100-edac-uncorrected", "dgx-1-v100-ethernet-1g", "dgx-station-v100-ethernet-1g", "dgx-a100-governor",
    "dgx-a100-md-degraded",
]  # fmt: skip


def held(spec: str, numbers: Mapping[str, float], how: Selection = "named") -> Box:
    """A box with a reference machine of these numbers, and with growth where the recording goes on."""
    profile = Profile(
        name="reference", title="", products=(), boards=(), nvlink_graph="", wiring=(), wiring_source="",
        numbers={key: Number(value, "a data sheet") for key, value in numbers.items()},
    )  # fmt: skip
    made = replace(box(spec), choice=SelectedProfile(profile=profile, how=how))
    source = open_source(spec)
    later = source.later(10)
    if isinstance(later, Missing):
        return made
    growth = Growth(old=made.snapshot, new=survey(later, COUNTERS), seconds=10, how="within 10 s")
    return replace(made, growth=growth)


def findings(made: Box, check: str = "") -> list[Finding]:
    return [each for each in run(made, CHECKS) if check in ("", each.id)]


def said(made: Box, check: str) -> list[str]:
    """Of every finding the status, and the reason of a skip."""
    return [f"{each.status.value} {each.judgement.reason}".rstrip() for each in findings(made, check)]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_healthy_box_has_what_its_reference_has(name: str) -> None:
    found = findings(held(name, NUMBERS[name]))
    assert [each.judgement.message for each in found if each.status in BAD] == []
    passed = {each.id for each in found if each.status is Status.PASS}
    expected = {check.id for check in CHECKS}
    if "host.memory" not in NUMBERS[name]:
        expected -= {"host.memory", "host.disks"}
    if "host.ethernet" not in NUMBERS[name]:
        expected -= {"host.ethernet"}
    assert passed == expected
    keys = [each.key for each in found]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_at_its_component_and_nothing_else(name: str) -> None:
    overlay = json.loads(Path(dict(shipped())[name]).read_text(encoding="utf-8"))
    due = {(each["id"], each["bdf"], each["status"]) for each in overlay["expect"]["findings"]}
    found = [each for each in findings(held(name, NUMBERS[overlay["base"]])) if each.status in BAD]
    assert {(each.id, each.subject.bdf, each.status.value) for each in found} == due
    assert len(found) == len(due)
    assert all(each.judgement.evidence and each.remedy for each in found)


@pytest.mark.parametrize(
    ("name", "due"),
    [
        ("dgx-1-v100-dimm-missing", "470.4 of 512 GiB; 96 GiB at mc2 (Broadwell SrcID#1_Ha#0), 128 GiB at the others"),
        (
            "dgx-1-v100-edac-corrected",
            "mc2 (Broadwell SrcID#1_Ha#0): 26 new corrected errors within 10 s, limit 10 a day",
        ),
        ("dgx-1-v100-cores-offline", "CPUs 36-39 offline; 2 of 2 sockets, 36 of 40 cores"),
        ("dgx-1-v100-disk-missing", "largest volume sda: 0.48 TB, expected 7.68 TB"),
        ("dgx-1-v100-ethernet-1g", "1 Gbit/s, expected 10 Gbit/s"),
    ],
)
def test_messages_name_what_is_to_blame(name: str, due: str) -> None:
    (found,) = [each for each in findings(held(name, NUMBERS["dgx-1-v100"])) if each.status in BAD]
    assert found.judgement.message == due


@pytest.mark.parametrize(
    ("cpulist", "number", "due"),
    [("0-79", 0, ""), ("0-19,40-59", 0, "20-39"), ("0-35,37-79", 80, "36"), ("1-3", 4, "0"), ("0", 0, ""), ("", 40, ""),
     ("0-35", 40, "36-39"), ("0-39", 40, ""), ("0-x", 40, "")],
)  # fmt: skip
def test_cpus_that_a_list_leaves_out(cpulist: str, number: int, due: str) -> None:
    assert offline_cpus(cpulist, number) == due


def cpuinfo(sockets: int, cores: int, threads: int = 2, less: int = 0) -> str:
    """``cores`` per socket; the last ``less`` threads are not listed."""
    listed = [(socket, core) for _ in range(threads) for socket in range(sockets) for core in range(cores)]
    blocks = [
        f"processor\t: {number}\nphysical id\t: {socket}\ncore id\t: {core}\n"
        for number, (socket, core) in enumerate(listed[: len(listed) - less])
    ]
    return "\n".join(blocks)


CPUINFO = "text /proc/cpuinfo"
MC1 = "text /sys/devices/system/edac/mc/mc1"
ONLINE = "text /sys/devices/system/cpu/online"
MEMINFO = "text /proc/meminfo"
EVEN = f"{','.join(map(str, range(0, 80, 2)))}\n"
BLOCK = "text /sys/class/block"
MD0 = f"{BLOCK}/md0/md"
NET = "text /sys/class/net"
FREQ = "text /sys/devices/system/cpu/cpu0/cpufreq"
LXC: dict[str, Json] = {"text /run/systemd/container": "lxc\n"}
SLOW: dict[str, Json] = {f"{NET}/enp2s0f0/speed": "1000\n"}
OVERWRITTEN: dict[str, Json] = {"kmsg 0": "500000.000000;dgxcheck: log begins"}
TWO: dict[str, Json] = {f"{NET}/enp2s0f1/carrier": "1\n"}
NO_ARRAY: dict[str, Json] = {f"{BLOCK}/sdb/size": f"{15001944064}\n"}


def meminfo(gib: float) -> str:
    return f"MemTotal: {round(gib * (1 << 20))} kB\n"


@pytest.mark.parametrize(
    ("check", "facts", "due"),
    [
        ("host.cpu", {CPUINFO: cpuinfo(1, 20), ONLINE: "0-39\n"}, "warn"),
        ("host.cpu", {ONLINE: "0-39\n"}, "warn"),  # /proc/cpuinfo still has 80
        ("host.cpu", {CPUINFO: cpuinfo(1, 40), ONLINE: "0-79\n"}, "warn"),
        ("host.cpu", {CPUINFO: cpuinfo(2, 20, 1), ONLINE: "0-39\n"}, "pass"),  # without second threads
        ("host.cpu", {CPUINFO: cpuinfo(2, 20, 1), ONLINE: EVEN}, "pass"),
        ("host.cpu", {CPUINFO: cpuinfo(2, 20, 1), ONLINE: "0-38\n"}, "warn"),
        ("host.cpu", {CPUINFO: cpuinfo(2, 22), ONLINE: "0-87\n"}, "pass"),
        ("host.cpu", {CPUINFO: cpuinfo(2, 20, less=1), ONLINE: "0-78\n"}, "warn"),
        ("host.cpu", {CPUINFO: cpuinfo(2, 22), ONLINE: "0-10,12-88\n"}, "warn"),
        ("host.cpu", {CPUINFO: cpuinfo(1, 20), ONLINE: "0-39\n"} | LXC, "skip not-visible"),
        ("host.cpu", {CPUINFO: "processor : 0\ncpu : POWER9\n"}, "skip not-supported"),
        ("host.cpu", {CPUINFO: ""}, "skip not-supported"),
        ("host.cpu", {CPUINFO: {"missing": "denied"}}, "skip no-permission"),
        ("host.cpu", {ONLINE: {"missing": "absent"}}, "pass"),
        ("host.memory", {MEMINFO: meminfo(504 - 15.9)}, "pass"),
        ("host.memory", {MEMINFO: meminfo(504 - 16)}, "warn"),
        ("host.memory", {MEMINFO: meminfo(400), f"{MC1}/size_mb": {"missing": "absent"}}, "warn"),
        ("host.memory", {MEMINFO: meminfo(600)}, "pass"),
        ("host.memory", {MEMINFO: meminfo(16)} | LXC, "skip not-visible"),
        ("host.memory", {MEMINFO: "MemFree: 1 kB\n"}, "unknown"),
        ("host.memory", {MEMINFO: {"missing": "unrecorded"}}, "skip not-recorded"),
        ("host.disks", NO_ARRAY, "pass"),  # the volume of a controller
        ("host.disks", NO_ARRAY | {f"{BLOCK}/sdb/size": "14300000000\n"}, "pass"),
        ("host.disks", NO_ARRAY | {f"{BLOCK}/sdb/size": "14200000000\n"}, "warn"),
        ("host.disks", {"names /sys/class/block": ["sda"]}, "warn"),
        ("host.disks", {"names /sys/class/block": []}, "skip not-visible"),
        ("host.disks", {"names /sys/class/block": {"missing": "denied"}}, "skip no-permission"),
        ("host.ethernet", {f"{NET}/enp2s0f0/speed": "9999\n"}, "warn"),
        ("host.ethernet", {f"{NET}/enp2s0f0/speed": "25000\n"}, "pass"),
        ("host.ethernet", {f"{NET}/enp2s0f0/speed": "-1\n"}, "skip not-supported"),
        ("host.ethernet", {f"{NET}/enp2s0f0/speed": "fast\n"}, "unknown"),
        ("host.ethernet", {f"{NET}/enp2s0f0/carrier": "0\n", f"{NET}/enp2s0f0/speed": "-1\n"}, "skip not-visible"),
        ("host.ethernet", {f"{NET}/enp2s0f0/type": "32\n"}, "skip not-visible"),
        ("host.ethernet", {"text /sys/bus/pci/devices/0000:02:00.0/class": "0x0c0330\n"}, "skip not-visible"),  # USB
        ("host.carrier", {f"{NET}/enp2s0f0/carrier_down_count": "400\n"} | OVERWRITTEN, "warn"),
        ("host.carrier", {f"{NET}/enp2s0f0/carrier_down_count": "400\n"}, "pass"),  # the log has none
        ("host.carrier", {f"{NET}/enp2s0f0/carrier_down_count": "5\n"}, "pass"),
        ("host.carrier", {f"{NET}/enp2s0f0/carrier_down_count": "400\n", "text /proc/uptime": "x\n"},
         "skip no-history"),
        ("host.carrier", {f"{NET}/enp2s0f0/carrier_down_count": "-1\n"}, "unknown"),
        ("host.carrier", {f"{NET}/enp2s0f0/type": "32\n"}, "skip not-visible"),
        ("host.carrier", {f"{NET}/enp2s0f1/carrier_down_count": "400\n"} | OVERWRITTEN, "pass warn"),  # it has none now
        ("host.ethernet", TWO | {f"{NET}/enp2s0f1/speed": "10000\n"}, "pass pass"),
        ("host.ethernet", TWO | {f"{NET}/enp2s0f1/speed": "1000\n"}, "pass pass"),  # for management
        ("host.ethernet", TWO | {f"{NET}/enp2s0f1/speed": "25000\n"}, "pass pass"),
        ("host.ethernet", TWO | SLOW | {f"{NET}/enp2s0f1/speed": "1000\n"}, "warn skip dependency-failed"),
        ("host.ethernet", TWO | SLOW | {f"{NET}/enp2s0f1/speed": "2500\n"}, "skip dependency-failed warn"),
        ("host.ethernet", TWO | SLOW | {f"{NET}/enp2s0f1/speed": {"missing": "denied"}},
         "skip dependency-failed skip no-permission"),
        ("host.ethernet", {"names /sys/class/net": {"missing": "unrecorded"}}, "skip not-recorded"),
        ("host.governor", {f"{FREQ}/scaling_governor": "powersave\n"}, "pass"),
        ("host.governor", {f"{FREQ}/scaling_driver": "acpi-cpufreq\n"}, "pass"),
        ("host.governor", {f"{FREQ}/scaling_driver": "acpi-cpufreq\n", f"{FREQ}/scaling_governor": "ondemand\n"},
         "warn"),
        ("host.governor", {f"{FREQ}/scaling_driver": "amd-pstate-epp\n", f"{FREQ}/scaling_governor": "powersave\n"},
         "pass"),
        ("host.governor", {f"{FREQ}/scaling_driver": "cppc_cpufreq\n", f"{FREQ}/scaling_governor": "powersave\n"},
         "warn"),
        ("host.governor", {f"{FREQ}/scaling_driver": "intel_cpufreq\n"}, "skip not-supported"),
        ("host.governor", {f"{FREQ}/scaling_driver": {"missing": "absent"}}, "skip not-supported"),
        ("host.governor", {f"{FREQ}/scaling_governor": {"missing": "denied"}}, "skip no-permission"),
    ],
)  # fmt: skip
def test_numbers_and_gaps(check: str, facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    assert " ".join(said(held(changed(tmp_path, facts), DGX_1), check)) == due


@pytest.mark.parametrize(
    ("speed", "guest", "due"),
    [
        (100, {}, "warn"), (10, {}, "warn"), (1000, {}, "skip no-reference"), (2500, {}, "skip no-reference"),
        (100, {"text /sys/hypervisor/type": "xen\n"}, "skip no-reference"),  # an emulated RTL8139 has 100
    ],
)  # fmt: skip
def test_ethernet_over_two_of_four_pairs_of_wires(speed: int, guest: dict[str, Json], due: str, tmp_path: Path) -> None:
    """No reference machine says what it should have."""
    spec = changed(tmp_path, {f"{NET}/enp1s0/speed": f"{speed}\n", **guest}, "l40s-x8")
    assert said(held(spec, {}), "host.ethernet") == [due]


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({MD0 + "/array_state": "active\n"}, "pass pass"),
        ({MD0 + "/array_state": "broken\n"}, "pass fail"),
        ({MD0 + "/array_state": "clear\n"}, "pass skip not-visible"),
        ({MD0 + "/array_state": "inactive\n", MD0 + "/level": "-100\n"}, "warn skip not-supported"),  # no volume
        ({MD0 + "/level": "raid5\n", MD0 + "/degraded": "0\n", f"{BLOCK}/md0/size": "7500972032\n"}, "pass pass"),
        ({MD0 + "/degraded": "1\n"}, "pass warn"),
        ({MD0 + "/degraded": {"missing": "denied"}}, "pass skip no-permission"),
        ({MD0 + "/degraded": "x\n"}, "pass unknown"),
        ({MD0 + "/degraded": "x\n", MD0 + "/array_state": "inactive\n"}, "pass fail"),
        ({MD0 + "/level": {"missing": "denied"}}, "pass pass"),
        ({f"names {BLOCK[5:]}/md0/slaves": {"missing": "denied"}}, "pass pass"),
        ({MD0 + "/array_state": {"missing": "unrecorded"}}, "pass skip not-recorded"),
        ({f"names {BLOCK[5:]}/md0/slaves": ["sdb", "sdc"], f"{BLOCK}/md0/size": "7500972032\n",
          "names /sys/class/block": ["md0", "sda", "sdb", "sdc"]}, "skip dependency-failed fail"),
        ({"names /sys/class/block": ["sda", "sdb", "sdc", "sdd"]}, "skip not-visible"),  # a pool
        ({"names /sys/class/block": ["sda", "sdb"]}, "warn"),
    ],
)  # fmt: skip
def test_arrays_of_the_kernel(facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    spec = changed(tmp_path, facts, "dgx-station-v100")
    assert " ".join(said(held(spec, NUMBERS["dgx-station-v100"]), "host.disks")) == due


def test_the_tolerances_are_the_site_s(tmp_path: Path) -> None:
    numbers = {key: value for key, value in DGX_1.items() if key != "host.dimm"}
    for gib, due in ((497, "pass"), (496, "warn")):  # 3 % of 512 is 15.4
        made = held(changed(tmp_path, {MEMINFO: meminfo(gib)}), numbers)
        assert said(made, "host.memory") == [due]
        wider = replace(made, settings=Settings(thresholds={"host.memory-missing": 10}))
        assert said(wider, "host.memory") == ["pass"]
    made = held("dgx-1-v100-edac-corrected", DGX_1)
    for limit, due in ((25, "warn"), (26, "pass")):
        site = replace(made, settings=Settings(thresholds={"host.edac-corrected": limit}))
        assert said(site, "host.edac") == ["pass", "pass", due, "pass"]
    exact = held(changed(tmp_path, NO_ARRAY | {f"{BLOCK}/sdb/size": "14300000000\n"}), DGX_1)
    assert said(replace(exact, settings=Settings(thresholds={"host.data-tolerance": 4})), "host.disks") == ["warn"]


def grown(folder: Path, facts: dict[str, Json], later: dict[str, str]) -> list[str]:
    """What host.edac says of mc1 where its files read so 10 seconds later."""
    path = Path(changed(folder, facts))
    document = json.loads(path.read_text(encoding="utf-8"))
    document["later"] = [{"at_s": 10, "facts": {"/sys/devices/system/edac/mc/mc1": {"text": later}}}]
    path.write_text(json.dumps(document), encoding="utf-8")
    return [said(held(str(path), {}), "host.edac")[1]]


@pytest.mark.parametrize(
    ("facts", "later", "due"),
    [
        ({}, {"ue_count": "1\n"}, "fail"),
        ({f"{MC1}/ue_count": "1\n"}, {"ce_count": "5\n"}, "fail"),
        ({f"{MC1}/ue_count": "1\n"}, {"ue_count": "0\n"}, "pass"),  # the driver was loaded again
        ({f"{MC1}/ce_count": "9\n"}, {"ce_count": "2\n"}, "pass"),
        ({f"{MC1}/ce_count": "9\n"}, {"ce_count": "10\n"}, "pass"),
        ({f"{MC1}/ce_count": "9\n"}, {"ce_count": "19\n"}, "pass"),
        ({f"{MC1}/ce_count": "9\n"}, {"ce_count": "20\n"}, "warn"),
        ({f"{MC1}/ue_count": "1\n", f"{MC1}/ce_count": "9\n"}, {"ce_count": "20\n"}, "fail"),
        ({f"{MC1}/mc_name": {"missing": "absent"}, f"{MC1}/ce_count": "9\n"}, {"ce_count": "20\n"}, "warn"),
        ({f"{MC1}/ce_count": "9\n"}, {"mc_name": "x\n"}, "pass"),
        ({f"{MC1}/ce_count": {"missing": "denied"}}, {"ce_count": "2\n"}, "pass"),  # not counted before
        ({f"{MC1}/ue_count": "x\n"}, {"ce_count": "0\n"}, "unknown"),
        ({f"{MC1}/ce_count": {"missing": "denied"}}, {"mc_name": "x\n"}, "skip no-permission"),
    ],
)
def test_errors_that_memory_counts(facts: dict[str, Json], later: dict[str, str], due: str, tmp_path: Path) -> None:
    assert grown(tmp_path, facts, later) == [due]


@pytest.mark.parametrize(("before", "due"), [(900000, "warn"), (700000, "pass")])
def test_memory_errors_of_an_hour_or_since_a_reset(before: int, due: str, tmp_path: Path) -> None:
    made = held(changed(tmp_path, {f"{MC1}/ce_count": "700000\n"}), {})
    earlier = tuple(replace(row, corrected=before) for row in rows(made.snapshot.edac) if row.name == "mc1")
    old = Snapshot(edac=earlier)
    an_hour = replace(made, growth=Growth(old=old, new=made.snapshot, seconds=3600, how="within an hour"))
    assert said(an_hour, "host.edac")[1] == due


@pytest.mark.parametrize(
    ("names", "due"),
    [([], "skip not-supported"), ({"missing": "absent"}, "skip not-supported"),
     ({"missing": "denied"}, "skip no-permission")],
)  # fmt: skip
def test_no_driver_that_counts(names: Json, due: str, tmp_path: Path) -> None:
    spec = changed(tmp_path, {"names /sys/devices/system/edac/mc": names})
    assert said(held(spec, {}), "host.edac") == [due]


def test_gpus_alone_say_nothing_of_the_host() -> None:
    for made in (held("dgx-1-v100", DGX_1, "gpus"), held("dgx-1-v100", {}), box("dgx-1-v100")):
        for check in ("host.cpu", "host.memory", "host.ethernet"):
            assert said(made, check) == ["skip no-reference"]
        assert said(made, "host.disks") == ["skip no-reference"]
    assert said(box("dgx-station-v100"), "host.disks") == ["pass"]  # the array alone


def test_without_a_reference_an_offline_cpu_is_seen_still(tmp_path: Path) -> None:
    assert said(box("dgx-1-v100-cores-offline"), "host.cpu") == ["warn"]
    for cores, due in ((20, "warn"), (40, "pass")):
        one_socket = changed(tmp_path, {CPUINFO: cpuinfo(1, cores), ONLINE: f"0-{2 * cores - 1}\n"})
        assert said(held(one_socket, {"host.cores": DGX_1["host.cores"]}), "host.cpu") == [due]
    off = changed(tmp_path, {CPUINFO: cpuinfo(2, 20, 1), ONLINE: EVEN})
    assert said(box(off), "host.cpu") == ["skip no-reference"]


def test_nothing_that_was_not_read_passes() -> None:
    made = held("dgx-1-v100", DGX_1)
    gone = Missing(Gap.UNRECORDED, "x")
    blind = replace(made.snapshot, host=gone, edac=gone, storage=gone, network=gone)
    assert {each.status for each in findings(replace(made, snapshot=blind))} == {Status.SKIP}
