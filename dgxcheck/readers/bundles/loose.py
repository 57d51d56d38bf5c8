"""Files of a bundle whose names do not identify their content: every reader tries them, as with a pasted text."""

from __future__ import annotations

from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.readers import any_text
from dgxcheck.readers.bundles.section import Section
from dgxcheck.readers.bundles.wanted import KERNEL_LOG, reader_of
from dgxcheck.readers.kernel_log import excerpt
from dgxcheck.readers.layout.model import Layout
from dgxcheck.readers.layout.undo import undone
from dgxcheck.readers.lspci import text as lspci
from dgxcheck.readers.lspci.tree import tree
from dgxcheck.readers.model import Imported

_TOOLS = {"lspci": (lspci.TOOL, lspci.TREE), KERNEL_LOG: (excerpt.TOOL,)}
"""By reader: what its parts of a text are called. Several of them are put together before they are read."""
_A_PART = "lspci -s"
_LOG = "log"


class Loose(Record):
    """A file, and what was recognised in it."""

    section: Section
    layout: Layout
    found: tuple[tuple[str, Imported], ...]
    """Host and output."""

    @property
    def unread(self) -> tuple[int, ...]:
        """Numbers from 0 of the lines that no reader understood."""
        return any_text.unread(self.section.lines, self.layout, [part for _, part in self.found])

    def holds(self, reader: str) -> bool:
        """Output of this reader, and of one host."""
        own = {part.host or host for host, part in self.found if part.tool in _TOOLS[reader]}
        return len(own) == 1

    def sections(self, reader: str) -> list[Section]:
        """The output of this reader as if it had a file of its own."""
        if reader == KERNEL_LOG:
            title = self.section.title if reader_of(self.section.title) == KERNEL_LOG else _LOG
            return [self._section(title, tuple(row for _, row in excerpt.rows_of(self.layout.lines)))]
        whole = any(f"names {PCI_DEVICES}" in part.facts for _, part in self.found if part.tool in _TOOLS[reader])
        listing = [self._section(lspci.TOOL if whole else _A_PART, self.layout.lines)]
        return listing + [self._section(lspci.TREE, self.layout.lines)] * bool(tree(self.layout.lines)[0].roots)

    def without(self, reader: str) -> Loose:
        """The same file without what this reader found."""
        left = tuple((host, part) for host, part in self.found if part.tool not in _TOOLS[reader])
        return Loose(section=self.section, layout=self.layout, found=left)

    def _section(self, title: str, lines: tuple[str, ...]) -> Section:
        return Section(title=title, lines=lines, size=len(lines), file=self.section.file, host=self.section.host)


def read(section: Section) -> Loose:
    """What every reader finds in a file."""
    layout = undone(section.lines)
    return Loose(section=section, layout=layout, found=tuple(any_text.outputs(layout)))
