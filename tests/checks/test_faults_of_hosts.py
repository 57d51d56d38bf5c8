"""HCAs, ports, the host and the kernel log: the fault of each bad finding, and the components that it can come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabric_box import PROFILES
from fabric_box import box as fabric_box
from sample import BOXES, BY_NAME, FOUND_BY, swept
from test_checks_host import BLOCK, CPUINFO, DGX_1, LXC, MD0, NUMBERS, ONLINE, cpuinfo, held
from test_checks_network import DOWN, INIT, V100, WANTED, every, port
from test_health_checks import box, changed

from dgxcheck.checks.driver.bound import models
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import BAD, Finding, Judgement, Status, Subject
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.components.component import Key
from dgxcheck.facts.bdf import nameless
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.facts.record import replace
from dgxcheck.settings import Settings
from dgxcheck.source.pci_ids import PciIds

BY_ID = {check.id: check for check in CHECKS if check.id.startswith(("network.", "host.", "kernel."))}
NIC, GPU, SWITCH = "0000:0c:00.0", "0000:0a:00.0", "0000:c7:00.0"
AT_GPU = Subject(kind="gpu", name="GPU2", bdf=GPU)
AT_HCA = Subject(kind="hca", name="mlx5_1", bdf=NIC)
AT_PORT = Subject(kind="port", name="mlx5_1/1", bdf=NIC, part="1")
NOWHERE = "0000:77:00.0"
GPU_KEY, HCA_KEY, PORT_KEY = ("gpu", GPU, ""), ("hca", NIC, ""), ("port", f"{NIC}/1", "")
DISABLED, POLLING = "3: Disabled", "2: Polling"
NO_MEMBER: dict[str, Json] = {f"names {BLOCK[5:]}/md0/slaves": ["sdb", "sdc"]}


def bad_findings(made: Box, check: str) -> list[Finding]:
    return [each for each in run(made, [BY_ID[check]]) if each.status in BAD]


def pci(bdf: str) -> Subject:
    return Subject(kind="pci", name=bdf, bdf=bdf)


@pytest.mark.parametrize(
    ("check", "at", "fault", "due"),
    [
        ("network.hca-count", HOST, Fault.HCA_MISSING, [("slot", "", "missing HCA")]),
        ("network.hca-placement", HOST, Fault.MISPLACED, [("host", "host", "placement of HCAs")]),
        ("network.hca-placement", AT_HCA, Fault.MISPLACED, [("hca", NIC, "slot")]),
        ("network.firmware", AT_HCA, Fault.HCA_FIRMWARE, [("hca", NIC, "firmware")]),
        ("network.firmware", Subject(kind="hca", name=NOWHERE, bdf=NOWHERE), Fault.HCA_FLASH_RECOVERY,
         [("hca", NOWHERE, "firmware")]),
        ("network.port-state", AT_PORT, Fault.PORT_DOWN, [PORT_KEY]),
        ("network.port-state", AT_PORT, Fault.PORT_DISABLED, [PORT_KEY]),
        ("network.port-state", AT_PORT, Fault.NO_SUBNET_MANAGER, [("subnet-manager", NIC, "")]),
        ("network.port-state", Subject(kind="port", name="mlx5_9/1", bdf=None), Fault.PORT_MISSING,
         [("port", "mlx5_9/1", "")]),
        ("network.port-rate", AT_PORT, Fault.PORT_SLOW, [PORT_KEY]),
        ("network.port-errors", AT_PORT, Fault.PORT_ERRORS, [PORT_KEY]),
        ("host.cpu", HOST, Fault.CPU_MISSING, [("host", "host", "CPUs")]),
        ("host.memory", HOST, Fault.MEMORY_MISSING, [("host", "host", "memory")]),
        ("host.edac", replace(HOST, part="mc2"), Fault.DIMM_ERRORS,
         [("host", "host", "memory/mc2"), ("host", "host", "memory/socket 1")]),
        ("host.disks", HOST, Fault.DISK, [("host", "host", "disks")]),
        ("host.disks", Subject(kind="disk", name="md0", bdf=None), Fault.DISK, [("disk", "md0", "")]),
        ("host.ethernet", Subject(kind="interface", name="eth0", bdf="0000:02:00.0"), Fault.ETHERNET_SLOW,
         [("interface", "0000:02:00.0", "")]),
        ("host.governor", HOST, Fault.GOVERNOR, [("host", "host", "CPU frequency governor")]),
        ("kernel.xid", AT_GPU, Fault.XID, [GPU_KEY]),
        ("kernel.xid", pci(SWITCH), Fault.NVSWITCH, [("nvswitch", SWITCH, "")]),
        ("kernel.xid", pci(NOWHERE), Fault.XID, [("gpu", NOWHERE, "")]),
        ("kernel.off-bus", AT_GPU, Fault.GPU_LOST, [GPU_KEY]),
        ("kernel.off-bus", pci(NOWHERE), Fault.GPU_LOST, [("gpu", NOWHERE, "")]),
        ("kernel.gpu-start", AT_GPU, Fault.GPU_NOT_STARTED, [GPU_KEY]),
        ("kernel.gpu-start", pci(NOWHERE), Fault.GPU_UNPOWERED, [("gpu", NOWHERE, "")]),
        ("kernel.gpu-start", HOST, Fault.GPU_NOT_STARTED, [("gpu", nameless(0), "")]),
        ("kernel.gpu-start", HOST, Fault.BAR1_SMALL, [("host", "host", "start of a GPU")]),
        ("kernel.aer", AT_GPU, Fault.AER_LOGGED, [("link", GPU, "")]),
        ("kernel.aer", AT_HCA, Fault.AER_LOGGED, [("link", NIC, ""), HCA_KEY]),
        ("kernel.aer", pci("0000:09:08.0"), Fault.AER_LOGGED, [("link", GPU, "")]),
        ("kernel.aer", pci(NOWHERE), Fault.AER_LOGGED, [("function", NOWHERE, "")]),
        ("kernel.aer", pci("0000:00:1f.2"), Fault.AER_LOGGED, [("function", "0000:00:1f.2", "")]),
        ("kernel.hca", AT_HCA, Fault.HCA_UNRESPONSIVE, [HCA_KEY]),
        ("kernel.hca", Subject(kind="hca", name=NOWHERE, bdf=NOWHERE), Fault.HCA_NOT_STARTED, [("hca", NOWHERE, "")]),
        ("kernel.port-module", AT_PORT, Fault.PORT_MODULE, [PORT_KEY]),
    ],
)  # fmt: skip
def test_components_to_blame(check: str, at: Subject, fault: FaultKind | None, due: list[Key]) -> None:
    made = box("dgx-1-v100")
    judgement = Judgement(Status.WARN, "", fault=fault)
    assert [*dict.fromkeys(component.key for component in BY_ID[check].blames(made, at, judgement))] == due


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(Fault.PORT_DOWN, "fabric"), (Fault.PORT_SLOW, "fabric"), (Fault.PORT_ERRORS, "fabric"),
     (Fault.NO_SUBNET_MANAGER, "subnet-manager"), (Fault.PORT_DISABLED, None)],
)  # fmt: skip
def test_what_all_ports_have_comes_from_the_fabric(fault: FaultKind, kind: str | None) -> None:
    made = box("dgx-1-v100")
    for check in ("network.port-state", "network.port-rate", "network.port-errors"):
        shared = BY_ID[check].shared(made, AT_PORT, Judgement(Status.WARN, "", fault=fault))
        assert (None if shared is None else shared.kind) == kind


@pytest.mark.parametrize(
    ("facts", "settings", "fault", "remedy"),
    [
        (
            port(1, state=DOWN, phys_state=DISABLED),
            Settings(),
            Fault.PORT_DISABLED,
            f"mlxlink -d {NIC} --port_state UP",
        ),
        (port(1, state=DOWN, phys_state=POLLING), Settings(), Fault.PORT_DOWN, "cable"),
        (port(1, state=INIT), Settings(), Fault.NO_SUBNET_MANAGER, "sminfo through an ACTIVE port of that fabric)"),
        (port(1, state="3: ARMED"), Settings(), Fault.NO_SUBNET_MANAGER, "subnet manager"),
        (every(link_layer="Ethernet") | port(1, state=INIT), Settings(), Fault.PORT_DOWN, "ip link"),
        (port(1, state=DOWN, link_layer="Ethernet", phys_state=DISABLED), WANTED, Fault.PORT_DISABLED, "ip link"),
        (port(1, state=DOWN, link_layer="Ethernet", phys_state=DISABLED) | {"text /sys/class/net/ib1/carrier": "0\n"},
         WANTED, Fault.PORT_DOWN, "the cable"),
        ({}, Settings(ports=("mlx5_9/1",), path="site.toml"), Fault.PORT_MISSING, "ibstat"),
    ],
)
def test_a_port_that_is_not_up(
    facts: dict[str, Json], settings: Settings, fault: FaultKind, remedy: str, tmp_path: Path
) -> None:
    (bad,) = bad_findings(fabric_box(changed(tmp_path, facts), settings=settings), "network.port-state")
    assert bad.judgement.fault is fault
    assert remedy in bad.remedy


def test_an_adapter_in_flash_recovery_is_no_other_firmware(tmp_path: Path) -> None:
    facts: dict[str, Json] = {f"text /sys/bus/pci/devices/{NIC}/device": "0x0209\n",
                              "names /sys/class/infiniband": ["mlx5_0", "mlx5_2", "mlx5_3"]}  # fmt: skip
    (bad,) = bad_findings(fabric_box(changed(tmp_path, facts), V100), "network.firmware")
    assert bad.judgement.fault is Fault.HCA_FLASH_RECOVERY
    assert f"mstflint -d {NIC}" in bad.remedy


def test_adapters_in_flash_recovery_are_those_that_pci_ids_calls_so() -> None:
    """Of the ids that this machine's pci.ids names, which may be older."""
    table = PciIds()
    names = {number: table.name(f"15b3:{number:04x}") for number in range(max(models("recovery")) + 1)}
    named = {number: name for number, name in names.items() if isinstance(name, str)}
    if not named:
        pytest.skip("no pci.ids on this machine")
    known = models("recovery").keys() & named.keys()
    assert {number for number, name in named.items() if "Flash Recovery" in name} == known


@pytest.mark.parametrize(
    ("check", "facts", "fault", "message"),
    [
        ("host.cpu", {CPUINFO: cpuinfo(1, 20), ONLINE: "0-39\n"}, Fault.CPU_MISSING, "1 of 2 sockets, 20 of 40 cores"),
        ("host.cpu", {CPUINFO: cpuinfo(2, 20, less=1), ONLINE: "0-78\n"}, Fault.CPU_OFFLINE,
         "2 of 2 sockets, 40 of 40 cores, 79 threads: some are offline"),
        ("host.cpu", {CPUINFO: cpuinfo(2, 22), ONLINE: "0-10,12-88\n"}, Fault.CPU_OFFLINE,
         "CPU 11 offline; 2 of 2 sockets, 44 of 40 cores"),
    ],
)  # fmt: skip
def test_conditions_of_the_host(
    check: str, facts: dict[str, Json], fault: FaultKind, message: str, tmp_path: Path
) -> None:
    (bad,) = bad_findings(held(changed(tmp_path, facts), DGX_1), check)
    assert (bad.judgement.fault, bad.judgement.message) == (fault, message)


@pytest.mark.parametrize(
    ("facts", "fault", "message"),
    [
        ({MD0 + "/degraded": "1\n", MD0 + "/level": "raid1\n"}, Fault.DISK,
         "raid1 of sdb, sdc, sdd is degraded: 1 disk missing, configured for 3 disks"),
        (NO_MEMBER | {MD0 + "/array_state": "inactive\n"}, Fault.ARRAY_FAILED,
         "raid0 of sdb, sdc is inactive, configured for 3 disks"),
        ({MD0 + "/array_state": "readonly\n"}, Fault.ARRAY_READ_ONLY,
         "raid0 of sdb, sdc, sdd is read-only: writes fail"),
    ],
)  # fmt: skip
def test_conditions_of_an_array(facts: dict[str, Json], fault: FaultKind, message: str, tmp_path: Path) -> None:
    made = held(changed(tmp_path, facts, "dgx-station-v100"), NUMBERS["dgx-station-v100"])
    (bad,) = bad_findings(made, "host.disks")
    assert (bad.judgement.fault, bad.judgement.message) == (fault, message)


@pytest.mark.parametrize(
    ("level", "words"), [("raid0", "restore the data from backup"), ("linear", "restore the data"), ("raid5", "mdadm")]
)
def test_without_redundancy_data_are_restored_last(level: str, words: str, tmp_path: Path) -> None:
    facts: dict[str, Json] = {MD0 + "/array_state": "inactive\n", MD0 + "/level": f"{level}\n"}
    made = held(changed(tmp_path, facts, "dgx-station-v100"), NUMBERS["dgx-station-v100"])
    (bad,) = bad_findings(made, "host.disks")
    assert words in bad.remedy
    assert ("restore" in bad.remedy) is (level != "raid5")
    if level != "raid5":
        order = ("find the missing disk", "mdadm --examine", "create nothing", "only if the disk failed", "restore")
        steps = [bad.remedy.index(step) for step in order]
        assert steps == sorted(steps)


def test_a_share_of_the_host_is_skipped_with_its_numbers(tmp_path: Path) -> None:
    one_socket: dict[str, Json] = {CPUINFO: cpuinfo(1, 20), ONLINE: "0-39\n"}
    made = held(changed(tmp_path, one_socket | LXC), DGX_1)
    (finding,) = run(made, [BY_ID["host.cpu"]])
    assert finding.judgement.message.endswith(": 1 of 2 sockets, 20 of 40 cores")
    assert finding.judgement.fault is None


@pytest.mark.parametrize("name", swept(BY_NAME, few=(*BOXES[2::5], *[*FOUND_BY.values()][4::8])))
def test_every_shipped_finding_names_its_fault(name: str) -> None:
    base = next((each for each in sorted(PROFILES, key=len, reverse=True) if name.startswith(each)), "")
    findings = run(fabric_box(name, base), BY_ID.values())
    for finding in findings:
        bad = finding.status in (Status.WARN, Status.FAIL)
        assert (finding.judgement.fault is not None) == bad, finding.key
        assert bool(finding.blames) == bad, finding.key


@pytest.mark.parametrize("check", BY_ID.values(), ids=BY_ID)
def test_what_could_not_be_read_has_no_fault(check: Check) -> None:
    made = fabric_box("dgx-1-v100", "dgx-1-v100")
    gap = Missing(Gap.GARBLED, "somewhere")
    fields = ("host", "edac", "storage", "network", "infiniband", "ib_ports", "kernel_log")
    for finding in run(replace(made, snapshot=replace(made.snapshot, **dict.fromkeys(fields, gap))), [check]):
        assert finding.judgement.fault is None
        assert finding.status is not Status.PASS or check.id in ("network.hca-placement", "host.numa")  # by the tree
