"""``rdma link`` of iproute2, also with ``show``: one line for each port."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.readers.model import Imported
from dgxcheck.readers.network.files import NAME, lid, listed, physical, port_files, state
from dgxcheck.readers.values import bare, bounded

TOOL = "rdma link"
_ROW = re.compile(
    rf"(?:\d{{1,4}}/\d{{1,3}}: )?(?:link )?({NAME})/(\d{{1,3}}):? (.{{0,400}}\bstate [A-Z_]{{2,16}}\b.{{0,400}})",
    re.ASCII,
)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """State and lids of every port; with a network interface it is one of RoCE or iWARP, with a subnet InfiniBand."""
    facts: dict[str, Json] = {}
    ports: dict[str, list[int]] = {}
    understood: set[int] = set()
    for number, raw in enumerate(bounded(lines)):
        match = _ROW.fullmatch(bare(raw))
        if match is None:
            continue
        words = match[3].split()
        members = dict(zip(words[::2], words[1::2], strict=False))
        if "physical_state" not in members:
            continue
        device, port = match[1], int(match[2])
        ports.setdefault(device, []).append(port)
        layer = "InfiniBand" if "subnet_prefix" in members else "Ethernet" if "netdev" in members else None
        facts |= port_files(device, port, {
            "state": state(members.get("state", "")), "phys_state": physical(members["physical_state"]),
            "lid": lid(members.get("lid", "")), "sm_lid": lid(members.get("sm_lid", "")), "link_layer": layer,
        })  # fmt: skip
        understood.add(number)
    if not ports:
        return ()
    return (Imported(tool=TOOL, facts={**facts, **listed(ports)}, understood=frozenset(understood)),)
