"""``ibv_devinfo``, also with ``-v``, and ``ibv_devices``: what libibverbs tells of HCAs and their ports.

Width and speed of a port stand in the output of ``-v`` alone.
"""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.readers.model import Imported
from dgxcheck.readers.network.files import (
    NAME,
    device_files,
    guid,
    lid,
    listed,
    physical,
    port_files,
    rate,
    state,
)
from dgxcheck.readers.values import bare, bounded

TOOL = "ibv_devinfo"
LIST = "ibv_devices"
_DEVICE = re.compile(rf"hca_id:\s+({NAME})", re.ASCII)
_PORT = re.compile(r"port:\s+(\d{1,3})", re.ASCII)
_MEMBER = re.compile(r"([A-Za-z][\w-]{1,40}(?:\[\s{0,3}\d{1,4}\])?):\s*(\S.{0,300})?", re.ASCII)
_FLAG = re.compile(
    r"[A-Z][A-Z0-9_ ]{2,60}|Unknown flags: 0x[0-9A-Fa-f]{1,16}|\d{1,20}(?:ns|us|ms|kHZ|KHz)?|[\w-]{1,60}:", re.ASCII
)
"""What ``-v`` prints below a member: names of capabilities."""
_GUID = re.compile(r"[0-9a-f]{16}", re.IGNORECASE)
_WIDTH = re.compile(r"(\d{1,2})X \(\d{1,3}\)", re.ASCII)
_SPEED = re.compile(r"(\d{1,3}\.\d) Gbps \(\d{1,4}\)", re.ASCII)
_LAYERS = {"infiniband": "InfiniBand", "ethernet": "Ethernet"}
_HEAD = ["device", "node", "GUID"]


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Both tools; a device without ``hca_id:`` above its members is nobody's."""
    return (*_info(lines), *_list(lines))


def _info(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    facts: dict[str, Json] = {}
    ports: dict[str, list[int]] = {}
    understood: set[int] = set()
    device, port = "", 0
    members: dict[str, str] = {}

    def close() -> None:
        if device:
            facts.update(_of_port(device, port, members) if port else _of_device(device, members))
        members.clear()

    for number, raw in enumerate(bounded(lines)):
        line = bare(raw)
        if match := _DEVICE.fullmatch(line):
            close()
            device, port = match[1], 0
            ports.setdefault(device, [])
        elif device and (match := _PORT.fullmatch(line)):
            close()
            port = int(match[1])
            ports[device].append(port)
        elif device and (match := _MEMBER.fullmatch(line)):
            members.setdefault(match[1], (match[2] or "").strip())
        elif not (device and members and raw[:1] in " \t" and _FLAG.fullmatch(line)):
            if line:
                close()
                device = ""
            continue
        understood.add(number)
    close()
    if not ports:
        return ()
    return (Imported(tool=TOOL, facts={**facts, **listed(ports)}, understood=frozenset(understood)),)


def _of_device(device: str, members: dict[str, str]) -> dict[str, Json]:
    part = members.get("vendor_part_id", "")
    mellanox = members.get("vendor_id", "") == "0x02c9" and part.isascii() and part.isdecimal()
    return device_files(device, {
        "hca_type": f"MT{part}" if mellanox else None,  # as mlx5_ib words it
        "fw_ver": members.get("fw_ver") or None, "board_id": _board(members.get("board_id", "")),
        "node_guid": guid(members.get("node_guid", "")), "sys_image_guid": guid(members.get("sys_image_guid", "")),
    })  # fmt: skip


def _board(text: str) -> str | None:
    """The kind of the board (PSID, ``MT_0000000223``); None for the number of a single one."""
    return None if not text or _GUID.search(text) else text


def _of_port(device: str, port: int, members: dict[str, str]) -> dict[str, Json]:
    width = _WIDTH.fullmatch(members.get("active_width", ""))
    speed = _SPEED.fullmatch(members.get("active_speed", ""))
    return port_files(device, port, {
        "state": state(members.get("state", "")), "phys_state": physical(members.get("phys_state", "")),
        "lid": lid(members.get("port_lid", "")), "sm_lid": lid(members.get("sm_lid", "")),
        "link_layer": _LAYERS.get(members.get("link_layer", "").lower()),
        "rate": rate(int(width[1]), float(speed[1])) if width and speed else None,
    })  # fmt: skip


def _list(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Two columns below ``device  node GUID`` and its rule: names, and GUIDs of 16 digits."""
    facts: dict[str, Json] = {}
    names: dict[str, list[int]] = {}
    understood: set[int] = set()
    below = False
    for number, raw in enumerate(bounded(lines)):
        words = bare(raw).split()
        if words == _HEAD:
            below = True
        elif below and len(words) == 2 and set("".join(words)) == {"-"}:
            pass
        elif below and len(words) == 2 and re.fullmatch(NAME, words[0], re.ASCII) and (node := guid(words[1])):
            names[words[0]] = []
            facts |= device_files(words[0], {"node_guid": node})
        else:
            below = below and not words
            continue
        understood.add(number)
    if not names:
        return ()
    return (Imported(tool=LIST, facts={**facts, **listed(names)}, understood=frozenset(understood)),)
