"""A report as one HTML file: no script, nothing to load, light or dark, to be read on paper and by screen readers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, count, repeat

from dgxcheck.output.page.blocks import (
    Bars,
    Block,
    Cell,
    Drawing,
    Fold,
    ListItem,
    Mosaic,
    OrderedList,
    Page,
    PageSection,
    Paragraph,
    ProblemBlock,
    Table,
)
from dgxcheck.output.page.drawings import Markup, curve, element, joined, mosaic, spread
from dgxcheck.output.page.style import css, heat_class
from dgxcheck.output.picture import svg

_NO_LOADING = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a browser may do with the file."""


def render(page: Page) -> str:
    """The document."""
    ids = map("picture{}".format, count(1))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_NO_LOADING),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{page.status}: {page.title}"),
        element("style", Markup(css())),
    )
    body = element("body", element("main", _top(page), *(_section(section, ids) for section in page.sections)))
    return f"<!DOCTYPE html>\n{element('html', head, Markup(chr(10)), body, lang='en')}\n"


def _top(page: Page) -> Markup:
    facts = [joined(element("dt", name), element("dd", value)) for name, value in page.facts]
    return element(
        "header", element("p", page.status, class_=f"badge {page.tone}"), element("h1", page.title),
        element("p", page.lead, class_="lead"), element("dl", *facts),
    )  # fmt: skip


def _section(section: PageSection, ids: Iterator[str]) -> Markup:
    return joined(Markup("\n"), element("section", element("h2", section.title), *_blocks(section.blocks, ids)))


def _blocks(blocks: Iterable[Block], ids: Iterator[str]) -> Iterable[Markup]:
    return (joined(_block(block, ids), Markup("\n")) for block in blocks)


def _block(block: Block, ids: Iterator[str]) -> Markup:
    if isinstance(block, Paragraph):
        if block.code:
            return element("pre", Markup("\n".join(joined(line) for line in block.text.split("\n"))))
        return element("p", block.text, class_=block.tone)
    if isinstance(block, OrderedList):
        return element("ol", *map(_step, block.steps))
    if isinstance(block, Bars):
        return _bars(block)
    if isinstance(block, Drawing):
        by_class = {"wide": block.pictures, "tall": block.tall} if block.tall else {"": block.pictures}
        return joined(*(
            element("figure", Markup(svg.document(pictures, next(ids))), class_=name)
            for name, pictures in by_class.items()
        ))  # fmt: skip
    if isinstance(block, Mosaic):
        return element("figure", mosaic(block, next(ids)))
    if isinstance(block, Fold):
        return element("details", element("summary", block.title), *_blocks(block.blocks, ids))
    if isinstance(block, ProblemBlock):
        head = element("h3", block.title)
        return element("div", head, *_blocks(block.blocks, ids), class_=f"problem {block.tone}")
    return _table(block)


def _step(step: ListItem) -> Markup:
    parts = [element("strong", step.name)]
    parts += [joined(" ", element("code", command)) for command in step.commands]
    parts += [joined(" ", step.how)] if step.how else []
    parts += [joined(" ", element("span", step.note, class_="note"))] if step.note else []
    return element("li", *parts)


def _bars(bars: Bars) -> Markup:
    rows = [
        element(
            "tr",
            element("th", name, scope="row"),
            element("td", element("span", element("span", style=f"width:{share:.1f}%", class_="high" if share >= 99 else
                                                  "middle" if share >= 80 else "low"),
                                  class_="gauge", aria_hidden="true")),
            element("td", f"{share:g}", class_="number"),
        )
        for name, share in bars.rows
    ]  # fmt: skip
    return element("table", element("caption", bars.caption), element("tbody", *rows), class_="bars")


def _table(table: Table) -> Markup:
    parts = [element("caption", table.caption)] if table.caption else []
    if table.head:
        parts.append(element("thead", element("tr", *(element("th", name, scope="col") for name in table.head))))
    heads = () if table.heat else table.head[1:]
    body = [element("tr", element("th", row[0].text, scope="row", class_=row[0].tone),
                    *map(_cell, row[1:], repeat(table.heat), chain(heads, repeat("")))) for row in table.rows]
    whole = element("table", *parts, element("tbody", *body), class_="heat" if table.heat else "plain")
    note = [element("p", table.note, class_="note")] if table.note else []
    return joined(element("div", whole, class_="scroll beside" if table.heat else "scroll"), *note)


def _cell(cell: Cell, heat: bool, head: str) -> Markup:
    """``head`` stands before it where the screen is too narrow for a row."""
    classes = " ".join(filter(None, (heat_class(cell.share) if heat else "", cell.tone)))
    drawn = [curve(cell.curve, cell.text)] if cell.curve else []
    drawn += [spread(cell.spread, cell.text)] if cell.spread else []
    note = [element("small", cell.note)] if cell.note else []
    text = element("span", cell.text, class_="figures") if drawn else joined(cell.text)
    return element("td", *drawn, text, *note, class_=classes, data_head=head if cell.text else "")
