"""The wiring for graphviz: ``dot -Tsvg`` lays it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.facts.memory import NumaNode
from dgxcheck.facts.missing import Missing
from dgxcheck.output.picture import nvlinks
from dgxcheck.output.picture.by_class import others
from dgxcheck.output.picture.marks import Mark, ghosts, link_lines, of_host, with_numbers, worst
from dgxcheck.output.picture.shapes import LIGHT
from dgxcheck.output.picture.tree_layout import places, places_of_link
from dgxcheck.output.picture.wiring import TreeNode, panels
from dgxcheck.output.plain_text import lines, visible
from dgxcheck.topology.model import Topology

_SHAPES = {"card": "point", "switch": "box", "host-bridge": "box"}


def render(
    topology: Topology, numa: tuple[NumaNode, ...] | Missing, title: str, marks: Sequence[Mark] = (),
    nvme: bool = False,
) -> str:  # fmt: skip
    """A directed graph from the host bridges down, a cluster for each NUMA node, NVLinks without direction."""
    head = "\n".join(filter(None, (title, of_host(marks))))
    dot = ["digraph dgxcheck {", f"  label={_quoted(head)}; labelloc=t; forcelabels=true; fontname=Helvetica;",
            "  node [shape=box, style=filled, fillcolor=white, fontname=Helvetica];",
            "  edge [dir=none, fontname=Helvetica, fontsize=10];"]  # fmt: skip
    for number, panel in enumerate(panels(topology, numa, others(topology, marks, nvme), ghosts(marks))):
        label = "\n".join(filter(None, (panel.title, panel.cpus)))
        dot += [f"  subgraph cluster_{number} {{", f"    label={_quoted(label)}; style=filled; color={_hex('panel')};"]
        for node in panel.children:
            dot += [f"    {line}" for line in _tree(node, None, marks)]
        dot.append("  }")
    dot += [f"  {line}" for line in _nvlinks(topology, marks)]
    dot += [f"  // {visible(mark.words)}" for mark in marks]
    return lines([*dot, "}"])


def _tree(node: TreeNode, above: TreeNode | None, marks: Sequence[Mark]) -> Iterator[str]:
    own = [mark for mark in marks if places(node) & {*mark.at}]
    fill, tone = {"host-bridge": "bridge"}.get(node.kind, node.kind), worst(own)
    label = "\n".join(filter(None, (with_numbers(own, node.name), node.bdf)))
    members = [f"label={_quoted(label)}", f"shape={_SHAPES.get(node.kind, 'box')}"]
    members += ['style="filled,dashed"'] if node.gone else []
    members += [f"fillcolor={_hex(fill)}"] if fill in LIGHT else []
    members += [f"color={_hex(tone)}", "penwidth=2.5"] if tone else []
    yield f"{_quoted(node.key)} [{', '.join(members)}];"
    if above is not None:
        marked = [mark for mark in marks if places_of_link(node) & {*mark.at}]
        lines = [f"label={_quoted(chr(10).join(link_lines(node.hop)))}"]
        lines += [f"{what}={_hex(worst(marked) or '')}" for what in ("color", "fontcolor") if marked]
        yield f"{_quoted(above.key)} -> {_quoted(node.key)} [{', '.join(lines)}];"
    for child in node.children:
        yield from _tree(child, node, marks)


def _nvlinks(topology: Topology, marks: Sequence[Mark]) -> Iterator[str]:
    to_bar = nvlinks.switched(topology)
    if to_bar:
        yield f'"NVSwitches" [fillcolor={_hex("gpu")}];'
    for key, links in to_bar.items():
        count = "?" if links is None else links
        yield f'{_quoted(key)} -> "NVSwitches" [label="NV{count}", color={_hex("nvlink")}, penwidth=2];'
    for joint in nvlinks.joints(topology, marks):
        label, style = (f"NV{joint.up}", "") if joint.up else ("no NVLink up", ", style=dashed")
        colour = _hex(worst(joint.marks) or "nvlink")
        yield (
            f"{_quoted(joint.a)} -> {_quoted(joint.b)} [xlabel={_quoted(label)}, color={colour}, fontcolor={colour},"
            f" constraint=false, tailport=s, headport=s, penwidth={1 + min(joint.up, 6) / 2:g}{style}];"
        )


def _hex(name: str) -> str:
    return f'"{LIGHT[name]}"'


def _quoted(text: str) -> str:
    """A string of the DOT language: quote and backslash escaped, line breaks as \\n."""
    inside = "\\n".join(visible(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n"))
    return f'"{inside}"'
