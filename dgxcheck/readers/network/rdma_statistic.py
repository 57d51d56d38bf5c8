"""``rdma statistic`` of iproute2: the ``hw_counters`` of every port, one line for each."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.facts.sysfs import INFINIBAND
from dgxcheck.readers.model import Imported
from dgxcheck.readers.network.files import NAME, listed
from dgxcheck.readers.values import bare, bounded, integer

TOOL = "rdma statistic"
MOST = 1 << 63
_ROW = re.compile(
    rf"link (?P<device>{NAME})/(?P<port>\d{{1,3}}) (?P<rest>[a-z][a-z0-9_]{{1,60}} \d{{1,20}}\b.{{0,8000}})", re.ASCII
)
_COUNTER = re.compile(r"(?P<name>[a-z][a-z0-9_]{1,60}) (?P<count>\d{1,20})(?= |$)", re.ASCII)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The counters under their names in sysfs; a row with anything else in it is not read."""
    facts: dict[str, Json] = {}
    ports: dict[str, list[int]] = {}
    understood: set[int] = set()
    for number, raw in enumerate(bounded(lines)):
        row = _ROW.fullmatch(" ".join(bare(raw).split()))
        if row is None or _COUNTER.sub("", row["rest"]).strip():
            continue
        counters = {each["name"]: integer(each["count"], MOST) for each in _COUNTER.finditer(row["rest"])}
        base = f"{INFINIBAND}/{row['device']}/ports/{int(row['port'])}/hw_counters"
        facts[f"names {base}"] = [*sorted(counters)]
        facts |= {f"text {base}/{name}": f"{count}\n" for name, count in counters.items() if count is not None}
        ports.setdefault(row["device"], []).append(int(row["port"]))
        understood.add(number)
    if not ports:
        return ()
    return (Imported(tool=TOOL, facts=facts | listed(ports), understood=frozenset(understood)),)
