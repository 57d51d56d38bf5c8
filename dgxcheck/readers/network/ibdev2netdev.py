"""``ibdev2netdev`` of MLNX_OFED: HCAs, ports and their network interfaces (whose state is not that of the port)."""

from __future__ import annotations

import re

from dgxcheck.readers.model import Imported
from dgxcheck.readers.network.files import NAME, listed
from dgxcheck.readers.values import bare, bounded

TOOL = "ibdev2netdev"
_ROW = re.compile(
    rf"(?:[0-9a-f:.]{{7,16}} )?({NAME}) (?:\(.{{1,120}}\) )?port (\d{{1,3}}) (?:\(\S{{1,10}} ?\) )?==> [\w.-]{{1,32}}"
    r" \((?:Up|Down)\)",
    re.ASCII,
)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Which HCAs and ports there are."""
    ports: dict[str, list[int]] = {}
    understood: set[int] = set()
    for number, line in enumerate(bounded(lines)):
        if match := _ROW.fullmatch(bare(line)) if "==>" in line else None:
            ports.setdefault(match[1], []).append(int(match[2]))
            understood.add(number)
    return (Imported(tool=TOOL, facts=listed(ports), understood=frozenset(understood)),) if ports else ()
