"""``nvidia-smi -q`` and ``-a``: text of every driver era.

Pasted dumps begin anywhere: without the head, or after the bus id of their GPU (then ``answers.NOWHERE``).
"""

from __future__ import annotations

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.ids import MOST_GPUS
from dgxcheck.facts.record import replace
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi.answers import MOST_FIELDS, NOWHERE, Fields, GpuDump, answers, imported, is_unlicensed
from dgxcheck.readers.nvidia_smi.topo import plain
from dgxcheck.readers.values import bounded
from dgxcheck.readers.wording import rows

TEXT_TOOL = "nvidia-smi -q"
FEWEST = 3
"""Answers that a piece without a GPU's line must hold to be taken for part of a dump."""
_TEXT_HEAD = LazyPattern(r"=+NVSMI LOG=+")
_GPU = LazyPattern(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
_GROUP = LazyPattern(r"[a-z][a-z0-9 .&-]{1,60}")
_TEXT_SYSTEM = ("timestamp", "driver version", "cuda version", "kmd version", "cuda umd version", "attached gpus")
_WHOLE = LazyPattern(r"[\d.]+ (?:MHz|MiB|C|W|%|KB/s)|N/A|None|Disabled|Enabled")
_COMMAND = LazyPattern(r"(?:^|[\s/])nvidia-smi\s(?:.{0,80}\s)?(?:-q|-a|--query)(?:\s|$)")
_ASKED = LazyPattern(r"\s(?:-i|--id)[ =](\d{1,2})(?:\s|$)")
_NOTE = LazyPattern(r" {1,80}# \S.*$")
"""What people write behind a line that they explain."""
_BETWEEN = "--"
"""What ``grep -A`` prints between its finds."""
_TELLING = ("remapped rows", "retired pages", "vgpu software licensed product", "fabric", "ecc errors",
            "clocks throttle reasons", "clocks event reasons", "gpu recovery action", "volatile",
            "aggregate")  # fmt: skip
"""Groups, and a value, that are unmistakable without the line of their GPU."""
_ROWS = "remapped rows"
_WITH_OTHERS = "hw slowdown"
"""A value with others below it."""
_COUNTED = " us"
"""Ends the counters of slowdowns, which have the same names."""
_ECC = "ecc errors"
_VOLATILE, _AGGREGATE = f"{_ECC}/volatile/", f"{_ECC}/aggregate/"
_ALONE = {row["label"]: row["group"] for row in rows("nvidia_smi/groups")}
"""What only one group has, for ``grep`` leaves out the line of that; what is pending is said above the failure."""


def read_text(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every dump of a text; a GPU that comes again begins another dump.

    A last line without an end may be cut: then half a number is read as little as none.
    """
    reader = _Reader()
    for number, line in enumerate(bounded(lines)):
        _, colon, value = _split(line)
        if number < len(lines) - 1 or not colon or _WHOLE.fullmatch(value):
            reader.take(number, plain(line))
    reader.cut()
    reader.end()
    *before, last = reader.outputs or [Imported(tool=TEXT_TOOL, facts={}, understood=frozenset())]
    return (*before, replace(last, understood=last.understood | reader.commands)) if last.facts else ()


class _Reader:
    """Line by line: which GPU is open, and the labels above the present one."""

    def __init__(self) -> None:
        self.outputs: list[Imported] = []
        self._gpus: list[GpuDump] = []
        self._system: dict[str, str] = {}
        self._understood: set[int] = set()
        self._headed = False
        """Does the dump begin with its first line?"""
        self.commands: set[int] = set()
        """Lines that call for a dump."""
        self._pending: set[int] = set()
        """Lines of the GPU that is open."""
        self._asked: int | None = None
        """The GPU that the command above asks for."""
        self._open: GpuDump | None = None
        self._base = 0
        self._above: list[tuple[int, str, int]] = []
        """Depth, label and line of the groups that are open."""
        self._guessed: set[str] = set()
        """Errors of memory that may be aggregate ones, unless these follow."""

    def take(self, number: int, line: str) -> None:
        """One line."""
        text = line.strip()
        if not text:
            return
        depth, now = len(line) - len(line.lstrip()), self._open
        label, colon, value = _split(text)
        if _TEXT_HEAD.fullmatch(text):
            self.end()
            self._understood.add(number)
            self._headed = True
        elif match := _GPU.fullmatch(text):
            self._begin(number, depth, as_bdf(match[1]) or NOWHERE)
        elif _COMMAND.search(text):
            self._close()
            self.commands.add(number)
            asked = _ASKED.search(text)
            self._asked = None if asked is None else int(asked[1])
        elif colon and label in _TEXT_SYSTEM and (now is None or depth <= self._base):
            self._system.setdefault(label, value)
            self._understood.add(number)
        elif label in _TELLING and (now is None or (now.bdf == NOWHERE and _holds(now.fields, label))):
            self._begin(number, -1, NOWHERE)  # the group of another GPU, as where ``grep -A`` took it out of a dump
            self._field(number, depth, label, colon, value)
        elif now is not None and (depth > self._base or now.bdf == NOWHERE) and depth:
            if now.bdf == NOWHERE and self._repeats(now.fields, depth, label) and not value.endswith(_COUNTED):
                self._begin(number, 0, NOWHERE)
            self._field(number, depth, label, colon, value)
        elif now is None and colon and depth:
            self._begin(number, 0, NOWHERE)
            self._field(number, depth, label, colon, value)
        elif text == _BETWEEN:
            self._close()
            if self._gpus:
                self._understood.add(number)
        else:
            self._close()

    def cut(self) -> None:
        """The text is over: the head of a group may be its last line."""
        if self._above and _GROUP.fullmatch(self._above[-1][1]):
            self._pending.add(self._above[-1][2])

    def end(self) -> None:
        """The dump is over."""
        self._close()
        if self._gpus:
            if len(self._gpus) == 1 and self._asked is not None:
                self._gpus = [GpuDump(self._gpus[0].bdf, self._gpus[0].fields, self._asked)]
            self.outputs.append(
                imported(TEXT_TOOL, self._gpus, self._system, frozenset(self._understood), self._headed)
            )
        self._gpus, self._system, self._understood, self._headed = [], {}, set(), False

    def _repeats(self, fields: Fields, depth: int, label: str) -> bool:
        """Is this a line without its group that the GPU has already?"""
        paths = label, f"{_ROWS}/{label}", f"{_group(fields, label)}/{label}"
        return not any(above < depth for above, _, _ in self._above) and not fields.keys().isdisjoint(paths)

    def _begin(self, number: int, depth: int, bdf: str) -> None:
        self._close()
        if (bdf != NOWHERE and bdf in [gpu.bdf for gpu in self._gpus]) or len(self._gpus) == MOST_GPUS:
            system = self._system
            self.end()
            self._system = system
        self._open, self._base, self._above, self._guessed = GpuDump(bdf, {}), depth, [], set()
        self._pending = {number} if bdf != NOWHERE else set()

    def _field(self, number: int, depth: int, label: str, colon: str, value: str) -> None:
        assert self._open is not None
        while self._above and self._above[-1][0] >= depth:
            self._above.pop()
        self._pending |= {line for _, _, line in self._above[-1:]}
        names = [*(name for _, name, _ in self._above), label]
        if not colon or label == _WITH_OTHERS:
            self._above.append((depth, label, number))
        if colon:
            self._pending.add(number)
            if len(self._open.fields) < MOST_FIELDS and len(names) < 8:
                group = "" if value.endswith(_COUNTED) else _group(self._open.fields, names[0])
                path = "/".join(filter(None, (group, *names)))
                self._guessed |= {path} if path == _VOLATILE + names[0] else set()
                if path == f"{_ROWS}/remapping failure occurred" and (above := self._open.fields.pop("pending", "")):
                    self._open.fields.setdefault(f"{_ROWS}/pending", above)
                self._open.fields.setdefault(path, value)

    def _close(self) -> None:
        """Keep the GPU that is open; a piece without a GPU's line only where it tells enough."""
        if self._open is not None:
            fields: dict[str, str] = self._open.fields
            for path in self._guessed:
                if path.replace(_VOLATILE, _AGGREGATE) not in fields:
                    del fields[path]
            answered = len(dict(answers(fields))) if self._open.bdf == NOWHERE else FEWEST
            telling = (answered or is_unlicensed(fields)) and any(_holds(fields, group) for group in _TELLING)
            if answered >= FEWEST or telling:
                self._gpus.append(self._open)
                self._understood |= self._pending
        self._open = None


def _group(fields: Fields, label: str) -> str:
    """Of a line without its own; errors of memory are printed as volatile first, then as aggregate."""
    if label.startswith(("sram ", "dram ")) and label not in _ALONE:
        return (_AGGREGATE if _VOLATILE + label in fields else _VOLATILE).rstrip("/")
    return _ALONE.get(label, "")


def _holds(fields: Fields, group: str) -> bool:
    return any(path.partition("/")[0] == group for path in fields)


def _split(text: str) -> tuple[str, str, str]:
    """``Product Name   : Tesla K80`` -> label in lower case, colon, value; no colon for the head of a group."""
    label, colon, value = _NOTE.sub("", text).partition(" :")
    return label.strip().lower(), colon, value.strip()
