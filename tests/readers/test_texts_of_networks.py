"""What tools of adapters, ports and fabrics say: what health finds, its first step, and that all is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text
from readers_text import assert_read

WIDTHS = """\
-I- Stage                     Warnings   Errors     Comment
-I- Discovery                 0          0
-I- Speed / Width checks      0          2
"""
HUNDREDTH = "Settings for ens1f0np0:\n\tAdvertised link modes:  10000baseT/Full\n\tSpeed: {}Mb/s\n"
CABLE = "Settings for ens1f0np0:\n\tSpeed: 100000Mb/s\n\tPort: Direct Attach Copper\n\tLink detected: no\n"
OF_EFA = """\
libfabric:4517:1708520807::efa:cq:efa_rdm_txe_handle_error():737<warn> err: {}, message: {} My EFA addr: \
fi_addr_efa://[fe80::13]:0:1 My host id: i-0db7 Peer EFA addr: fi_addr_efa://[fe80::b8]:0:9 Peer host id: i-0ce6 (15)
libfabric:151205:1753871244::core:core:fi_getinfo_():1385<info> fi_getinfo: provider lnx returned -61
"""
"""prov/efa/src/rdm/efa_rdm_ope.c of libfabric, the whole line of aws-ofi-nccl issue 346."""
OFI = "ip-10-1-7-2:9:8 [5] NCCL WARN NET/OFI Request 0x7f completed with error. RC: 113. Error: 15 ({}). Length: 0\n"
UNREACHED, UNRESPONSIVE = "Unreachable remote - never received a response", "Unresponsive receiver (handshake failed)"
MODULE = """\
$ mlxlink -d {} -m

Operational Info
----------------
State                              : Active
Physical state                     : LinkUp
Speed                              : IB-NDR
Width                              : 4x

Troubleshooting Info
--------------------
Status Opcode                      : 0
Recommendation                     : No issue was observed

Tool Information
----------------
amBER Version                      : 6.4

Module Info
-----------
Temperature [C]                    : {}
Bias Current [mA]                  : 0,0,0,0 [0..0]
Attenuation (5g,7g,12g,25g)[dB]    : 0,0,0,0
Module State                       : {}
DataPath FW Fault                  : {}
Tx Fault [per lane]                : {}
Rx LOS [per lane]                  : 1,0,1,1
Rx CDR LOL [per lane]              : 1,1,1,1
"""
"""Lanes are shown as lost of a copper cable at work, too."""
ADAPTER = "/dev/mst/mt4129_pciconf0"
UCX_FATAL = """\
[n1:21:0:21] ib_mlx5_log.c:177  Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)
[n1:21:0:21] ib_mlx5_log.c:177  DCI QP 0xd16 wqe[6168]: SEND s-e [rqpn 0x17de rlid 7] [va 0x7f9f745c len 57 lkey 0x15]
==== backtrace (tid:     21) ====
 0  /usr/lib/libucs.so.0(ucs_handle_error+0x294) [0x7fada58370a4]
=================================
"""
UCX_INFO = """\
# Memory domain: mlx5_0
#     Component: ib
#      Transport: rc_mlx5
#       error handling: peer failure

#         Device: mlx5_0:1
"""
UNQUERIED = """\
Querying Mellanox devices firmware ...

Device #1:
----------

  Device Type:      ConnectX7
  PSID:             MT_0000000834
  PCI Device Name:  0000:b6:00.0
  Status:           Failed to open device

---------
-E- Failed to query 0000:b6:00.0 device, error : FwInit has failed!
"""
STAGES = """\
-E- Ports counters Difference Check finished with errors
-E- lid=0x0012 dev=54000 leaf-3/U1/P17 - "symbol_error_counter" increased during the run (difference value=22)
-W- host-a17/mlx5_4/1 - link is in wrong width 2x instead of 4x
-I- Stage                     Warnings   Errors     Comment
-I- Port Counters             0          1
-I- BER Check                 2          0
"""
INTERFACE = """\
Settings for ens6f0np0:
\tSupported ports: [ FIBRE ]
\tSupported link modes:   25000baseCR/Full
\t                        100000baseCR4/Full
\tAdvertised link modes:  25000baseCR/Full
\t                        100000baseCR4/Full
\tAdvertised FEC modes: RS
\tLink partner advertised link modes:  {}
\tLink partner advertised auto-negotiation: Yes
\tSpeed: {}
\tDuplex: Full
"""
MTU = "{0}: ens{0}f0np0: <BROADCAST,UP,LOWER_UP> mtu {1} qdisc mq state UP\n    link/ether a0:88:c2:5e:1a:0{0} brd ff\n"


def slow_beside(slow: str, usual: str, *more: str) -> str:
    """The settings of three ports and more whose switch advertises nothing."""
    speeds = (usual, usual, slow, *more)
    texts = (INTERFACE.format("Not reported", speed) for speed in speeds)
    return "".join(text.replace("ens6", f"ens{at}") for at, text in enumerate(texts))


SUBNET = """\
Nov 12 11:02:01 sm01 OpenSM[2011]: Entering MASTER state
Nov 12 11:02:31 sm01 OpenSM[2011]: {}
"""
TRAPS = """\
Nov 12 11:02:01 123456 [A1B2C3D4] 0x01 -> log_trap_info: Received Generic Notice type:1 num:{} (Local Link integrity \
threshold reached) Producer:2 (Switch) from LID:14 Port 17 TID:0x0000000000000004
Nov 12 11:02:32 323456 [A1B2C3D4] 0x02 -> SUBNET UP
"""
COUNTERS = """\
-{}- lid=0x0007 guid=0x001397030000006f dev=25418 Port=1
    Performance Monitor counter     : Value
    symbol_error_counter            : 0xffff (overflow)
    link_down_counter               : 0xf
"""
DIAGNOSED = """\
-E- MF0;leaf-3:MQM8700/U1/P17 - "link_down_counter" increased during the run (difference value=3,threshold=1)
-E- Ports counters Difference Check finished with errors
"""
PINGED = """\
Pong from node08.(none) (Lid 41): time 0.021 ms

--- node08.(none) (Lid 41) ibping statistics ---
10 packets transmitted, {} received, 0% packet loss, time 9001 ms
rtt min/avg/max = 0.018/0.021/0.030 ms
"""
"""ibping.c of infiniband-diags."""
LIMITED = """\
[   12.123556] mlx5_core 0000:5e:00.0: {1} Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x{0} link at \
0000:5d:01.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)
"""
OF_CONNECTX = """\
{}:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]
\tCapabilities: [60] Express (v2) Endpoint, MSI 00
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 32GT/s, Width x{}
"""
DEVLINK = """\
pci/0000:0c:00.0:
  reporter fw
    state healthy error 1 recover 1
  reporter fw_fatal
    state {} error 1 recover 0 last_dump_date 2026-05-01 last_dump_time 10:20:30 grace_period 1200000 auto_recover true
pci/0000:0c:00.0/1:
  reporter tx
    state {} error 2 recover 1 grace_period 500 auto_recover true auto_dump true
"""
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "UCX, fatal": (UCX_FATAL, ("fail transfer-unanswered inspect",)),
    "ucx_info -d": (UCX_INFO, ()),
    "ethtool without modes": (CABLE, ()),
    "ethtool, a hundredth": (HUNDREDTH.format(100), ("warn port-slow inspect",)),
    "ethtool, more than a hundredth": (HUNDREDTH.format(101), ()),
    "ibdiagnet, widths": (WIDTHS, ("warn port-slow inspect",)),
    "devlink, firmware": (DEVLINK.format("error", "healthy"), ("fail hca-fatal inspect",)),
    "devlink, a queue": (DEVLINK.format("healthy", "error"), ("warn hca-stalled inspect",)),
    "devlink, healthy": (DEVLINK.format("healthy", "healthy"), ()),
    "devlink and its adapter's port": (
        DEVLINK.format("error", "error") + "mlx5_core 0000:0c:00.0: device's health compromised - reached miss count\n",
        ("fail hca-unresponsive hca-fatal hca-stalled drain",)),
    "libfabric, unreachable": (OF_EFA.format(5, UNREACHED), ("fail transfer-unanswered inspect",)),
    "libfabric, an address": (OF_EFA.format(5, "Invalid address"), ("fail transfer-failed inspect",)),
    "libfabric, unknown": (OF_EFA.format(5, "Unknown error"), ("fail transfer-failed inspect",)),
    "libfabric, the other end stopped": (
        OF_EFA.format(5, "Connection was reset by remote peer"), ("warn transfer-failed inspect",)),
    "libfabric, locked memory": ("libfabric:1:2::efa:mr:efa_mr_reg_ibv_mr():519<warn> Unable to register MR of 4096"
                                 " bytes: Cannot allocate memory, ibv pid: 3\n", ("fail memlock change-setting",)),
    "libfabric, sound": (OF_EFA.splitlines()[-1], ()),
    "aws-ofi-nccl": (OFI.format(UNRESPONSIVE), ("fail transfer-unanswered inspect",)),
    "a copper cable": (MODULE.format(ADAPTER, "0 [0..0]", "Ready state", "0", "0,0,0,0"), ()),
    "a module": (MODULE.format("mlx5_0", "49 [-10..80]", "N/A", "N/A", "N/A"), ()),
    "a hot module": (MODULE.format("mlx5_0", "84 [-10..80]", "Ready state", "0", "0,0,0,0"),
                     ("warn port-module inspect",)),
    "a module whose firmware failed": (MODULE.format("mlx5_0", "49 [-10..80]", "Fault state", "1", "0,0,0,0"),
                                       ("warn port-module inspect",)),
    "a module without light": (MODULE.format("mlx5_0", "49 [-10..80]", "Ready state", "0", "0,0,1,0"),
                               ("warn port-module inspect",)),
    "mlxfwmanager": (UNQUERIED, ()),
    "ibdiagnet": (STAGES, ("warn port-errors inspect",)),
    "ethtool": (INTERFACE.format("25000baseCR/Full 100000baseCR4/Full", "25000Mb/s"), ("warn port-slow inspect",)),
    "ethtool, good": (INTERFACE.format("25000baseCR/Full 100000baseCR4/Full", "100000Mb/s"), ()),
    "ethtool of a slower switch": (INTERFACE.format("25000baseCR/Full", "25000Mb/s"), ()),
    "ethtool, no faster mode in common": (INTERFACE.format("10000baseCR/Full 40000baseCR4/Full", "10000Mb/s"), ()),
    "ethtool without the other end": (INTERFACE.format("Not reported", "25000Mb/s"), ()),
    "ethtool at a thousandth": (INTERFACE.format("Not reported", "100Mb/s"), ("warn port-slow inspect",)),
    "ethtool, one below the others": (slow_beside("25000Mb/s", "100000Mb/s"), ("warn port-slow inspect",)),
    "ethtool, two below the others": (slow_beside("25000Mb/s", "100000Mb/s", "25000Mb/s"), ()),
    "ethtool, all alike": (slow_beside("25000Mb/s", "25000Mb/s"), ()),
    "ethtool, slow ports": (slow_beside("1000Mb/s", "10000Mb/s").replace("25000base", "10000base").replace(
        "100000base", "1000base"), ()),
    "ip link, one of another MTU": ("".join(map(MTU.format, (1, 2, 3, 4), (9000, 9000, 9000, 1500))),
                                    ("warn port-setting drain",)),
    "ip link, good": ("".join(map(MTU.format, (1, 2, 3, 4), (9000,) * 4)), ()),
    "ethtool without a link": (INTERFACE.format("Not reported", "Unknown!"), ()),
    "grep of ibv_devinfo": (
        "hca_id:\tmlx5_0\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tlink_layer:\t\tInfiniBand\n"
        "hca_id:\tmlx5_1\n\t\t\tstate:\t\t\tPORT_INIT (2)\n\t\t\tlink_layer:\t\tInfiniBand\n",
        ("warn no-subnet-manager inspect",)),
    "opensm": (SUBNET.format("SUBNET UP"), ()),
    "opensm, with errors": (SUBNET.format("Errors during initialization"), ()),
    "opensm without its port": (SUBNET.format("SM port is down"), ("warn no-subnet-manager inspect",)),
    "opensm.log": (TRAPS.format(129), ("warn port-errors inspect",)),
    "opensm.log, a link that changed": (TRAPS.format(128), ()),
    "ibdiagnet of ibutils": (COUNTERS.format("E"), ("warn port-errors inspect",)),
    "ibdiagnet of ibutils, a warning": (COUNTERS.format("W"), ()),
    "ibdiagnet without its summary": (DIAGNOSED, ("warn port-errors inspect",)),
    "ibping": (PINGED.format(10), ()),
    "ibping, half of it": (PINGED.format(5), ("warn transfer-unanswered inspect",)),
    "ibping, nobody answers": (PINGED.format(0), ()),
    "a ConnectX": (OF_CONNECTX.format("5e", 4), ("warn link-unseen inspect",)),
    "the kernel, of a ConnectX with four lanes": (LIMITED.format(4, "126.024"), ("warn link-unseen inspect",)),
    "the kernel, of lanes that are back": (
        LIMITED.format(4, "126.024") + LIMITED[: LIMITED.index(", lim")].format("", "504.112")
        + " (32.0 GT/s PCIe x16 link)\n", ()),
    "the kernel, of one in a slot of an older generation": (
        LIMITED.format(16, "126.024").replace("by 32.0", "by 8.0"), (),
    ),
    "the kernel, of one whose link did not train up": (
        LIMITED.format(16, "31.504").replace("by 32.0", "by 2.5"), ("warn link-unseen inspect",),
    ),
    "the kernel, of one with half of them": (LIMITED.format(8, "252.048"), ()),
    "a ConnectX with half of its lanes": (OF_CONNECTX.format("5e", 8), ()),
    "a ConnectX with half of its lanes beside two": (
        "".join(OF_CONNECTX.format(*each) for each in (("3e", 16), ("4e", 16), ("5e", 8))),
        ("warn link-unseen inspect",)),
}  # fmt: skip
"""By text: of each cause severity, faults and first step."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text(name: str, tmp_path: Path) -> None:
    assert_read(EXPECTED[name], tmp_path)


def test_firmware_that_does_not_answer_is_no_pass(tmp_path: Path) -> None:
    assert of_text(UNQUERIED, tmp_path)[1]["verdict"] == "unknown"


@pytest.mark.parametrize("device", ["mlx5_0", ADAPTER, "0000:1a:00.0"])
def test_an_adapter_is_asked_by_the_name_that_the_tool_takes(device: str, tmp_path: Path) -> None:
    _, found = of_text(MODULE.format(device, "84 [-10..80]", "Ready state", "0", "0,0,0,0"), tmp_path)
    (action, *_) = found["causes"][0]["actions"]
    assert action["commands"] == [["mlxlink", "-d", device, "-m", "-c"]]


def test_the_first_port_that_a_stage_of_ibdiagnet_names(tmp_path: Path) -> None:
    _, found = of_text(STAGES, tmp_path)
    messages = [each["message"] for each in found["findings"] if each["status"] == "warn"]
    assert len(messages) == 1
    assert 'Port Counters: 1 error; lid=0x0012 dev=54000 leaf-3/U1/P17 - "symbol_error_counter"' in messages[0]
