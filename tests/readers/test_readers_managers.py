"""What opensm and UFM log of the ports and nodes of a subnet."""

from __future__ import annotations

import pytest
from readers_text import one, unread

from dgxcheck.readers.host.cuda import read_cuda_errors
from dgxcheck.readers.model import Reader
from dgxcheck.readers.network import managers

HEAD = "Oct 12 09:12:14 001230 [5C7FE700] 0x02 -> "
CHANGED = "{}osm_spst_rcv_process: Switch 0xfc6a1c MF0;leaf1:MQM9700/U1 port 5{} changed state from {} to {}\n"
MEMBER = "{}{}: {} port with GUID:0xa088c20300050000 LID range [108, 108] of node:dgx05 mlx5_0\n"
EVENT = (
    "Oct 17 15:56:33 sm01 eventlog[30300]: WARNING - 2026-10-17 15:56:33.245 [5744] [112] {} [Hardware] IBPort"
    " [default(34) / Switch: leaf01 / NA / 16] [dev_id: fc6a1c0300b1c100]: {}\n"
)
PEER = " Peer info: Computer: gpu08 HCA-1 / 1."


def rows(reader: Reader, text: str) -> list[tuple[str, str, str]]:
    """Subject and topic, outcome and text of each result."""
    facts = one(reader, text).facts.items()
    return [(key.removeprefix("stated report "), str(fact["outcome"]), str(fact["text"]))
            for key, fact in facts if isinstance(fact, dict)]  # fmt: skip


def test_a_port_that_is_down_at_the_end_of_the_log() -> None:
    down = CHANGED.format(HEAD, " (sw1p5s1)", "ACTIVE", "DOWN")
    up = CHANGED.format(HEAD, "", "DOWN", "INIT")
    (row,) = rows(managers.read_opensm, down + up + down)
    assert row[1:] == ("note", "its link went down, 2 times in this log, and was down at its end")
    assert row[0].startswith("MF0.leaf1.MQM9700.U1/5 ")
    assert [row[2] for row in rows(managers.read_opensm, down)] == [
        "its link went down, 1 time in this log, and was down at its end",
    ]
    assert rows(managers.read_opensm, down + up) == [("host opensm-log", "pass", "")]


def test_a_node_that_left_the_subnet() -> None:
    gone = MEMBER.format(HEAD, "drop_mgr_remove_port", "Removed")
    back = MEMBER.format(HEAD, "state_mgr_report_new_ports", "Discovered new").replace("node:", "node: ")
    ((_, outcome, text),) = rows(managers.read_opensm, gone)
    assert (outcome, text[:13]) == ("note", "dgx05 mlx5_0 ")
    assert [outcome for _, outcome, _ in rows(managers.read_opensm, gone + back)] == ["pass"]


def test_a_sweep_of_opensm_is_no_error_of_cuda() -> None:
    line = f"{HEAD}do_sweep: Entering heavy sweep with flags: force_heavy_sweep 0, subnet initialization error 0"
    assert read_cuda_errors((line,)) == ()
    assert read_cuda_errors(("-> initialization error",)) != ()


DELTA = "counter delta threshold exceeded. Threshold is 200, calculated delta is 812."
VALUE = "counter threshold exceeded. Threshold is 5, received value is 19."


@pytest.mark.parametrize(
    ("level", "text", "outcome"),
    [
        ("WARNING", f"Symbol-Error {DELTA}", "warn"), ("MINOR", f"PortRcvErrors {VALUE}", "warn"),
        ("WARNING", f"Link-Downed {DELTA}", "note"), ("MINOR", f"PortXmitDiscards {VALUE}", "note"),
        ("CRITICAL", "Link is down", "note"),
        ("INFO", "Link is up", "pass"),
    ],
)  # fmt: skip
def test_the_events_of_ufm(level: str, text: str, outcome: str) -> None:
    event = EVENT.format(level, text + PEER)
    ((where, found, _),) = rows(managers.read_ufm, event)
    assert found == outcome
    assert where.startswith("host " if outcome == "pass" else "leaf01/16 ")
    assert unread([one(managers.read_ufm, event)], event) == []
    nowhere = event.replace("Switch: leaf01 / NA / 16", "fabric")
    assert [where.split()[0] for where, *_ in rows(managers.read_ufm, nowhere)] == ["host"]
    assert rows(managers.read_ufm, event.partition("245 ")[2]) == rows(managers.read_ufm, event)  # without its stamp
