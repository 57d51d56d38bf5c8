"""``uname -a``, and the head of a bug report that repeats it."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json

_UNAME = re.compile(r"(?:uname: )?Linux (?P<host>\S{1,255}) (?P<release>\d\S{0,100}) #\S.*")


def read(line: str) -> dict[str, Json]:
    """Name of the host and release of its kernel."""
    match = _UNAME.match(line)
    if match is None:
        return {}
    return {"text /proc/sys/kernel/hostname": f"{match['host']}\n",
            "text /proc/sys/kernel/osrelease": f"{match['release']}\n"}  # fmt: skip
