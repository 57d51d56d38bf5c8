"""The questions that can be asked of a machine, whether it is live, a directory or a recording."""

from __future__ import annotations

from dgxcheck.facts.missing import Json as Json
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol
else:
    Protocol = object


class Origin(Record, kw_only=False):
    """Where answers come from.

    ``provenance`` of a recording is ``recorded``, ``reconstructed``, ``overlay``, ``imported`` or ``imported onto ..``.
    """

    kind: str
    """live, directory, recording, or report for a bug report or a support archive"""
    name: str = ""
    recorded_at: str = ""
    provenance: str = ""
    note: str = ""
    """Of a source that is not whole: it is cut off, a part of it is damaged. Empty for every other."""
    unread: str = ""
    """Of a text: how much of it no reader knows."""
    alarms: int = 0
    """The number of these lines that mention an error."""


class Source(Protocol):
    """Raw answers of one machine. Paths are absolute, under the source's root; each answer is a value or a gap."""

    def __hash__(self) -> int:
        """Of the object itself: what was asked of one source is remembered for that one alone."""

    @property
    def origin(self) -> Origin: ...

    @property
    def at_s(self) -> float:
        """Seconds since the first answers of this machine: 0 but for what ``later`` gives."""

    def text(self, path: str) -> str | Missing:
        """A small text file as it reads, decoded as UTF-8 with U+FFFD for what is not."""

    def data(self, path: str) -> bytes | Missing:
        """A small binary file (``config``): as many bytes as this user may read."""

    def link(self, path: str) -> str | Missing:
        """The target of a symbolic link, unresolved."""

    def names(self, path: str) -> tuple[str, ...] | Missing:
        """The entries of a directory, sorted."""

    def opens(self, path: str) -> bool | Missing:
        """Can this device node be opened from here?"""

    def nvml(self, function: str, subject: str = "", *args: int) -> Json | Missing:
        """The answer of an NVML function (C name without ``_vN``).

        ``subject`` is a bdf, two bdfs joined by a blank for a pair, or empty. Numbers and text are as NVML gives them,
        a struct is an object with NVML's field names, several outputs are a list.
        """

    def name(self, table: str, key: str) -> str | Missing:
        """The name of an id in a system table: ``name("pci", "10de:1db1")`` from pci.ids."""

    def kernel_log(self) -> tuple[str, ...] | Missing:
        """The kernel log's lines about GPUs, PCIe and fabrics, each as ``<seconds since boot>;<message>``.

        The first line is always dgxcheck's own and tells where the log begins; see ``source/kernel_log/kmsg.py``.
        """

    def measured(self) -> Mapping[str, Json] | Missing:
        """What was measured of this machine under load: ``measure KIND A [B]`` to a fact or a gap as an object.

        Nothing is measured by asking: a live machine is measured by ``dgxcheck.measure``, other tools' outputs are
        imported into recordings.
        """

    def stated(self) -> Mapping[str, Json] | Missing:
        """What another tool says of this machine's devices by their names: ``stated KIND A [B]`` to a text or a gap.

        Only a recording into which such a tool's output was imported holds any.
        """

    def later(self, seconds: float) -> Source | Missing:
        """The same machine at least ``seconds`` afterwards; only counters are worth asking again."""
