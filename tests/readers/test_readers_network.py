"""ibstatus, ibv_devinfo, ibv_devices and rdma link give the facts that the files of the same ports hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text
from readers_text import one, unread

from dgxcheck.readers.any_text import READERS
from dgxcheck.readers.combine import Part, combine
from dgxcheck.readers.network import counters, hcas
from dgxcheck.readers.network.files import physical, state

IB = "/sys/class/infiniband"
STATUS = """\
Infiniband device 'mlx5_0' port 1 status:
\tdefault gid:\t fe80:0000:0000:0000:0c42:a103:0012:3456
\tbase lid:\t 0x2a
\tsm lid:\t\t 0x1
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t 200 Gb/sec (4X HDR)
\tlink_layer:\t InfiniBand
"""
DEVINFO = """\
hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t20.38.1002
\tnode_guid:\t\t\t0c42:a103:0012:3456
\tdevice_cap_flags:\t\t0xed721c36
\t\t\t\t\tBAD_PKEY_CNTR
\t\t\t\t\tUnknown flags: 0xc0000000
\tcompletion timestamp_mask:\t\t\t0x7fffffffffffffff
\traw packet caps:
\t\t\t\t\tC-VLAN stripping offload
\ttag matching not supported
\tmaximum available device memory:\t131072Bytes
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tsm_lid:\t\t\t1
\t\t\tport_lid:\t\t42
\t\t\tlink_layer:\t\tInfiniBand
\t\t\tactive_width:\t\t4X (2)
\t\t\tactive_speed:\t\t50.0 Gbps (64)
\t\t\tphys_state:\t\tLINK_UP (5)
\t\t\tGID[  0]:\t\tfe80:0000:0000:0000:0c42:a103:0012:3456
"""
LINK = """\
link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 42 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP
link mlx5_1/1 state DOWN physical_state DISABLED netdev ens1f1np1
"""
DEVICES = """\
    device          \t   node GUID
    ------          \t----------------
    mlx5_0          \t0c42a10300123456
    mlx5_1          \t0c42a10300123457
"""
PORT = {
    "state": "4: ACTIVE\n", "phys_state": "5: LinkUp\n", "lid": "0x2a\n", "sm_lid": "0x1\n",
    "link_layer": "InfiniBand\n",
}  # fmt: skip
TEXTS = (
    (hcas.read_ibstatus, STATUS),
    (hcas.read_ibv_devinfo, DEVINFO),
    (counters.read_link, LINK),
    (hcas.read_ibv_devinfo, DEVICES),
)


@pytest.mark.parametrize(("read", "text"), TEXTS)
def test_every_line_is_read_and_by_one_reader(read: object, text: str) -> None:
    found = [part for reader in READERS for part in reader(tuple(text.splitlines()))]
    assert len(found) == 1
    assert unread(found, text) == []
    assert read in READERS


@pytest.mark.parametrize(("read", "text"), TEXTS[:3])
def test_the_same_port_has_the_same_files(read: object, text: str) -> None:
    facts = one(read, text).facts  # type: ignore[arg-type]
    files = {name: facts[f"text {IB}/mlx5_0/ports/1/{name}"] for name in PORT}
    assert files == PORT
    rate = facts.get(f"text {IB}/mlx5_0/ports/1/rate")
    assert rate == (None if read is counters.read_link else "200 Gb/sec (4X HDR)\n")


IBSTAT = "CA 'mlx5_{}'\n\tCA type: {}\n\tPort 1:\n\t\tState: Active\n\t\tRate: {}\n\t\tLink layer: InfiniBand\n"


@pytest.mark.parametrize(("kind", "rates", "slow"), [
    ("MT4123", (200, 200, 200, 100), {"mlx5_3/1"}), ("MT4123", (100, 100, 100, 200), set()),
    ("MT4123", (10, 200, 100, 50), {"mlx5_0/1"}), ("MT26428", (10, 10, 10, 10), set()), ("MT4123", ("x", 1, 2, 3), {
        "mlx5_1/1", "mlx5_2/1", "mlx5_3/1"}),
])  # fmt: skip
def test_the_rates_of_ports_of_one_kind(kind: str, rates: tuple[object, ...], slow: set[str]) -> None:
    """Below all others, or at most what the first InfiniBand had, which each Mellanox since ConnectX-3 exceeds."""
    facts = one(hcas.read_ibstat, "".join(IBSTAT.format(at, kind, rate) for at, rate in enumerate(rates))).facts
    assert {key.split()[2] for key, fact in facts.items() if isinstance(fact, dict)} == slow


@pytest.mark.parametrize(("members", "kind"), [
    ("\tvendor_id:\t0x02c9\n\tvendor_part_id:\t4123\n", "MT4123\n"),
    ("\tvendor_id:\t0x1d0f\n\tvendor_part_id:\t61345\n", None),
    ("\tvendor_id:\t0x02c9\n\tvendor_part_id:\tx\n", None), ("\tvendor_id:\t0x02c9\n", None),
])  # fmt: skip
def test_the_kind_of_an_hca(members: str, kind: str | None) -> None:
    text = DEVINFO.replace("\t\tport:", f"{members}\t\tport:")
    assert one(hcas.read_ibv_devinfo, text).facts.get(f"text {IB}/mlx5_0/hca_type") == kind
    without = "\n".join(line for line in text.splitlines() if "active_speed" not in line)
    assert f"text {IB}/mlx5_0/ports/1/rate" not in one(hcas.read_ibv_devinfo, without).facts


def test_a_port_of_one_lane_is_alone(tmp_path: Path) -> None:
    """No port of its kind runs faster, so that it is expected to have all its lanes."""
    _, found = of_text(DEVINFO.replace("4X (2)", "1X (1)"), tmp_path)
    assert "50 Gbit/s (HDR, 1 of 4 lanes), expected 200 Gbit/s (4 lanes)" in str(found["causes"])


def test_what_several_tools_list_is_put_together() -> None:
    parts = [Part("text", one(read, text)) for read, text in TEXTS]
    combined = combine(parts)
    assert not combined.refused
    assert combined.facts[f"names {IB}"] == ["mlx5_0", "mlx5_1"]
    assert combined.facts[f"text {IB}/mlx5_1/ports/1/phys_state"] == "3: Disabled\n"
    assert combined.facts[f"text {IB}/mlx5_1/ports/1/link_layer"] == "Ethernet\n"


def test_the_second_host_of_the_same_tool_is_another_machine() -> None:
    other = STATUS.replace("0x2a", "0x2b")
    assert (
        len(combine([Part("a", one(hcas.read_ibstatus, STATUS)), Part("b", one(hcas.read_ibstatus, other))]).refused)
        == 1
    )


@pytest.mark.parametrize("text", ["", "N/A", "PORT_", "4", "9: NONE", "up", "(5)"])
def test_words_that_name_no_state(text: str) -> None:
    assert state(text) is None
    assert physical(text) is None


def test_a_label_that_follows_other_text_is_not_the_ports() -> None:
    text = "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\nour switch:\n\t\tPhysical state: Disabled\n"
    found = one(hcas.read_ibstat, text)
    assert f"text {IB}/mlx5_0/ports/1/phys_state" not in found.facts
    assert unread([found], text) == [4, 5]


def test_ports_that_grep_left_without_a_heading() -> None:
    """A label that comes again is of the next port."""
    text = "CA 'mlx5_0'\n State: Active\n Rate: 400\nCA 'mlx5_1'\n State: Down\n Rate: 10\n State: Active\n Rate: 200\n"
    output = one(hcas.read_ibstat, text)
    folder = "/sys/class/infiniband"
    states = {key: value for key, value in output.facts.items() if key.endswith("/state")}
    assert list(states) == [f"text {folder}/{port}/state" for port in (
        "mlx5_0/ports/1", "mlx5_1/ports/1", "mlx5_1/ports/2")]  # fmt: skip
    assert [str(value)[:1] for value in states.values()] == ["4", "1", "4"]
    assert unread([output], text) == []
    text = "hca_id: mlx5_1\n state: PORT_DOWN (1)\n state: PORT_ACTIVE (4)\n"
    states = {key: value for key, value in one(hcas.read_ibv_devinfo, text).facts.items() if key.endswith("/state")}
    assert [(key.split("/")[6], str(value)[:1]) for key, value in states.items()] == [("1", "1"), ("2", "4")]
    assert unread([one(hcas.read_ibv_devinfo, f"{DEVICES}    mlx5_2  none\n")], f"{DEVICES}    mlx5_2  none\n") == [5]
