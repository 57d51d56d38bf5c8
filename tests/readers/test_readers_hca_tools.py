"""``rdma statistic``, ``flint query``, ``sminfo`` and the summary of ibdiagnet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from readers_text import one, results, unread

from dgxcheck.assessment import Request, assess
from dgxcheck.readers.known import read_known
from dgxcheck.readers.model import Reader
from dgxcheck.readers.network import adapters, counters, ethtool, fabric, logs

STATISTIC = """\
link mlx5_0/1 rx_write_requests 12 rx_read_requests 0 out_of_sequence 4 packet_seq_err 0 local_ack_timeout_err {}
link mlx5_1/1 rx_write_requests 10 rx_read_requests 0 out_of_sequence 5 packet_seq_err 0 local_ack_timeout_err 1
"""
FLINT = """\
$ flint -d {} q
Image type:            FS4
FW Version:            {}
FW Release Date:       5.5.2024
Product Version:       28.39.1002
Rom Info:              type=UEFI version=14.32.17 cpu=AMD64,AARCH64
                       type=PXE  version=3.7.201 cpu=AMD64
Description:           UID                GuidsNumber
Base GUID:             b83fd20300aabbcc        4
Base MAC:              b83fd2aabbcc            4
Image VSD:             N/A
Device VSD:            N/A
PSID:                  {}
Security Attributes:   N/A

"""
SUMMARY = """\
-I- Fabric Discover finished successfully
Summary
-I- Stage                     Warnings   Errors     Comment
-I- Discovery                 0          0
-I- Links Check               0          0
-I- Subnet Manager            0          {}
-I- Port Counters             3          0
-I- Speed / Width checks      0          {}
"""


def reports(text: str, reader: Reader) -> dict[str, Any]:
    found = one(reader, text)
    return {key.removeprefix("stated report "): fact for key, fact in found.facts.items() if "report" in key}


def faults(text: str, folder: Path) -> list[tuple[str, str]]:
    path = folder / "text.txt"
    path.write_text(text)
    findings = assess(str(path), Request()).findings
    return [(each.subject.name, each.judgement.fault.word) for each in findings if each.judgement.fault]


def test_counters_of_every_port() -> None:
    text = STATISTIC.format(7)
    found = one(counters.read_statistic, text)
    assert unread([found], text) == []
    base = "/sys/class/infiniband/mlx5_0/ports/1/hw_counters"
    assert found.facts[f"text {base}/local_ack_timeout_err"] == "7\n"
    assert found.facts[f"names {base}"] == [
        "local_ack_timeout_err", "out_of_sequence", "packet_seq_err", "rx_read_requests", "rx_write_requests",
    ]  # fmt: skip
    assert counters.read_statistic(("link mlx5_0/1 state ACTIVE physical_state LINK_UP",)) == ()


def test_files_of_ports_as_grep_shows_them() -> None:
    """https://github.com/bytedance/byteps/issues/179"""
    base = "/sys/class/infiniband/mlx5_0/ports/1"
    text = f"{base}/hw_counters/lifespan:12\n{base}/hw_counters/packet_seq_err:401733\n{base}/state:4: ACTIVE\n"
    found = one(counters.read_files, text)
    assert unread([found], text) == []
    assert found.facts[f"text {base}/hw_counters/packet_seq_err"] == "401733\n"
    assert found.facts[f"text {base}/state"] == "4: ACTIVE\n"
    assert found.facts[f"names {base}/hw_counters"] == ["lifespan", "packet_seq_err"]
    note = reports(text, counters.read_files)["mlx5_0/1 files-of-ports-counters"]
    assert (note["outcome"], note["text"][:21]) == ("note", "packet_seq_err 401733")


def test_a_port_that_timed_out_more_than_the_others(tmp_path: Path) -> None:
    assert faults(STATISTIC.format(0), tmp_path) == []
    assert faults(STATISTIC.format(90_000_000), tmp_path) == [("mlx5_0/1", "transport-errors")]


def test_firmware_of_rdma_devices_is_compared_as_that_of_the_machine(tmp_path: Path) -> None:
    versions = ["28.39.1002", "28.39.1002", "28.35.2000"]
    text = "".join(FLINT.format(f"mlx5_{at}", version, "MT_0000000838") for at, version in enumerate(versions))
    found = one(adapters.read_firmware, text)
    assert found.facts["text /sys/class/infiniband/mlx5_2/fw_ver"] == "28.35.2000\n"
    assert found.facts["text /sys/class/infiniband/mlx5_2/board_id"] == "MT_0000000838\n"
    assert faults(text, tmp_path) == [("mlx5_2", "hca-firmware")]


def test_of_two_adapters_the_older_is_behind() -> None:
    text = "".join(FLINT.format(place, f"28.{place[0]}9.1002", "MT_0000000838") for place in ("18:00.0", "3b:00.0"))
    found = reports(text, adapters.read_firmware)
    assert {place: fact["outcome"] for place, fact in found.items()} == {
        "0000.18.00.0 flint-firmware": "warn", "0000.3b.00.0 flint-firmware": "pass",
    }  # fmt: skip


@pytest.mark.parametrize(("board", "odd"), [("MT_0000000838", 1), ("MT_0000000840", 0)])
def test_adapters_by_bus_id_are_compared_within_their_board(board: str, odd: int) -> None:
    first = "".join(FLINT.format(place, "28.39.1002", "MT_0000000838") for place in ("18:00.0", "3b:00.0"))
    found = reports(first + FLINT.format("9a:00.0", "28.35.2000", board), adapters.read_firmware)
    assert [fact["fault"] for fact in found.values() if fact["outcome"] == "warn"] == ["hca-firmware"] * odd
    assert len(found) == 3


def test_firmware_that_is_burned_and_does_not_run() -> None:
    """And what ``query full`` shows more."""
    both = "28.39.1002\nFW Version(Running):   28.36.1700\nMIC Version:           2.0.0"
    found = reports(FLINT.format("18:00.0", both, "MT_0000000838"), adapters.read_firmware)
    assert found["0000.18.00.0 flint-burned"]["outcome"] == "note"
    assert found["0000.18.00.0 flint-burned"]["text"].startswith("firmware 28.36.1700 runs, 28.39.1002 is burned")
    of_device = one(adapters.read_firmware, FLINT.format("mlx5_0", both, "MT_0000000838")).facts
    assert of_device["text /sys/class/infiniband/mlx5_0/fw_ver"] == "28.36.1700\n"


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("sminfo: sm lid 1 sm guid 0xb8599f0300000001, activity count 4242 priority 14 state 3 SMINFO_MASTER", "pass"),
        ("sminfo: sm lid 1 sm guid 0xb8599f0300000001, activity count 4242 priority 14 state 2 SMINFO_STANDBY", "warn"),
        ("sminfo: iberror: failed: query", "warn"),
        ("sminfo: iberror: failed: Failed to open '(null)' port '0'", "note"),
        ("src/ibnetdisc.c:1183; can't open MAD port ((null):0)", "note"),
        ("/usr/sbin/ibnetdiscover: iberror: failed: discover failed", "note"),
    ],
)
def test_the_subnet_manager(line: str, outcome: str) -> None:
    (found,) = reports(line, fabric.read_subnet).values()
    assert found["outcome"] == outcome
    assert (found["fault"] == "no-subnet-manager") == (outcome == "warn")


def test_the_stages_of_ibdiagnet() -> None:
    found = reports(SUMMARY.format(0, 0), fabric.read_subnet)
    assert {key: fact["text"] for key, fact in found.items() if fact["outcome"] != "pass"} == {
        "host ibdiagnet-port-counters": "Port Counters: 3 warnings"
    }
    assert found["host ibdiagnet-port-counters"]["outcome"] == "note"
    bad = reports(SUMMARY.format(1, 2), fabric.read_subnet)
    assert {fact["fault"] for fact in bad.values()} == {"", "no-subnet-manager", "port-slow"}
    assert unread([one(fabric.read_subnet, SUMMARY.format(1, 2))], SUMMARY.format(1, 2)) == []


LOGGED = """\
Port Counters
-E- Ports counters value Check finished with errors
-E- lid=0x0002 dev=54000 leaf1/U1/P5
         Performance Monitor counter     : Value
         symbol_error_counter            : 38821                       (threshold=1)

Speed / Width checks
-W- Links Width Check finished with errors
-W- Link: dgx03/U2/P1<-->leaf2/U1/P3 - Unexpected actual link width 1x

Nodes Information
-W- Nodes with non-latest firmware: dgx05/U1

Summary
-I- Stage                     Warnings   Errors     Comment
-I- Port Counters             0          1
-I- Nodes Information         1          0
-I- Speed / Width checks      1          0
"""


@pytest.mark.parametrize("ended", ["errors", "warnings"])
def test_which_link_ibdiagnet_means(ended: str) -> None:
    text = LOGGED.replace("Width Check finished with errors", f"Width Check finished with {ended}")
    found = {key.removeprefix("host ibdiagnet-"): fact for key, fact in reports(text, fabric.read_subnet).items()}
    assert {key: (fact["outcome"], fact["fault"], fact["text"].partition("; ")[2]) for key, fact in found.items()} == {
        "port-counters": ("warn", "port-errors", "lid=0x0002 dev=54000 leaf1/U1/P5, symbol_error_counter 38821"),
        "nodes-information": ("note", "", "Nodes with non-latest firmware: dgx05/U1"),
        "speed-width-checks": (
            "warn", "port-slow", "Link: dgx03/U2/P1<-->leaf2/U1/P3 - Unexpected actual link width 1x"),
    }  # fmt: skip
    assert unread([one(fabric.read_subnet, text)], text) == []


def test_errors_of_ibdiagnet_without_its_summary() -> None:
    text = "-I- Discovering ...\n-E- Subnet Manager: no master was found\n-W- lid=0x1: some warning\n"
    found = reports(text, fabric.read_subnet)
    assert [(fact["outcome"], fact["fault"]) for fact in found.values()] == [
        ("warn", "no-subnet-manager"),
        ("note", ""),
    ]
    assert fabric.read_subnet(("-E- something of another tool",)) == ()


MODULE = """\
# ethtool -m enp1s0f0np0
\tIdentifier                                : 0x1e (QSFP+ or later with CMIS)
\tVendor name                               : ACME
\tModule temperature                        : 81.00 degrees C / 177.80 degrees F
\tModule temperature high alarm             : On
\tRx power low alarm (Channel 1)            : On
\tLaser bias current high alarm (Channel 1) : Off
"""


def test_alarms_of_a_transceiver() -> None:
    found = reports(MODULE, ethtool.read_module)
    assert {(key.split()[0], fact["outcome"], fact["fault"]) for key, fact in found.items()} == {
        ("enp1s0f0np0", "warn", "port-module"), ("enp1s0f0np0", "note", "")
    }  # fmt: skip
    beside = reports(f"{MODULE}\tRx power low alarm (Channel 2)            : Off\n", ethtool.read_module)
    assert {fact["fault"] for fact in beside.values()} == {"port-module", "port-errors"}
    assert unread([one(ethtool.read_module, MODULE)], MODULE) == []
    identifier = next(line for line in MODULE.splitlines(keepends=True) if "Identifier" in line)
    assert reports(MODULE.replace(identifier, identifier * 2), ethtool.read_module) == found
    (good,) = reports(MODULE.replace(": On", ": Off"), ethtool.read_module).values()
    assert good["outcome"] == "pass"


NIC = """\
root@gpu3:~# ethtool -S ens6f0np0 | grep _phy
     rx_packets_phy: 98812341
     rx_crc_errors_phy: 99213
     link_down_events_phy: 37
     tx_pause_storm_error_events: 3
"""


def test_errors_that_a_port_of_ethernet_counts() -> None:
    (fact,) = reports(NIC, counters.read_statistic).values()
    assert fact["text"].startswith(
        "rx_crc_errors_phy 99213, link_down_events_phy 37, tx_pause_storm_error_events 3 in all")
    assert reports(NIC.replace("99213", "0").replace("37", "0").replace(": 3", ": 0"), counters.read_statistic) == {}


def test_the_list_of_lshca_is_known() -> None:
    text = f" Dev | Desc       | PN    | FW  | Driver\n{'-' * 60}\n #1  | ConnectX-7 | MC1   | 28  | mlx5_core"
    text += "\n   PCI_addr     | RDMA   | Net  | Port\n   0000:18:00.0 | mlx5_0 | ib0  | 1"
    assert unread(read_known(tuple(text.splitlines())), text) == []


RSHIM = """\
DISPLAY_LEVEL   2 (0:basic, 1:advanced, 2:log)
BOOT_MODE       0 (0:rshim, 1:emmc, 2:emmc-boot-swap)
DEV_NAME        pcie-0000:65:00.1
DEV_INFO        BlueField-3(Rev 1)
---------------------------------------
             Log Messages
---------------------------------------
 INFO[PSC]: PSC BL1 START
 ERR[BL1]: PSC error -60
"""


def test_a_boot_of_a_bluefield_that_failed() -> None:
    """NVIDIA's troubleshooting guide of BlueField."""
    found = one(logs.read_rshim, RSHIM)
    assert unread([found], RSHIM) == []
    assert results(found) == {"BlueField rshim-boot": ("warn", "hca-boot", 1)}
    assert results(one(logs.read_rshim, RSHIM.replace("ERR", "INFO"))) == {"host rshim-boot": ("pass", "", 1)}


QUERY = "Image type:            FS4\nFW Version:            28.39.1002\n{}PSID:                  MT_0000000838\n"


def test_what_stands_below_a_query_is_not_of_it() -> None:
    lines = "\nError: the GPU in slot 3 failed and was lost\n"
    found = one(adapters.read_firmware, QUERY.format("") + lines)
    assert unread([found], QUERY.format("") + lines) == [5]


def test_an_adapter_without_a_name_has_one_number() -> None:
    text = QUERY.format("FW Version(Running):   28.38.1002\n") + "\n" + QUERY.format("")
    found = results(one(adapters.read_firmware, text))
    assert {key.split()[0] for key in found} == {"adapter0", "adapter1"}
    assert found["adapter0 flint-burned"][0] == "note"


def test_a_name_that_is_none() -> None:
    line = "-E- Failed to query :/:/ device, error : MFE_CR_ERROR\n"
    assert [*results(one(adapters.read_firmware, line))] == ["HCA flint-query"]
