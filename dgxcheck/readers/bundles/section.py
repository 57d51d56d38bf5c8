"""One output of a tool, or one file of the machine, within a bundle."""

from __future__ import annotations

from dgxcheck.facts.record import Record


class Section(Record):
    """A title, and the lines below it."""

    title: str
    """The path of a file, else the command line or words by which the output is known."""
    first: int = 0
    """Number of its line in the report, from 0."""
    lines: tuple[str, ...] = ()
    size: int = 0
    """Lines below the title, those too that were not kept."""
    is_file: bool = False
    absent: bool = False
    """The bundle says that there is no such file."""
    cut: bool = False
    """Longer than what is kept of one section."""
    file: str = ""
    """Path of the file in the bundle that holds it; empty where the bundle is one file."""
    host: str = ""
    """Whose output it is, where the bundle holds that of several."""
    loose: bool = False
    """A whole file that its name does not identify: every reader tries it."""
