"""mlxconfig, mlnx_qos, show_gids and ip link: what one adapter or port alone has otherwise than the others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from readers_text import one, unread

from dgxcheck.readers.any_text import READERS
from dgxcheck.readers.model import Reader
from dgxcheck.readers.network import hcas, settings

ADAPTER = """\

Device #{0}:
----------

Device type:    ConnectX7
Name:           MCX75310AAS-NEA_Ax
Description:    NVIDIA ConnectX-7 HHHL Adapter card; 400GbE / NDR IB (default mode); Single-port OSFP
Device:         {0}a:00.0

Configurations:                                      Next Boot
        SRIOV_EN                                    False(0)
        PCI_WR_ORDERING                             {1}
        LINK_TYPE_P1                                {2}
"""
QOS = """\
root@gpu07:~# mlnx_qos -i ens{}f0np0
DCBX mode: OS controlled
Priority trust state: {}
dscp2prio mapping:
\tprio:0 dscp:07,06,05,04,03,02,01,00,
default priority:
Receive buffer size (bytes): 130944,130944,0,0,0,0,0,0,max_buffer_size=262016
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   {}   0   0   0   0
\tbuffer      0   0   0   1   0   0   0   0
tc: 0 ratelimit: unlimited, tsa: vendor
\t priority:  0
"""
GIDS_HEAD = """\
DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV
---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---
"""
GIDS = """\
mlx5_{0}\t1\t0\tfe80:0000:0000:0000:a288:c2ff:fe5e:1a0{0}\t\t\tv1\tens{0}f0np0
mlx5_{0}\t1\t1\tfe80:0000:0000:0000:a288:c2ff:fe5e:1a0{0}\t\t\tv2\tens{0}f0np0
"""
ROUTED = "mlx5_{0}\t1\t3\t0000:0000:0000:0000:0000:ffff:0a0{0}:0107\t10.{0}.1.7  \tv2\tens{0}f0np0\n"
LINK = """\
{0}: ens{0}f0np0: <{1}> mtu {2} qdisc mq state UP mode DEFAULT group default qlen 1000
    link/ether a0:88:c2:5e:1a:0{0} brd ff:ff:ff:ff:ff:ff
    RX:   bytes    packets  errors dropped  missed   mcast
    9182734981273  912837412  {3}  18       0   12312
    TX:   bytes    packets  errors dropped carrier collsns
    8192734981237  891237412       0       0       0       0
    altname enp{0}s0f0np0
"""
UP = "BROADCAST,MULTICAST,UP,LOWER_UP"


def odd_of(reader: Reader, text: str) -> list[tuple[str, str, str]]:
    """Subject, outcome and text of what is not sound."""
    found = one(reader, text)
    assert unread([found], text) == []
    return [(key.split()[2], str(fact["outcome"]), str(fact["text"]))
            for key, fact in found.facts.items() if isinstance(fact, dict) and fact["outcome"] != "pass"]  # fmt: skip


def adapters(orders: Sequence[str], types: Sequence[str]) -> str:
    return "".join(ADAPTER.format(at, *each) for at, each in enumerate(zip(orders, types, strict=True), 1))


def test_a_parameter_of_one_adapter_alone() -> None:
    usual = "per_mkey(0)"
    text = adapters([usual] * 3 + ["force_relax(1)"], ["IB(1)"] * 4)
    assert odd_of(settings.read_mlxconfig, text) == [
        ("0000.4a.00.0", "warn", "PCI_WR_ORDERING force_relax(1), per_mkey(0) at the others"),
    ]  # fmt: skip
    assert odd_of(settings.read_mlxconfig, adapters([usual] * 4, ["IB(1)"] * 4)) == []
    assert odd_of(settings.read_mlxconfig, adapters([usual] * 2 + ["force_relax(1)"] * 2, ["IB(1)"] * 4)) == []


@pytest.mark.parametrize(("many", "odd"), [(64, 1), (65, 0)])
def test_so_many_adapters_are_compared(many: int, odd: int) -> None:
    text = adapters(["per_mkey(0)"] * (many - 1) + ["force_relax(1)"], ["IB(1)"] * many).replace("a:00.0", ":00.0")
    assert len(odd_of(settings.read_mlxconfig, text)) == odd


def test_an_adapter_of_another_network_is_not_compared() -> None:
    text = adapters(["per_mkey(0)"] * 3 + ["force_relax(1)"], ["IB(1)"] * 3 + ["ETH(2)"])
    assert odd_of(settings.read_mlxconfig, text) == []


def test_flow_control_of_one_port_alone() -> None:
    good = "".join(QOS.format(port, "dscp", 1) for port in (1, 2, 3))
    odd = QOS.format(4, "pcp", 0)
    assert odd_of(settings.read_qos, good + odd) == [
        ("ens4f0np0", "warn",
         "trust state pcp, PFC of priority none; trust state dscp, PFC of priority 3 at the other ports"),
    ]  # fmt: skip
    assert odd_of(settings.read_qos, good) == []
    of_board = odd_of(settings.read_qos, good + odd.replace("ens4f0np0", "eno4"))
    assert {outcome for _, outcome, _ in of_board} == {"note"}
    assert odd_of(settings.read_qos, "".join(odd.splitlines(keepends=True)[1:])) == []
    of_two = odd_of(settings.read_qos, QOS.format(1, "dscp", 1) + odd)
    assert [(port, outcome) for port, outcome, _ in of_two] == [("ens1f0np0", "note"), ("ens4f0np0", "note")]


def test_a_port_without_an_address_for_rdma() -> None:
    every = [GIDS.format(at) + ROUTED.format(at) for at in (0, 1, 2, 3)]
    assert odd_of(settings.read_gids, GIDS_HEAD + "".join(every) + "n_gids_found=12\n") == []
    ((port, outcome, _),) = odd_of(settings.read_gids, GIDS_HEAD + "".join(every[:3]) + GIDS.format(3))
    assert (port, outcome) == ("mlx5_3/1", "note")
    assert odd_of(settings.read_gids, GIDS_HEAD + GIDS.format(0) + GIDS.format(1)) == []
    alone = [GIDS.format(at) for at in (0, 1, 2)]
    assert odd_of(settings.read_gids, GIDS_HEAD + "".join(alone) + every[3]) == []
    ((port, _, _),) = odd_of(settings.read_gids, GIDS_HEAD + "".join(every[:3]) + every[3].replace("  \tv2", "  \tv1"))
    assert port == "mlx5_3/1"
    before = ROUTED.format(3) + GIDS.format(3)  # what comes later takes nothing away
    assert odd_of(settings.read_gids, GIDS_HEAD + "".join(every[:3]) + before) == []


@pytest.mark.parametrize(
    ("flags", "mtu", "errors", "found"),
    [
        (UP, 9000, 0, []), (UP, 1500, 0, [("ens4f0np0", "warn", "MTU 1500, 9000 at the others like it")]),
        (UP, 9000, 7, [("ens4f0np0", "note", "RX errors 7 in all; read them again in an hour: growth is what counts")]),
        ("NO-CARRIER,BROADCAST,MULTICAST,UP", 1500, 0,
         [("ens4f0np0", "note", "it is up and has no carrier: see whether it is to have a cable")]),
    ],
)  # fmt: skip
def test_interfaces(flags: str, mtu: int, errors: int, found: list[tuple[str, str, str]]) -> None:
    good = "".join(LINK.format(at, UP, 9000, 0) for at in (1, 2, 3))
    assert odd_of(settings.read_ip_link, good + LINK.format(4, flags, mtu, errors)) == found


def test_interfaces_of_other_kinds() -> None:
    """Of a network of storage or management, which has a name of its own, and of containers."""
    good = "".join(LINK.format(at, UP, 9000, 0) for at in (1, 2, 3))
    other = LINK.format(5, UP, 1500, 3)
    assert odd_of(settings.read_ip_link, good + other.replace("ens5f0np0", "docker0")) == []
    (row,) = odd_of(settings.read_ip_link, good + other.replace("ens5f0np0", "eno5"))
    assert row[:2] == ("eno5", "note")
    assert odd_of(settings.read_ip_link, good + other.replace("ens5f0np0:", "vetha@if4:")) == []


@pytest.mark.parametrize("text", [
    ADAPTER.format(1, "per_mkey(0)", "IB(1)"), QOS.format(1, "dscp", 1), GIDS_HEAD + GIDS.format(0),
    LINK.format(1, UP, 9000, 0),
])  # fmt: skip
def test_one_reader_reads_it(text: str) -> None:
    assert len([part for reader in READERS for part in reader(tuple(text.splitlines()))]) == 1


DEVICE = """\
hca_id:\tmlx5_{}
\tvendor_part_id:\t\t\t4129
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_{} (4)
\t\t\tactive_mtu:\t\t{} (5)
\t\t\tlink_layer:\t\tEthernet

"""


@pytest.mark.parametrize(("state", "mtu", "others", "odd"), [
    ("ACTIVE", 1024, 3, True), ("ACTIVE", 4096, 3, False), ("DOWN", 1024, 3, False), ("ACTIVE", 1024, 2, False),
])  # fmt: skip
def test_the_mtu_of_a_port_of_rdma(state: str, mtu: int, others: int, odd: bool) -> None:
    text = "".join(DEVICE.format(at, "ACTIVE", 4096) for at in range(others)) + DEVICE.format(7, state, mtu)
    facts = one(hcas.read_ibv_devinfo, text).facts
    found = [(key.split()[2], fact["text"]) for key, fact in facts.items() if isinstance(fact, dict)]
    assert found == [("mlx5_7/1", "active MTU 1024, 4096 at the others of its kind")] * odd
