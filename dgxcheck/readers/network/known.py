"""Outputs of OFED and MFT that hold no fact of a check: ``ofed_info -s``, ``mlxconfig query``, ``show_gids``,
``ibportstate`` and ``ibnetdiscover``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.readers.known_output import Form, recognised
from dgxcheck.readers.model import Imported

_NEVER = re.compile(r"(?!)")
_GID = re.compile(r"[\w.-]{2,40}\s+\d{1,3}\s+\d{1,3}\s+(?:[0-9a-f]{4}:){7}[0-9a-f]{4}(?:\s+\S{1,60}){0,4}"
                  r"|(?:-{2,16}\s+){3,8}-{2,16}|n_gids_found=\d{1,5}")  # fmt: skip
_PORTS = r"(?:CA|SW|RT) {1,6}\d{1,5} {1,4}\d{1,3} 0x[0-9a-f]{16} .{0,300}"
_FORMS: Sequence[Form] = (
    Form("ofed_info", re.compile(r"(?:MLNX_OFED_LINUX|MLNX_EN|DOCA-OFED|OFED-internal|doca-ofed)-[\d.rcGA-]{3,40}:?"
                                  r"|OFED-internal-[\w.-]{3,40}:?"), _NEVER),
    Form("show_gids", re.compile(r"DEV\s+PORT\s+INDEX\s+GID\s+(?:IPv4\s+)?VER\s+DEV"), _GID),
    Form("mlxconfig", re.compile(r"Device #\d{1,3}:|Device type: {1,12}(?:ConnectX|BlueField|Connect-IB).{0,30}"),
          re.compile(r"-{4,40}|(?:Name|Description|Device|Device type|PCI device|Configurations): {0,60}.{0,200}"
                     r"|[A-Z][A-Z0-9_]{3,60} {1,60}\S.{0,200}|The '\*' shows parameters .{0,100}"), False),
    Form("ibportstate", re.compile(r"PortInfo:|(?:# )?Port info: Lid \d{1,5} port \d{1,3}"),
          re.compile(r"[A-Z][A-Za-z]{2,40}:\.{1,60}.{0,100}")),
    Form("ibnetdiscover -p", re.compile(_PORTS), re.compile(_PORTS)),
    Form("ibnetdiscover", re.compile(r"# (?:Topology file: generated on|.{0,40}\(ibnetdiscover output\)).{0,60}"
                                      r"|vendid=0x[0-9a-f]{1,8}"),
          re.compile(r"#.{0,200}"
                     r"|(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid|nodeguid)=0x[0-9a-f]{1,16}.{0,80}"
                     r"|(?:Switch|Ca|Rt)\s+\d{1,4} \".{1,60}\".{0,200}|\[\d{1,4}\](?:\([0-9a-f]{1,16}\))?\s*\".{0,300}"
          ), False),
)  # fmt: skip


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Which lines are theirs, without facts."""
    return recognised(lines, _FORMS)
