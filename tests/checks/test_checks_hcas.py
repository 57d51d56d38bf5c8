"""HCAs: link layer, identity, number of ports, and counters of retransmissions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fabric_box import bad, box, findings, said
from judging import judged
from test_checks_network import CONTAINER, PORT, V100, every, port
from test_checks_pcie import grown
from test_health_checks import changed

from dgxcheck.checks.network.companions import _bridges
from dgxcheck.checks.network.firmware import _newest
from dgxcheck.checks.network.hcas import _named
from dgxcheck.checks.network.port_link import _port_rate, _set_link_type
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.infiniband import IbRate
from dgxcheck.facts.missing import Gap, Json, Missing, or_gap, rows
from dgxcheck.facts.pci import Vpd
from dgxcheck.facts.record import replace
from dgxcheck.profiles.model import Number
from dgxcheck.settings import Settings
from dgxcheck.topology.nvlinks import is_nvswitch

GUID = "text /sys/class/infiniband/mlx5_1/node_guid"
ZEROS = "0000:0000:0000:0000\n"
HCA = "0000:0c:00.0"
HW = "/sys/class/infiniband/mlx5_1/ports/1/hw_counters"
NVSWITCHES = sorted(bdf for bdf, each in box("dgx-2").topology.functions.items() if is_nvswitch(each))
DGX_2 = replace(V100, name="dgx-2", nvlink_graph="dgx-2", numbers={
    "gpu.count": Number(value=16, source="test"), "nvlink.switches": Number(value=12, source="test"),
})  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({}, "pass"),
        (port(1, link_layer="Ethernet"), "warn"),
        (every(link_layer="Ethernet"), "pass"),
        (port(1, link_layer="Ethernet") | port(2, link_layer="Ethernet"), "pass"),  # two networks
        ({PORT.format(1, "link_layer"): {"missing": "denied"}}, "skip no-permission"),
    ],
)
def test_link_layer(facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    assert said(box(changed(tmp_path, facts)), "network.link-layer", "mlx5_1/1") == [due]


@pytest.mark.parametrize(("ethernet", "unread", "due"), [
    ((1,), 4, "warn"), ((1,), 5, "pass"), ((1, 2), 3, "warn"), ((1, 2), 4, "pass"), ((1, 2), 0, "warn"),
    ((1, 2, 3), 0, "pass"),
])  # fmt: skip
def test_the_usual_link_layer_is_that_of_three_quarters_of_three_ports(
    ethernet: tuple[int, ...], unread: int, due: str, tmp_path: Path
) -> None:
    """Of the eight adapters of a DGX-2 for a fabric, of which some may not be read."""
    numbers = [number for number in (10, 9, 8, 7, 4, 3, 2) if number not in ethernet][:unread]
    facts: dict[str, Json] = {PORT.format(number, "link_layer"): "Ethernet\n" for number in ethernet}
    facts |= {PORT.format(number, "link_layer"): {"missing": "denied"} for number in numbers}
    assert said(box(changed(tmp_path, facts, "dgx-2")), "network.link-layer", "mlx5_1/1") == [due]


def test_a_card_for_storage_may_run_another_link_layer() -> None:
    """A DGX-2 has one port of Ethernet, on a card with two."""
    found = findings(box("dgx-2"), "network.link-layer")
    assert {each.judgement.measured for each in found if each.status.value == "pass"} == {"InfiniBand"}
    assert {each.subject.bdf for each in found if each.status.value == "skip"} >= {"0000:86:00.0", "0000:86:00.1"}
    assert bad(box("dgx-2"), "network.link-layer") == set()


ONE = rows(box("dgx-1-v100").snapshot.infiniband)[0]
ITS_PORT = rows(rows(box("dgx-1-v100").snapshot.ib_ports)[0].ports)[0]
UNREAD = Missing(Gap.ABSENT, "x")


@pytest.mark.parametrize(("bdf", "layer", "due"), [
    (HCA, "Ethernet", True), (HCA, "InfiniBand", True), (HCA, "unknown", False), (UNREAD, "Ethernet", False),
])  # fmt: skip
def test_a_link_type_is_set_where_adapter_and_type_are_known(bdf: str | Missing, layer: str, due: bool) -> None:
    assert bool(_set_link_type(replace(ONE, bdf=bdf), ITS_PORT, layer)) is due


@pytest.mark.parametrize(("name", "layer", "gbit", "due"), [
    ("mlx5_0", "InfiniBand", 10, "warn"), ("mlx5_0", "InfiniBand", 20, "pass"), ("mthca0", "InfiniBand", 10, "pass"),
    ("i40iw0", "InfiniBand", 10, "pass"), ("mlx5_0", "Ethernet", 10, "pass"),
])  # fmt: skip
def test_a_port_stays_at_the_rate_at_which_links_begin(name: str, layer: str, gbit: float, due: str) -> None:
    device = replace(ONE, name=name)
    port = replace(ITS_PORT, device=name, link_layer=layer, rate=IbRate(gbit_per_s=gbit, lanes=4, speed="SDR"))
    assert _port_rate(box("dgx-1-v100"), device, port, [(device, port)]).status.value == due


@pytest.mark.parametrize(("versions", "newest", "others"), [
    (("16.35.1", "16.35.10", "16.9.1"), "16.35.10", 2), (("16.35.1", "16.35.1"), "16.35.1", 0),
    (("16.35.1", "99.x"), "16.35.1", 1), (("16.35.1", UNREAD), "16.35.1", 0), (("x", UNREAD), None, 0),
])  # fmt: skip
def test_the_newest_firmware_is_that_of_numbers(
    versions: tuple[str | Missing, ...], newest: str | None, others: int
) -> None:
    devices = [replace(ONE, fw_ver=version) for version in versions]
    found = _newest(devices[0], devices)
    assert (found and (found[0], len(found[1]))) == (newest and (newest, others))


@pytest.mark.parametrize(("leads", "due"), [(True, 1), (False, 0), (UNREAD, 0), (Missing(Gap.DENIED, "x"), None)])
def test_what_leads_to_nvswitches(leads: bool | Missing, due: int | None) -> None:
    of = box("dgx-1-v100")
    of = replace(of, snapshot=replace(of.snapshot, vpd=(Vpd(bdf=HCA, uuid="x", manages_nvswitches=leads),)))
    found = or_gap(_bridges)(of)
    assert (None if isinstance(found, Missing) else len(found)) == due


@pytest.mark.parametrize(("hca_type", "due"), [
    ("MT4129", "ConnectX-7 (MT4129)"), ("MT9999", "MT9999"), (UNREAD, "an unknown model"),
])  # fmt: skip
def test_a_model_that_is_not_known_has_its_number(hca_type: str | Missing, due: str) -> None:
    assert _named(hca_type) == due


def test_the_remedy_of_a_link_layer_names_device_and_type(tmp_path: Path) -> None:
    found = findings(box(changed(tmp_path, port(1, link_layer="Ethernet"))), "network.link-layer")
    (remedy,) = {each.remedy for each in found if each.status.value == "warn"}
    assert f"mlxconfig -d {HCA} set LINK_TYPE_P1=1" in remedy


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({GUID: ZEROS}, "warn"),
        ({GUID: ZEROS, f"link /sys/bus/pci/devices/{HCA}/physfn": "../0000:0c:00.1"}, None),
        ({GUID: ZEROS, f"text /sys/bus/pci/devices/{HCA}/vendor": "0x1d0f\n"}, "skip not-supported"),  # EFA has none
        ({"names /sys/class/infiniband/mlx5_1/ports": []}, "fail"),
        ({"names /sys/class/infiniband/mlx5_1/ports": {"missing": "denied"}}, "skip no-permission"),
    ],
)
def test_identity(facts: dict[str, Json], due: str | None, tmp_path: Path) -> None:
    assert said(box(changed(tmp_path, facts)), "network.hca-identity", HCA) == ([] if due is None else [due])


def test_fewer_ports_than_the_others(tmp_path: Path) -> None:
    ports: dict[str, Json] = {f"names /sys/class/infiniband/mlx5_{n}/ports": ["1", "2"] for n in (0, 2, 3)}
    assert bad(box(changed(tmp_path, ports)), "network.hca-identity") == {("network.hca-identity", HCA, "fail")}


@pytest.mark.parametrize(
    ("counters", "due"),
    [
        ({"local_ack_timeout_err": "0\n"}, "pass"),
        ({"local_ack_timeout_err": "9\n"}, "pass"),
        ({"local_ack_timeout_err": "10\n"}, "warn"),
        ({"packet_seq_err": "6\n", "out_of_sequence": "6\n"}, "pass"),  # 10 an hour of each
        ({"rnr_nak_retry_err": "500\n"}, "warn"),
        ({"out_of_buffer": "900\n", "rx_read_requests": "900000000\n"}, "pass"),  # traffic, and less than 1000 an hour
        ({"out_of_buffer": "100000\n"}, "warn"),
    ],
)
def test_transport_errors(counters: dict[str, Json], due: str, tmp_path: Path) -> None:
    spec = grown(tmp_path, {HW: {"text": counters}})
    assert said(box(spec), "network.transport-errors", "mlx5_1/1") == [due]
    often = Settings(thresholds={"network.transport": 1e9, "network.programs": 1e9})
    assert said(box(spec, settings=often), "network.transport-errors", "mlx5_1/1") == ["pass"]


@pytest.mark.parametrize(("count", "limit", "fault"), [
    (2, 1, None), (3, 1, Fault.TRANSPORT_ERRORS),  # too few for a rate
    (3599, 10, Fault.TRANSPORT_ERRORS), (3600, 10, Fault.TRANSPORT_FLOOD),
])  # fmt: skip
def test_how_often_transport_errors_are_many(
    count: int, limit: int, fault: FaultKind | None, tmp_path: Path
) -> None:
    spec = grown(tmp_path, {HW: {"text": {"local_ack_timeout_err": f"{count}\n"}}})
    settings = Settings(thresholds={"network.transport": limit})
    found = findings(box(spec, settings=settings), "network.transport-errors")
    assert [each.judgement.fault for each in found if each.subject.name == "mlx5_1/1"] == [fault]


def test_transport_errors_that_fell_are_a_reset(tmp_path: Path) -> None:
    names = ("local_ack_timeout_err", "rnr_nak_retry_err", "out_of_sequence", "packet_seq_err", "implied_nak_seq_err",
             "rx_icrc_encapsulated")  # fmt: skip
    before: dict[str, Json] = {f"text {HW}/{name}": "7\n" for name in names}
    spec = grown(tmp_path, {HW: {"text": dict.fromkeys(names, "0\n")}}, before)
    assert said(box(spec), "network.transport-errors", "mlx5_1/1") == ["skip no-history"]


def without(*bdfs: str) -> dict[str, Json]:
    """NVSwitches of which the class of another device is read."""
    return {f"text /sys/bus/pci/devices/{bdf}/class": "0x088000\n" for bdf in bdfs}


def links_down(bdf: str) -> dict[str, Json]:
    return {
        f"nvml nvmlDeviceGetNvLinkState {link.bdf} {link.link}": 0
        for link in box("dgx-2").snapshot.nvlink  # type: ignore[union-attr]
        if link.remote_bdf == bdf
    }


def test_number_of_nvswitches(tmp_path: Path) -> None:
    one = changed(tmp_path, without(NVSWITCHES[0]) | links_down(NVSWITCHES[0]), "dgx-2")
    assert said(box("dgx-2", DGX_2), "nvlink.nvswitches") == ["pass"]
    assert said(box(one, DGX_2), "nvlink.nvswitches") == ["fail"]
    assert said(box(one, DGX_2, "gpus"), "nvlink.nvswitches") == ["fail"]
    assert said(box(one), "nvlink.nvswitches") == ["skip no-reference"]
    fewer = replace(box(one, DGX_2, "gpus"), topology=box("dgx-1-v100").topology)
    assert said(fewer, "nvlink.nvswitches") == ["skip not-supported"]  # a board with fewer GPUs
    assert said(box(changed(tmp_path, without(NVSWITCHES[0]) | CONTAINER, "dgx-2"), DGX_2), "nvlink.nvswitches") == [
        "skip not-visible"
    ]


def test_an_nvswitch_to_which_links_lead_is_missing_without_a_profile(tmp_path: Path) -> None:
    gone = changed(tmp_path, without(NVSWITCHES[3]), "dgx-2")
    assert said(box(gone), "nvlink.nvswitches") == ["fail"]
    (found,) = findings(box(gone), "nvlink.nvswitches")
    assert [(each.kind, each.bdf) for each in found.blames] == [("nvswitch", NVSWITCHES[3])]


@pytest.mark.parametrize(
    ("target", "due"),
    [
        ({"missing": "absent"}, "fail"),
        ("../../../bus/pci/drivers/vfio-pci", "warn"),
        ({"missing": "denied"}, "skip no-permission"),
    ],
)
def test_driver_of_an_nvswitch(target: Json, due: str, tmp_path: Path) -> None:
    spec = changed(tmp_path, {f"link /sys/bus/pci/devices/{NVSWITCHES[1]}/driver": target}, "dgx-2")
    assert said(box(spec), "driver.bound", NVSWITCHES[1]) == [due]


@pytest.mark.parametrize(
    ("later", "due"),
    [({}, "pass"), ({"symbol_error": 2}, "pass"), ({"symbol_error": 3}, "warn"), ({"port_rcv_data": 1 << 40}, "pass"),
     ({"port_xmit_constraint_errors": 5000}, "warn")],
)  # fmt: skip
def test_errors_of_a_port_that_leads_to_nvswitches(later: dict[str, int], due: str, tmp_path: Path) -> None:
    where = "/sys/class/infiniband/mlx5_1/ports/1/counters"
    facts: dict[str, Json] = {f"text {where}/{name}": "0\n" for name in later}
    path = Path(changed(tmp_path, facts, "dgx-b200"))
    now = [{"at_s": 60, "facts": {where: {"text": {name: f"{count}\n" for name, count in later.items()}}}}]
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"later": now}), encoding="utf-8")
    code, document = judged(str(path))
    found = [each for each in document["findings"] if each["id"] == "nvlink.switch-port"]
    assert [each["status"] for each in found if each["subject"]["name"] == "mlx5_1/1"] == [due]
    assert code == (due == "warn")


def test_the_dma_functions_beside_the_gpus_are_evidence() -> None:
    (found,) = (each for each in judged("gb300-nvl72")[1]["findings"] if each["id"] == "network.dma-functions")
    assert found["evidence"][0]["value"] == "0008:03:00.0, 0009:03:00.0, 0018:03:00.0, 0019:03:00.0"


def of_model(base: str, *hcas: int) -> dict[str, Json]:
    """A ConnectX-6 in place of these HCAs."""
    found = [device for device in box(base).topology.devices if device.kind == "nic"]
    return {f"text /sys/bus/pci/devices/{found[number].bdf}/device": "0x101b\n" for number in hcas}


@pytest.mark.parametrize(
    ("base", "hcas", "due"),
    [
        ("hgx-h100", (), ["pass"]), ("hgx-h100", (1,), ["warn"]), ("hgx-h100", (1, 2), ["warn", "warn"]),
        ("hgx-h100", (0, 1, 2, 3), ["skip no-reference"]), ("dgx-b200", (), ["pass"]),
        ("l40s-x8", (), ["skip not-supported"]), ("dgx-a100", (), ["pass"]),
    ],
)  # fmt: skip
def test_another_model_among_adapters(base: str, hcas: tuple[int, ...], due: list[str], tmp_path: Path) -> None:
    assert said(box(changed(tmp_path, of_model(base, *hcas), base)), "network.hca-model") == due
