"""HCAs and their ports: ibstat, ibstatus, ibv_devinfo, ibv_devices, ibdev2netdev.

``ibv_devinfo``, also with ``-v``, and ``ibv_devices``: what libibverbs tells of HCAs and their ports.

Width and speed of a port stand in the output of ``-v`` alone.
"""

from __future__ import annotations

import re

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.infiniband import SDR
from dgxcheck.facts.sysfs import INFINIBAND
from dgxcheck.facts.typical import gathered, odd_one
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern, caseless_pattern
from dgxcheck.readers.model import Imported
from dgxcheck.readers.network.files import (
    NAME,
    PortsPart,
    device_files,
    guid,
    lid,
    physical,
    port_files,
    rate,
    state,
    worded,
)
from dgxcheck.readers.values import bare, bounded, integer, numbered, squeezed
from dgxcheck.readers.wording import results, rows, wordings

_IBSTAT_DEVICE = ascii_pattern(rf"CA '({NAME})'")
_IBSTAT_PORT = ascii_pattern(r"Port (\d{1,3}):")
_GONE = ascii_pattern(rf"ibpanic: \[\d{{1,10}}\] \w{{1,40}}: (?P<what>.{{1,80}}'(?P<device>{NAME})'.{{1,120}})")
"""A device that is still listed, but whose files cannot be read because its driver released it."""
_MEMBERS = gathered(((row["tool"], row["of"]), (row["label"], row["file"])) for row in rows("network/members"))
_OF_HCA, _OF_PORT = dict(_MEMBERS["ibstat", "device"]), dict(_MEMBERS["ibstat", "port"])
"""Files by what a tool calls them; empty for what has none."""
_MOST_GBIT = 6400


def read_ibstat(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Rates only of ports beside others of their kind, and of those at SDR: ``ibstat`` tells neither lanes nor
    generation."""
    part = PortsPart("ibstat")
    device, port, own, kind = "", 0, "", ""
    speed: int | None = None
    rates: dict[tuple[str, int], dict[str, int]] = {}
    for number, line in numbered(lines, bare):
        label, colon, value = line.partition(":")
        if match := _IBSTAT_DEVICE.fullmatch(line):
            device, port, own = match[1], 0, ""
            part.ports.setdefault(device, [])
        elif match := _GONE.fullmatch(line):
            part.add(match["device"], "device", "warn", Fault.HCA_UNLISTED, match["what"])
        elif device and (match := _IBSTAT_PORT.fullmatch(line)):
            port, own, speed = int(match[1]), "heading", None
            part.add_port(device, port, {})
        elif device and colon and (label in _OF_HCA or label in _OF_PORT):
            if _OF_PORT.get(label) and own in ("", label):  # of an output without its headings, as grep leaves it
                port, own, speed = port + 1, label, None
                part.add_port(device, port, {})
            kind = value.strip() if label == "CA type" else kind
            speed = integer(value.strip(), _MOST_GBIT) if label == "Rate" else speed
            active = part.found.get(f"text {INFINIBAND}/{device}/ports/{port}/state") == "4: ACTIVE\n"
            if active and label == "Link layer" and value.strip() == "InfiniBand" and speed is not None:
                rates.setdefault((kind, port), {})[f"{device}/{port}"] = speed
            if file := (_OF_PORT if port else _OF_HCA).get(label):
                files = worded(file, value.strip())
                part.found |= port_files(device, port, files) if port else device_files(device, files)
        else:
            device = device if not line else ""
            continue
        part.lines.add(number)
    for (kind, _), alike in rates.items():
        odd = {where: usual for where, slow, usual in odd_one(alike, fewest=2) if slow < usual}
        for where, slow in alike.items():
            if where in odd:
                text = f"Rate {slow}, that of the others of {kind} is {odd[where]}"
                part.add(where, "rate", "warn", Fault.PORT_SLOW, text)
            elif slow <= SDR and kind.startswith("MT4"):
                part.add(where, "rate", "warn", Fault.PORT_SLOW, f"Rate {slow}, SDR at most: {kind} can do more")
    return part.imported()


_IBSTATUS_HEAD = LazyPattern(rf"Infiniband device '({NAME})' port (\d{{1,3}}) status:", flags=re.IGNORECASE | re.ASCII)
_OF_IBSTATUS = dict(_MEMBERS["ibstatus", "port"])


def read_ibstatus(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every port that it lists."""
    part = PortsPart("ibstatus")
    device, port = "", 0
    for number, line in numbered(lines, bare):
        label, _, value = (each.strip() for each in line.partition(":"))
        if match := _IBSTATUS_HEAD.fullmatch(line):
            device, port = match[1], int(match[2])
            part.add_port(device, port, {})
        elif device and label in _OF_IBSTATUS:
            if file := _OF_IBSTATUS[label]:
                part.found |= port_files(device, port, worded(file, value))
        else:
            device = device if not line else ""
            continue
        part.lines.add(number)
    return part.imported()


_IBV_DEVINFO_DEVICE = ascii_pattern(rf"hca_id:\s+({NAME})")
_IBV_DEVINFO_PORT = ascii_pattern(r"port:\s+(\d{1,3})")
_MEMBER = ascii_pattern(r"([A-Za-z][\w-]{1,40}(?:\[\s{0,3}\d{1,4}\])?):\s*(\S.{0,300})?")
_FLAG = ascii_pattern(r"\w[\w -]{2,60}(?::\s{0,40}\w{0,20})?|\d{1,20}(?:ns|us|ms|kHZ|KHz)?")
"""What ``-v`` prints below a member: capabilities, with names of several words
(https://github.com/linux-rdma/rdma-core/blob/master/libibverbs/examples/devinfo.c)."""
_GUID = caseless_pattern(r"[0-9a-f]{16}")
_WIDTH = ascii_pattern(r"(\d{1,2})X \(\d{1,3}\)")
_SPEED = ascii_pattern(r"(\d{1,3}\.\d) Gbps \(\d{1,4}\)")
_LAYERS = {"infiniband": "InfiniBand", "ethernet": "Ethernet"}
_LIST_HEAD = ["device", "node", "GUID"]
_LISTED = ascii_pattern(rf"-{{2,20}}\s{{1,20}}-{{2,20}}|(?P<device>{NAME})\s{{1,60}}(?P<guid>[0-9a-f]{{16}})")
_OF_LIBRARY = wordings("network/results", "libibverbs")
"""libibverbs and its examples, perftest, and ibstatus of infiniband-diags (https://github.com/linux-rdma/rdma-core)."""
_AROUND_NONE = LazyPattern(r"Did not detect devices|If device exists, check if driver is up|Failed to open device")


def read_ibv_devinfo(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Both tools; a device without ``hca_id:`` above its members is nobody's. What programs of libibverbs say where
    they find no device."""
    return (
        *_info(lines),
        *_list(lines),
        *results("libibverbs", _OF_LIBRARY, numbered(lines, bare), beside=_AROUND_NONE),
    )


def _info(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    part = PortsPart("ibv_devinfo")
    device, port = "", 0
    blocks: list[tuple[str, int, dict[str, str]]] = []
    for number, raw in enumerate(bounded(lines)):
        line = bare(raw)
        if match := _IBV_DEVINFO_DEVICE.fullmatch(line):
            device, port = match[1], 0
            blocks.append((device, port, {}))
        elif device and (match := _IBV_DEVINFO_PORT.fullmatch(line)):
            port = int(match[1])
            blocks.append((device, port, {}))
        elif device and (match := _MEMBER.fullmatch(line)):
            if match[1] == "state" and (not port or "state" in blocks[-1][2]):  # grep left out the line of the port
                port += 1
                blocks.append((device, port, {}))
            blocks[-1][2].setdefault(match[1], (match[2] or "").strip())
        elif not (device and blocks[-1][2] and raw[:1] in " \t" and _FLAG.fullmatch(line)):
            device = "" if line else device
            part.beside.update([number] if _AROUND_NONE.fullmatch(line) else [])
            continue
        part.lines.add(number)
    model = ""
    mtus: dict[tuple[str, str], dict[str, str]] = {}
    for device, port, members in blocks:
        if not port:
            model = members.get("vendor_part_id", "")
            part.ports.setdefault(device, [])
            part.found |= device_files(device, _ibv_devinfo_of_device(members))
            continue
        part.add_port(device, port, _ibv_devinfo_of_port(members))
        if "PORT_ACTIVE" in members.get("state", "") and members.get("active_mtu"):
            alike = mtus.setdefault((model, members.get("link_layer", "")), {})
            alike[f"{device}/{port}"] = members["active_mtu"].partition(" ")[0]
    for alike in mtus.values():
        for where, mtu, usual in odd_one(alike):
            part.add(where, "mtu", "warn", Fault.PORT_SETTING, f"active MTU {mtu}, {usual} at the others of its kind")
    return part.imported()


def _ibv_devinfo_of_device(members: dict[str, str]) -> dict[str, str | None]:
    part = members.get("vendor_part_id", "")
    mellanox = members.get("vendor_id", "") == "0x02c9" and part.isascii() and part.isdecimal()
    board = members.get("board_id", "")  # its kind (PSID, ``MT_0000000223``), or the number of a single one
    return {
        "hca_type": f"MT{part}" if mellanox else None,  # as mlx5_ib words it
        "fw_ver": members.get("fw_ver"), "board_id": None if _GUID.search(board) else board,
        "node_guid": guid(members.get("node_guid", "")), "sys_image_guid": guid(members.get("sys_image_guid", "")),
    }  # fmt: skip


def _ibv_devinfo_of_port(members: dict[str, str]) -> dict[str, str | None]:
    width = _WIDTH.fullmatch(members.get("active_width", ""))
    speed = _SPEED.fullmatch(members.get("active_speed", ""))
    return {
        "state": state(members.get("state", "")), "phys_state": physical(members.get("phys_state", "")),
        "lid": lid(members.get("port_lid", "")), "sm_lid": lid(members.get("sm_lid", "")),
        "link_layer": _LAYERS.get(members.get("link_layer", "").lower()),
        "rate": rate(int(width[1]), float(speed[1])) if width and speed else None,
    }  # fmt: skip


def _list(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Two columns below ``device  node GUID`` and its rule: names, and GUIDs of 16 digits."""
    part = PortsPart("ibv_devices")
    below = False
    for number, line in numbered(lines, bare):
        if line.split() == _LIST_HEAD:
            below = True
        elif below and (row := _LISTED.fullmatch(line)):
            if row["device"]:
                part.ports[row["device"]] = []
                part.found |= device_files(row["device"], {"node_guid": guid(row["guid"])})
        else:
            below = below and not line
            continue
        part.lines.add(number)
    return part.imported()


_ROW = ascii_pattern(
    rf"(?:[0-9a-f:.]{{7,16}} )?(?P<device>{NAME}) (?:\(.{{1,120}}\) )?(?:\S.{{0,120}} fw \S{{1,40}} )?port"
    r" (?P<port>\d{1,3}) (?:\((?P<state>\S{1,10}?) ?\) )?==> (?P<name>[\w.-]{1,32}) \((?P<interface>Up"
    r"|Down)\)(?: #.{0,200})?"
)


_FEWEST = 3
"""Others that say what is usual."""


def read_ibdev2netdev(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The ports, and their states as ``-v`` gives them.

    An interface that is up has a port that is ACTIVE; one that is down may be unconfigured on a port that is, which is
    to be looked at where it is the only one of IP over InfiniBand.
    """
    part = PortsPart("ibdev2netdev")
    rows = [*part.matches(_ROW, numbered(lines, squeezed))]
    of_ipoib = [row["interface"] for row in rows if row["name"].startswith("ib")]
    alone = of_ipoib.count("Down") == 1 and len(of_ipoib) > _FEWEST
    for match in rows:
        device, port = match["device"], int(match["port"])
        active = "ACTIVE" if match["interface"] == "Up" else ""
        part.add_port(device, port, {"state": state(match["state"] or active)})
        if match["interface"] == "Down" and not match["state"]:
            fault = Fault.PORT_DOWN if alone and match["name"].startswith("ib") else None
            what = "alone of all; see ibstat" if fault else "which says nothing of the port itself"
            text = f"its network interface {match['name']} is down, {what}"
            part.add(f"{device}/{port}", "interface", "unknown" if fault else "note", fault, text)
    return part.imported()
