"""``lspci`` in a text, with any of its options and also several times: listing, bytes and tree of one machine."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.readers.lspci.files import files
from dgxcheck.readers.lspci.fragment import unnamed
from dgxcheck.readers.lspci.listing import Function, functions, of_leaf
from dgxcheck.readers.lspci.tree import Tree, tree
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded

TOOL, TREE = "lspci", "lspci -t"
_PART = re.compile(r"\blspci\b.{0,200}\s-[a-zA-Z]*[ds]\b")
_COMMAND = re.compile(r"(?:.{0,80}[$#>] ?)?(?:sudo )?(?:/\S{1,40}/)?lspci(?: .{0,200})?")
_HEAD = re.compile(r" {0,16}(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7] [A-Z0-9]", re.ASCII)
_HOST_BRIDGE, _PCI_BRIDGE = 0x0600, 0x0604


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Files of the functions that are listed; which functions there are only where the listing shows all."""
    lines = _dedented(bounded(lines))
    shown, of_listing = functions(lines)
    drawn, of_tree = tree(lines)
    if not drawn.roots:
        of_tree = frozenset()
    alone = unnamed(lines, of_listing)
    if not shown and not drawn.names:
        return (*_of_numbers(drawn, of_tree, lines), *alone)
    bridges = dict.fromkeys(drawn.bridges.values(), "")
    listed = shown or {bdf: of_leaf(bdf, name, bdf in bridges) for bdf, name in (drawn.names | bridges).items()}
    whole = not shown or _is_whole(shown, lines)
    facts = files(listed, drawn if drawn.roots else None, whole, _last(shown, of_listing, lines))
    understood = of_listing | of_tree | _commands(lines)
    return (Imported(tool=TOOL if shown else TREE, facts=facts, understood=understood), *alone)


def _commands(lines: tuple[str, ...]) -> frozenset[int]:
    return frozenset(n for n, line in enumerate(lines) if _COMMAND.fullmatch(line.strip()))


def _of_numbers(drawn: Tree, of_tree: frozenset[int], lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``lspci -t`` alone: where each function is, but not what it is, so that nobody can say which ones are GPUs."""
    if not drawn.roots or not drawn.bdfs:
        return ()
    facts = {key: fact for key, fact in files({bdf: Function(bdf=bdf) for bdf in drawn.bdfs}, drawn, False).items()
             if key.startswith("link ")}  # fmt: skip
    listed: dict[str, Json] = {f"names {PCI_DEVICES}": [*sorted(drawn.bdfs)]}
    return (Imported(tool=TREE, facts=facts | listed, understood=of_tree | _commands(lines)),) if facts else ()


def _last(shown: dict[str, Function], of_listing: frozenset[int], lines: tuple[str, ...]) -> str:
    """The function with which the whole text ends; empty where something follows."""
    following = (line for line in lines[max(of_listing, default=0) + 1 :] if line.strip())
    return next(reversed(shown), "") if next(following, None) is None else ""


def _dedented(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Without the blanks that the head of a function has before it, and what follows it, as in an indented listing."""
    found, margin = [], ""
    for line in lines:
        if _HEAD.match(line):
            margin = line[: len(line) - len(line.lstrip(" "))]
        found.append(line.removeprefix(margin))
    return tuple(found)


def _is_whole(shown: dict[str, Function], lines: tuple[str, ...]) -> bool:
    """Does it begin as the listing of a whole machine does, with a host bridge and a bridge below it?"""
    classes = {function.class_code for function in shown.values()}
    if any(_PART.search(line) for line in lines if "lspci" in line):
        return False
    first = next(iter(shown))
    return first.endswith(":00:00.0") and _PCI_BRIDGE in classes and _HOST_BRIDGE in classes
