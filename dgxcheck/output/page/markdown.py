"""A report as Markdown, for tickets: CommonMark with the tables of GitHub, GitLab and Jira's importers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dgxcheck.output.page.blocks import Bars, Block, Cell, Drawing, Mosaic, OrderedList, Page, Paragraph, Table
from dgxcheck.output.plain_text import lines, visible

_ACTIVE = re.compile(r"([\\`*_\[\]<|~&]|^[#>+=-]|^[0-9]+(?=[.)] ))")
"""What is markup anywhere, and what is at the start of a line."""


def render(page: Page) -> str:
    """Headings, lists, tables, and code blocks for what is typed and for the matrix."""
    text_lines = [f"# {escaped(page.status)}: {escaped(page.title)}", "", escaped(page.lead), ""]
    text_lines += [f"- {escaped(name)}: {escaped(value)}" for name, value in page.facts]
    for section in page.sections:
        text_lines += ["", f"## {escaped(section.title)}", *_blocks(section.blocks, 3)]
    return lines(text_lines)


def _blocks(blocks: Iterable[Block], level: int) -> Iterator[str]:
    for block in blocks:
        yield ""
        yield from _block(block, level)


def _block(block: Block, level: int) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield from (_code(block.text) if block.code else [escaped(block.text)])
    elif isinstance(block, OrderedList):
        for number, step in enumerate(block.steps, 1):
            note = f"({escaped(step.note)})" if step.note else ""
            parts = (f"**{escaped(step.name)}**", *map(_inline, step.commands), escaped(step.how), note)
            yield f"{number}. {' '.join(filter(None, parts))}"
    elif isinstance(block, Bars):
        yield from _table(Table(head=(block.caption, ""), rows=tuple(
            (Cell(name), Cell(f"{share:g}")) for name, share in block.rows)))  # fmt: skip
    elif isinstance(block, Drawing | Mosaic):
        yield from _code(block.text)
    elif isinstance(block, Table):
        yield from _table(block)
    else:
        yield f"{'#' * min(level, 6)} {escaped(block.title)}"
        yield from _blocks(block.blocks, level + 1)


def _table(table: Table) -> Iterator[str]:
    if table.caption:
        yield f"**{escaped(table.caption)}**"
        yield ""
    width = max([len(table.head), *(len(row) for row in table.rows)])
    head = [*table.head, *([""] * (width - len(table.head)))]
    yield _row(escaped(name) for name in head)
    yield _row(["---"] * width)
    for row in table.rows:
        yield _row([*map(_cell, row), *([""] * (width - len(row)))])
    if table.note:
        yield ""
        yield escaped(table.note)


def _cell(cell: Cell) -> str:
    note = f" ({escaped(cell.note)})" if cell.note else ""
    text = escaped(cell.text)
    return f"**{text}**{note}" if cell.tone in ("fail", "unknown", "warn") and text else f"{text}{note}"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> list[str]:
    """A fence longer than any in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *map(visible, text.rstrip("\n").split("\n")), fence]


def _inline(text: str) -> str:
    """Code within a line; one blank inside each end, so that it may begin with a backtick."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {visible(text)} {fence}" if longest else f"`{visible(text)}`"


def escaped(text: str) -> str:
    """Text in which nothing is markup."""
    return _ACTIVE.sub(_replaced, visible(text))


def _replaced(found: re.Match[str]) -> str:
    """A number that would begin a list stands behind a space of no width in HTML, an entity."""
    return f"&#{ord(found[0][0])};{found[0][1:]}" if found[0].isdecimal() else f"\\{found[0]}"
