"""What Slurm says of its nodes: reasons (``sinfo -R``, ``scontrol show node``), states (``sinfo``), lines of its logs.

A reason is what a script or a person wrote: only one that names a fault of a device counts as one. Titles and states:
sinfo(1).
"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.host.schedulers import Entry, logged, of_nodes
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded
from dgxcheck.readers.wording import wordings

_HEAD = LazyPattern(r"REASON {1,40}USER {1,20}TIMESTAMP {1,24}(?:STATE {1,12})?NODELIST")
_ROW = LazyPattern(
    r"(?P<reason>\S.{0,199}?) {1,40}(?P<user>[\w.()-]{1,40}) {1,20}(?P<when>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|Unknown)"
    r" {1,12}(?:[a-z]{3,12}[*~#!%$@^-]? {1,12})?(?P<nodes>[\w.,\[\]-]{1,400})"
)
_TITLE = LazyPattern(r"[A-Z][A-Z:_()/%]{1,20}")
_WORD = LazyPattern(r"\S+")
_BAD = LazyPattern(r"(?:down|drain|drained|draining|drng|fail|failing|failg|inval|unknown|unk)[*~#!%$@^-]?|\w{2,12}\*")
"""States of nodes that take no jobs; a star: the node does not answer."""
_NODE = LazyPattern(r"NodeName=(?P<node>\S{1,255})(?: .*)?")
_STATE = LazyPattern(r"(?:.* )?State=(?P<state>[A-Z_+*]{2,80})(?: .*)?")
_REASON = LazyPattern(r"Reason=(?P<reason>.{1,400}?)(?: \[(?P<user>[^\[\]@]{1,40})@(?P<when>[\dT:-]{10,25})\])?")
_CUT = ("Reason=gres/", "Reason=Not responding", "Reason=Low ", "Reason=Node unexpectedly ", "Reason=Kill task failed")
"""What Slurm itself writes (slurmctld, node_mgr.c), where the rows of its node above it are cut off."""
_LOGGED, _OF_GRES = wordings("host/logged", "Slurm"), wordings("host/logged", "gres.conf")
"""Lines of the logs of slurmctld, slurmd and slurmstepd."""
_WAITS = LazyPattern(r".{0,400}(?P<waits>Waiting for gres\.conf file .{1,400})")
_APPEARED = LazyPattern(r"(?:.{0,200} )?gres\.conf file \S{1,255} now exists")
"""What it waited for."""


def read_slurm(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The reason why each node is down or drained, each of its own host."""
    return of_nodes("Slurm", _reasons(bounded(lines)), stays=True)


def _reasons(lines: tuple[str, ...]) -> Iterator[Entry]:
    below = False
    columns: dict[str, slice] = {}
    titles: list[str] = []
    node = state = ""
    since = 0
    waits: Entry | None = None
    for number, line in enumerate(lines):
        text = line.strip()
        if _HEAD.fullmatch(text):
            below, columns, titles = True, {}, []
        elif found := _columns(line):
            below, columns, titles = False, found, []
        elif (heads := _titles(text)) and "STATE" in heads:
            below, columns, titles = False, {}, heads
            yield Entry("", (number,), "states", "")
        elif titles and len(cells := text.split()) == len(titles):
            nodes, word = cells[titles.index("NODELIST")], cells[titles.index("STATE")]
            yield Entry("", (number,), "states", f"{nodes} {word}: sinfo -R says why" if _BAD.fullmatch(word) else "")
        elif columns and (row := {name: line[at].strip() for name, at in columns.items()})["NODELIST"]:
            whose = ", ".join(row[name] for name in ("USER", "TIMESTAMP") if row.get(name))
            shown = f"{row['REASON']} ({whose})" if whose else row["REASON"]
            yield Entry(row["NODELIST"], (number,), "reason", "" if row["REASON"] in ("", "none") else shown)
        elif below and (match := _ROW.fullmatch(text)):
            yield Entry(match["nodes"], (number,), "reason", f"{match['reason']} ({match['user']}, {match['when']})")
        elif match := _NODE.fullmatch(text):
            node, state, since = match["node"], "", number
        elif node and (match := _STATE.fullmatch(text)):
            state = match["state"]
            if not any(map(_BAD.fullmatch, state.lower().split("+"))):
                yield Entry("", tuple(range(since, number + 1)), "states", "")
        elif node and state and (match := _REASON.fullmatch(text)):
            whose = f" ({match['user']}, {match['when']})" if match["user"] else ""
            yield Entry(node, tuple(range(since, number + 1)), "reason", f"{state}: {match['reason']}{whose}")
            node = ""
        elif not node and not state and text.startswith(_CUT) and (match := _REASON.fullmatch(text)):
            yield Entry("", (number,), "reason", match["reason"])
        elif waits and _APPEARED.fullmatch(text):
            waits = Entry("", (*waits.lines, number), "reason", "")
        elif match := _WAITS.fullmatch(text):
            waits = Entry("", (number,), "reason", match["waits"])
        elif entry := logged(_OF_GRES, number, text):
            waits = None
            yield entry
        elif entry := logged(_LOGGED, number, text):
            yield entry
        else:
            below = below and bool(text)
            columns, titles = (columns, titles) if text else ({}, [])
    if waits:
        yield waits


def _titles(head: str) -> list[str]:
    """Those of a list of nodes; none for another line."""
    words = head.split() if "NODELIST" in head else []
    return words if "NODELIST" in words and all(map(_TITLE.fullmatch, words)) else []


def _columns(head: str) -> dict[str, slice]:
    """Where the columns of a list with reasons are, each from its title on; empty for another line."""
    if "REASON" not in _titles(head):
        return {}
    titles = [(match[0], match.start()) for match in _WORD.finditer(head)]
    ends = [start for _, start in titles[1:]]
    return {name: slice(start, end) for (name, start), end in zip(titles, [*ends, None], strict=True)}
