"""HCAs and their ports: counts, states, rates, errors and firmware."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from fabric_box import PROFILES, bad, box, findings, said
from test_checks_pcie import GAP, GONE, grown
from test_health_checks import changed

from dgxcheck.checks.engine.box import NO_GROWTH, Growth
from dgxcheck.facts.infiniband import PhysState, PortState
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.profiles import library
from dgxcheck.settings import Settings
from dgxcheck.survey import Snapshot

V100 = PROFILES["dgx-1-v100"]
HCA = "0000:0c:00.0"
DEVICE = "/sys/class/infiniband/mlx5_{}"
PORT = f"text {DEVICE}/ports/1/{{}}"
CONTAINER: dict[str, Json] = {"text /.dockerenv": ""}
NO_CLASS: dict[str, Json] = {"names /sys/class/infiniband": {"missing": "absent"}}
VF = f"link /sys/bus/pci/devices/{HCA}/physfn"
WANTED = Settings(ports=("mlx5_1/1",), path="site.toml")


def port(number: int, **files: str) -> dict[str, Json]:
    return {PORT.format(number, name): f"{text}\n" for name, text in files.items()}


def every(**files: str) -> dict[str, Json]:
    return {key: value for number in range(4) for key, value in port(number, **files).items()}


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({}, "pass"),
        ({"names /sys/class/infiniband": ["mlx5_0", "mlx5_1", "mlx5_2"]}, "pass"),  # it is there: driver.bound fails
        ({VF: "../0000:0c:00.1"}, "fail"),  # a virtual function does not count
        (NO_CLASS, "pass"),
        (NO_CLASS | CONTAINER, "skip not-visible"),
        ({"names /sys/class/infiniband": {"missing": "denied"}}, "skip no-permission"),
    ],
)
def test_count(facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    assert said(box(changed(tmp_path, facts), V100), "network.hca-count") == [due]
    assert said(box(changed(tmp_path, facts)), "network.hca-count") == ["skip no-reference"]
    assert said(box(changed(tmp_path, facts), V100, "gpus"), "network.hca-count") == ["skip no-reference"]


def test_an_adapter_in_flash_recovery_is_told_once(tmp_path: Path) -> None:
    facts: dict[str, Json] = {
        f"text /sys/bus/pci/devices/{HCA}/device": "0x0209\n",
        "names /sys/class/infiniband": ["mlx5_0", "mlx5_2", "mlx5_3"],
    }
    assert bad(box(changed(tmp_path, facts), V100)) == {("network.firmware", HCA, "fail")}


@pytest.mark.parametrize(
    ("device", "due"),
    [
        *((each, "fail") for each in ("0x01f6", "0x01f8", "0x01ff", "0x020b", "0x0218", "0x021d", "0x0221")),
        *((each, "") for each in ("0x0262", "0x0263", "0x0264", "0x0252", "0x1013")),  # these work
    ],
)
def test_only_ids_of_flash_recovery_are(device: str, due: str, tmp_path: Path) -> None:
    facts: dict[str, Json] = {f"text /sys/bus/pci/devices/{HCA}/device": f"{device}\n"}
    found = bad(box(changed(tmp_path, facts)), "network.firmware")
    assert found == ({("network.firmware", HCA, due)} if due else set())


def without_adapters(folder: Path, gone: Iterable[int]) -> str:
    """A DGX A100 without these adapters, on PCI neither."""
    document = {"schema": "dgxcheck/overlay/1", "base": "dgx-a100", "facts": {
        "names /sys/class/infiniband": [f"mlx5_{number}" for number in range(12) if number not in gone],
    }, "drop": [A100_HCAS[number] for number in gone]}  # fmt: skip
    (folder / "fewer.json").write_text(json.dumps(document), encoding="utf-8")
    return str(folder / "fewer.json")


A100_HCAS = [str(device.bdf) for device in box("dgx-a100").topology.devices if device.kind == "nic"]


def test_a_dgx_a100_has_ten_hcas_or_twelve(tmp_path: Path) -> None:
    shipped = library.by_name("dgx-a100")
    checks = ("network.hca-count", "network.hca-placement", "topology.profile")
    for spec in ("dgx-a100", without_adapters(tmp_path, (10, 11))):
        assert {status for check in checks for status in said(box(spec, shipped), check)} == {"pass"}
    for gone in range(12):  # of the card with two ports and no GPU beside it one may be gone
        eleven = box(without_adapters(tmp_path, [gone]), shipped)
        lone = gone not in (4, 5, 10, 11)
        assert bad(eleven, *checks) == ({("network.hca-count", None, "fail")} if lone else set())
    nine = box(without_adapters(tmp_path, (9, 10, 11)), shipped)
    assert bad(nine, *checks) == {("network.hca-count", None, "fail")}


DOWN, INIT = "1: DOWN", "2: INIT"
ROCE = every(link_layer="Ethernet")
NEW = every(**{"counters/port_rcv_data": "0"})
SWITCHED_OFF = port(1, state=DOWN, phys_state="3: Disabled")
IDLE = port(2, state=DOWN, phys_state="2: Polling")
DARK = port(1, state=DOWN, phys_state="3: Disabled") | {"text /sys/class/net/ib1/carrier": "0\n"}
"""As mlx5 has an Ethernet port without carrier."""


@pytest.mark.parametrize(
    ("facts", "due", "wanted"),
    [
        ({}, "pass", "pass"),
        (port(1, state=DOWN), "warn", "fail"),
        (port(1, state=INIT), "warn", "fail"),
        (port(1, state="3: ARMED"), "warn", "fail"),
        (ROCE | port(1, state=INIT), "warn", "fail"),
        (port(1, state=INIT, link_layer="Ethernet"), "skip dependency-failed", "fail"),
        (NEW | every(state=DOWN, phys_state="2: Polling", lid="0x0"), "skip not-configured", "fail"),
        (NEW | every(state=DOWN, phys_state="2: Polling", lid="0xffff"), "skip not-configured", "fail"),
        (every(state=DOWN, phys_state="2: Polling", lid="0xffff"), "warn", "fail"),  # they have received data
        (every(state=DOWN, phys_state="2: Polling", lid="0x5"), "warn", "fail"),
        (every(state=DOWN), "warn", "fail"),  # the link is up, so it is cabled
        (every(state=INIT), "warn", "fail"),
        (ROCE | port(1, state=DOWN, phys_state="2: Polling"), "warn", "fail"),  # all others of its kind are up
        (NEW | ROCE | IDLE | port(1, state=DOWN, phys_state="2: Polling"), "skip not-configured", "fail"),
        (ROCE | IDLE | port(1, state=DOWN, phys_state="2: Polling"), "warn", "fail"),  # it has received data
        (ROCE | IDLE | port(1, state=DOWN, phys_state="3: Disabled"), "skip not-configured", "fail"),
        (ROCE | IDLE | DARK, "warn", "fail"),
        (NEW | ROCE | IDLE | DARK, "skip not-configured", "fail"),
        (ROCE | IDLE | port(1, state=DOWN, phys_state="4: PortConfigurationTraining"), "warn", "fail"),
        (port(1, lid="0x0"), "warn", "warn"),
        (port(1, sm_lid="0x0"), "warn", "warn"),
        (ROCE | port(1, lid="0x0", sm_lid="0x0"), "pass", "pass"),
        (port(1, state=DOWN, phys_state="2: Polling"), "warn", "fail"),
        (SWITCHED_OFF | port(0, state=DOWN), "warn", "fail"),  # two of the three others are up
        (SWITCHED_OFF | port(0, state=DOWN) | port(2, state=DOWN), "skip not-configured", "fail"),
        (port(1, state="nonsense"), "unknown", "unknown"),
        ({PORT.format(1, "state"): {"missing": "denied"}}, "skip no-permission", "skip no-permission"),
    ],
)
def test_state(facts: dict[str, Json], due: str, wanted: str, tmp_path: Path) -> None:
    found = box(changed(tmp_path, facts))
    assert said(found, "network.port-state", "mlx5_1/1") == [due]
    assert said(replace(found, settings=WANTED), "network.port-state", "mlx5_1/1") == [wanted]


@pytest.mark.parametrize(("state", "phys", "message"), [
    (INIT, "5: LinkUp", "port is INIT (link up): no subnet manager configured it"),
    (DOWN, "2: Polling", "port is DOWN (polling)"),
    (DOWN, "3: Disabled", "port is DOWN (disabled)"),
])  # fmt: skip
def test_a_port_says_why_it_is_not_up(state: str, phys: str, message: str, tmp_path: Path) -> None:
    found = findings(box(changed(tmp_path, port(1, state=state, phys_state=phys))), "network.port-state")
    assert [each.judgement.message for each in found if each.subject.name == "mlx5_1/1"] == [message]


@pytest.mark.parametrize(("changes", "word", "is_due"), [
    ({"number": 1}, " -p ", False), ({"number": 2}, " -p 2 ", True),
    ({"is_vf": GAP, "phys": PhysState.LINK_UP}, "virt_enabled", True),
    ({"is_vf": False, "phys": PhysState.LINK_UP}, "virt_enabled", False),
    ({"is_vf": GAP, "state": PortState.INIT}, "virt_enabled", False),
])  # fmt: skip
def test_what_helps_a_port(changes: dict[str, Any], word: str, is_due: bool) -> None:
    of = box("dgx-1-v100")
    devices, rows = of.snapshot.infiniband, of.snapshot.ib_ports
    assert isinstance(devices, tuple)
    assert isinstance(rows, tuple)
    assert isinstance(rows[1].ports, tuple)
    changed = replace(rows[1].ports[0], port=changes.get("number", 1), state=changes.get("state", PortState.DOWN),
                      phys_state=changes.get("phys", PhysState.DISABLED))  # fmt: skip
    devices = (devices[0], replace(devices[1], is_vf=changes.get("is_vf", False)), *devices[2:])
    facts = replace(of.snapshot, infiniband=devices, ib_ports=(rows[0], replace(rows[1], ports=(changed,)), *rows[2:]))
    wanted = replace(of, snapshot=facts, settings=Settings(ports=(f"mlx5_1/{changed.port}",), path="site.toml"))
    (remedy,) = (each.remedy for each in findings(wanted, "network.port-state")
                 if each.subject.name == f"mlx5_1/{changed.port}")  # fmt: skip
    assert (word in remedy) is is_due


def test_a_port_that_the_configuration_leaves_out_may_be_down(tmp_path: Path) -> None:
    for state, due in ((DOWN, "skip not-configured"), (INIT, "warn"), ("4: ACTIVE", "pass")):
        found = box(changed(tmp_path, port(2, state=state)), settings=WANTED)
        assert said(found, "network.port-state", "mlx5_2/1") == [due]


@pytest.mark.parametrize(("layer", "named"), [("InfiniBand", True), ("Ethernet", False)])
def test_the_remedy_names_a_subnet_manager_on_infiniband_alone(layer: str, named: bool, tmp_path: Path) -> None:
    found = box(changed(tmp_path, every(link_layer=layer) | port(1, state=INIT)))
    (remedy,) = {each.remedy for each in findings(found, "network.port-state") if each.status.value == "warn"}
    assert ("subnet manager" in remedy) is named


def test_a_port_that_is_not_there_fails_where_it_is_expected() -> None:
    absent = Settings(ports=("mlx5_9/1",), path="site.toml")
    assert said(box("dgx-1-v100", settings=absent), "network.port-state", "mlx5_9/1") == ["fail"]
    assert said(box("dgx-station-v100"), "network.port-state") == ["skip not-supported"]
    assert said(box("dgx-station-v100", settings=absent), "network.port-state", "mlx5_9/1") == ["fail"]


@pytest.mark.parametrize(
    ("facts", "held", "alone"),
    [
        ({}, "pass", "pass"),
        (port(1, rate="56 Gb/sec (4X FDR)"), "warn", "warn"),
        (every(rate="56 Gb/sec (4X FDR)"), "warn", "pass"),
        (every(rate="25 Gb/sec (1X EDR)"), "warn", "warn"),
        (port(1, rate="100 Gb/sec (2X HDR)"), "pass", "pass"),  # a split cable
        (port(1, rate="50 Gb/sec (2X EDR)"), "warn", "warn"),
        (port(1, rate="200 Gb/sec (4X HDR)"), "pass", "pass"),
        (port(1, state=DOWN, rate="10 Gb/sec (4X SDR)"), "skip dependency-failed", "skip dependency-failed"),
        (port(1, rate="fast"), "unknown", "unknown"),
        (every(link_layer="Ethernet", rate="25 Gb/sec (4X SDR)"), "pass", "pass"),
        (every(rate="10 Gb/sec (4X SDR)"), "warn", "warn"),
        (every(link_layer="Ethernet", rate="25 Gb/sec (1X EDR)"), "pass", "pass"),
        (every(link_layer="Ethernet", rate="10 Gb/sec (1X QDR)"), "pass", "pass"),
    ],
)
def test_rate(facts: dict[str, Json], held: str, alone: str, tmp_path: Path) -> None:
    spec = changed(tmp_path, facts)
    assert said(box(spec, V100), "network.port-rate", "mlx5_1/1") == [held]
    assert said(box(spec), "network.port-rate", "mlx5_1/1") == [alone]


@pytest.mark.parametrize(("hcas", "slow"), [((1, 7), 0), ((1,), 1), ((0,), 1), ((0, 3, 4, 5, 6, 9, 10, 11), 8)])
def test_a_network_of_storage_has_its_own_rate(hcas: tuple[int, ...], slow: int, tmp_path: Path) -> None:
    """The adapters 1, 2, 7 and 8 of a DGX H100 share no PCIe switch with a GPU."""
    facts = {key: value for hca in hcas for key, value in port(hca, rate="200 Gb/sec (4X HDR)").items()}
    spec = changed(tmp_path, facts, base="dgx-h100")
    assert said(box(spec, library.by_name("dgx-h100")), "network.port-rate").count("warn") == slow


def test_second_ports_of_cards_are_compared_with_each_other() -> None:
    assert set(said(box("dgx-a100", "dgx-a100"), "network.port-rate")) == {"pass"}


def counters(folder: Path, later: dict[str, int], facts: dict[str, int] | None = None) -> str:
    where = f"{DEVICE.format(1)}/ports/1/counters"
    return grown(
        folder,
        {where: {"text": {name: f"{count}\n" for name, count in later.items()}}},
        {f"text {where}/{name}": f"{count}\n" for name, count in (facts or {}).items()},
    )


@pytest.mark.parametrize(
    ("later", "seconds", "due"),
    [
        ({"symbol_error": 2}, 60, "pass"),  # too few for a rate
        ({"symbol_error": 3}, 60, "warn"),
        ({"symbol_error": 3}, 3 * 3600, "warn"),
        ({"symbol_error": 3}, 3 * 3600 + 60, "pass"),
        ({"symbol_error": 700}, 30 * 86400, "pass"),
        ({"symbol_error": 1000}, 60, "warn"),  # not seen for an hour
        ({"symbol_error": 9}, 3600, "warn"),
        ({"symbol_error": 10}, 3600, "fail"),
        ({"symbol_error": 10}, 7200, "warn"),
        ({"symbol_error": 20}, 7200, "fail"),
        ({"link_downed": 1}, 1, "fail"),
        ({"link_downed": 1}, 30 * 86400, "fail"),
        ({"link_error_recovery": 1}, 30 * 86400, "pass"),
        ({"link_error_recovery": 3}, 60, "warn"),
        ({"local_link_integrity_errors": 3}, 60, "warn"),
        ({"excessive_buffer_overrun_errors": 3}, 60, "warn"),
        ({"port_rcv_errors": 3}, 60, "warn"),
        ({"port_xmit_wait": 100000}, 3600, "pass"),
        ({"port_xmit_discards": 5, "VL15_dropped": 5}, 3600, "pass"),
        ({"port_rcv_data": 99999999999}, 60, "pass"),
    ],
)
def test_errors(later: dict[str, int], seconds: float, due: str, tmp_path: Path) -> None:
    found = box(counters(tmp_path, later), seconds=seconds)
    assert said(found, "network.port-errors", "mlx5_1/1") == [due]
    assert said(found, "network.port-errors", "mlx5_0/1") == ["pass"]


def test_each_port_of_an_adapter_has_counters_of_its_own() -> None:
    of = box("dgx-1-v100")
    rows = of.snapshot.ib_ports
    assert isinstance(rows, tuple)
    assert isinstance(rows[0].ports, tuple)
    (first,) = rows[0].ports

    def at(*downs: int) -> Snapshot:
        ports = tuple(replace(first, port=number, counters={"link_downed": count})
                      for number, count in enumerate(downs, 1))  # fmt: skip
        return replace(of.snapshot, ib_ports=(replace(rows[0], ports=ports), *rows[1:]))

    grown = replace(of, snapshot=at(0, 0), growth=Growth(old=at(0, 0), new=at(0, 3), seconds=60, how="within 60 s"))
    assert said(grown, "network.port-errors", "mlx5_0/1") == ["pass"]
    assert said(grown, "network.port-errors", "mlx5_0/2") == ["fail"]


@pytest.mark.parametrize(
    ("name", "before", "after", "due"),
    [
        ("symbol_error", 500, 500, "pass"),
        ("symbol_error", 500, 20, "skip no-history"),
        ("symbol_error", 9000, 8000, "warn"),  # reset, and 8000 since boot
        ("symbol_error", 65535, 65535, "skip no-history"),  # saturated
        ("symbol_error", 70000, 70000, "pass"),  # a wider counter
        ("symbol_error", 70000, 70010, "fail"),
        ("link_downed", 255, 255, "skip no-history"),
        ("local_link_integrity_errors", 15, 15, "skip no-history"),
        ("local_link_integrity_errors", 14, 15, "pass"),
        ("local_link_integrity_errors", 12, 15, "warn"),
    ],
)
def test_errors_of_before(name: str, before: int, after: int, due: str, tmp_path: Path) -> None:
    found = box(counters(tmp_path, {name: after}, {name: before}), seconds=3600)
    assert said(found, "network.port-errors", "mlx5_1/1") == [due]


@pytest.mark.parametrize(
    ("name", "total", "due"),
    [
        ("symbol_error", 2400, "pass"),  # 10 an hour in the 10 days since boot
        ("symbol_error", 2401, "warn"),
        ("symbol_error", 65535, "warn"),
        ("link_downed", 10, "pass"),
        ("link_downed", 11, "warn"),  # the three other ports have none
        ("link_downed", 51, "warn"),
    ],
)
def test_a_quiet_minute_acquits_no_total(name: str, total: int, due: str, tmp_path: Path) -> None:
    read_twice = box(counters(tmp_path, {}, {name: total}), seconds=60)
    assert said(read_twice, "network.port-errors", "mlx5_1/1") == [due]
    once = replace(read_twice, growth=NO_GROWTH)
    assert said(once, "network.port-errors", "mlx5_1/1") == ([due] if due == "warn" else [])
    assert said(once, "network.port-errors", "mlx5_0/1") == (["skip not-in-level"] if due == "warn" else [])
    an_hour = box(counters(tmp_path, {}, {name: total}), seconds=3600)
    assert said(an_hour, "network.port-errors", "mlx5_1/1") != ["warn"]


def test_links_that_went_down_long_ago_are_no_fault(tmp_path: Path) -> None:
    """25 of one port alone: https://github.com/leptonai/gpud, a tree of an H100."""
    downs: dict[str, Json] = {PORT.format(1, "counters/link_downed"): "25\n"}
    times: dict[str, bool] = {"8640000.00 1.00\n": False, "864000.00 1.00\n": True, "x\n": False}
    for uptime, due in times.items():
        found = box(changed(tmp_path, downs | {"text /proc/uptime": uptime}))
        assert (said(found, "network.port-errors", "mlx5_1/1") == ["warn"]) is due


@pytest.mark.parametrize(("others", "own", "due"), [(0, 11, "warn"), (4, 40, "pass"), (4, 41, "warn"), (30, 50, "pass"),
                                                    (30, 51, "warn")])  # fmt: skip
def test_links_that_go_down_everywhere_are_the_fabrics(others: int, own: int, due: str, tmp_path: Path) -> None:
    """Or its maintenance: up to five a day since boot, or ten times what the other ports have."""
    every: dict[str, Json] = {PORT.format(number, "counters/link_downed"): f"{others}\n" for number in (0, 2, 3)}
    found = box(changed(tmp_path, every | {PORT.format(1, "counters/link_downed"): f"{own}\n"}))
    assert (said(found, "network.port-errors", "mlx5_1/1") == ["warn"]) is (due == "warn")


@pytest.mark.parametrize(("total", "up", "due"), [
    (24_000, "864000.00 1.00", "pass"), (24_001, "864000.00 1.00", "warn"), (30_000, GONE, "warn"),
    (20_000, GONE, "pass"),
])  # fmt: skip
def test_retransmissions_since_boot(total: int, up: Json, due: str, tmp_path: Path) -> None:
    """Without the time since boot: ten days' worth of the limit, and ten times what other ports have."""
    hardware = PORT.format(1, "hw_counters/out_of_sequence")
    found = box(changed(tmp_path, {hardware: f"{total}\n", "text /proc/uptime": up}))
    assert (said(found, "network.transport-errors", "mlx5_1/1") == ["warn"]) is (due == "warn")


def firmware(*versions: str, boards: str = "AAAA") -> dict[str, Json]:
    facts: dict[str, Json] = {}
    for number, version in enumerate(versions):
        facts[f"text {DEVICE.format(number)}/fw_ver"] = f"{version}\n"
        facts[f"text {DEVICE.format(number)}/board_id"] = f"MT_{boards[number]}\n"
    return facts


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        (firmware("12.28.1", "12.28.1", "12.28.1", "12.28.1"), ["pass"] * 4),
        (firmware("12.28.1", "12.17.1", "12.28.1", "12.28.1"), ["pass", "warn", "pass", "pass"]),
        (firmware("12.9.1", "12.9.1", "12.28.1", "12.28.1"), ["warn", "warn", "pass", "pass"]),
        (firmware("12.28.1", "12.17.1", "12.28.1", "12.28.1", boards="ABAA"), ["pass"] * 4),
        ({}, ["skip not-recorded"] * 4),
    ],
)
def test_firmware(facts: dict[str, Json], due: list[str], tmp_path: Path) -> None:
    assert said(box(changed(tmp_path, facts)), "network.firmware") == due


def test_without_a_majority_the_older_hcas_get_the_newest_firmware_of_their_board(tmp_path: Path) -> None:
    found = findings(box(changed(tmp_path, firmware("12.9.1", "12.9.1", "12.28.1", "12.28.1"))), "network.firmware")
    (remedy,) = {each.judgement.remedy for each in found} - {""}
    assert {blamed.part for each in found if each.judgement.fault for blamed in each.blames} == {"firmware of HCAs"}
    assert "burn 12.28.1 on mlx5_0, mlx5_1 (" in remedy
    assert "mstfwreset -d 0000:0c:00.0 reset" in remedy
    assert "0000:84:00.0" not in remedy
    assert "PSID" not in remedy
