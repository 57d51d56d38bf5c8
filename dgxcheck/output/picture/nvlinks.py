"""The NVLinks of a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from dgxcheck.checks.engine.finding import counted
from dgxcheck.facts.record import Record
from dgxcheck.output.picture.marks import NVSWITCHES, Mark, numbered, pair, with_numbers, worst
from dgxcheck.output.picture.shapes import LINE, NORMAL, SMALL, Arc, Polyline, Rect, TextBox, TextLine, text_width
from dgxcheck.topology.model import Topology
from dgxcheck.topology.nvlinks import nvswitches

_SINGLE = 12
"""More NVLinks at one GPU are drawn as one thick line for each pair, with their number."""


class Joint(Record):
    """The NVLinks of two GPUs, by key of their boxes."""

    a: str
    b: str
    up: int
    down: int
    marks: tuple[Mark, ...]
    generation: int | None = None


def joints(topology: Topology, marks: Sequence[Mark]) -> list[Joint]:
    """Pairs of GPUs with NVLinks of their own, and pairs that are marked and have none."""
    found = []
    keys = {gpu.name: gpu.bdf or gpu.name for gpu in topology.gpus}
    marked = {at for mark in marks for at in mark.at if at[0] == "pair"}
    for a, b in combinations(topology.gpus, 2):
        link = topology.link(a, b)
        up = 0 if link.switched else link.nvlinks or 0
        at = pair(keys[a.name], keys[b.name])
        if not up and (at not in marked or (link.switched and link.nvlinks)):
            continue
        own = tuple(numbered(marks, at))
        down = max((mark.down for mark in own), default=0) or int(not up)
        found.append(Joint(a=keys[a.name], b=keys[b.name], up=up, down=down, marks=own,
                           generation=link.nvlink_generation))  # fmt: skip
    return found


def is_single(found: Sequence[Joint]) -> bool:
    """Is there room for an arc for each NVLink?"""
    per_gpu = Counter(key for joint in found for key in (joint.a, joint.b) for _ in range(joint.up + joint.down))
    return max(per_gpu.values(), default=0) <= _SINGLE


def switched(topology: Topology) -> dict[str, int | None]:
    """NVLinks of each GPU to NVSwitches, by key of its box, None where unknown; empty where there are no NVSwitches."""
    gpus = topology.gpus
    links = [topology.link(a, b) for a, b in combinations(gpus, 2)]
    joined = [link for link in links if link.nvlinks]
    on_pci = bool(nvswitches(topology))
    if not (joined[0].switched if joined else on_pci and len(gpus) > 1):
        return {}
    keys = {gpu.name: gpu.bdf or gpu.name for gpu in gpus}
    found: dict[str, int | None] = dict.fromkeys(keys.values())
    for link in links:
        for key in (keys[link.a], keys[link.b]):
            if link.nvlinks is not None:
                found[key] = max(found[key] or 0, link.nvlinks)
    return found


def in_words(topology: Topology, to_bar: Mapping[str, int | None], pairs: Sequence[Joint]) -> list[str]:
    """``GPU0: NV1 to GPU1, NV2 to GPU3``, for a picture that has no room for lines."""
    names = {gpu.bdf or gpu.name: gpu.name for gpu in topology.gpus}
    links = {known for known in to_bar.values() if known}
    words = [f"NVSwitches join all GPUs: NV{min(links)} from every GPU."] if len(links) == 1 else []
    for key, name in names.items():
        own = [(each.b if each.a == key else each.a, each) for each in pairs if key in (each.a, each.b)]
        if own:
            ends = (f"NV{joint.up} to {names[other]}{_signs(joint.marks)}" for other, joint in own)
            words.append(f"{name}: {', '.join(ends)}")
        elif key in to_bar and len(links) != 1:
            words.append(f"{name}: NV{'?' if to_bar[key] is None else to_bar[key]} to the NVSwitches")
    return words


def _signs(marks: Sequence[Mark]) -> str:
    """`` (FAIL 1)``"""
    return "".join(f" ({mark.sign} {mark.number})" for mark in marks if mark.number)


ROOM = 190.0
"""Height of the space for arcs."""
_HALF = 0.4
"""Share of it that each of two rows has for its own arcs: they do not meet."""
BAR, TO_BAR = 28.0, 44.0
Point = tuple[float, float]


class Wires(Record):
    """What is drawn of the NVLinks."""

    boxes: list[TextBox]
    lines: list[Polyline]
    arcs: list[Arc]


def through_bar(
    places: Mapping[str, Rect], counts: Mapping[str, int | None], marks: Sequence[Mark], y: float, nvswitches: int
) -> Wires:  # fmt: skip
    """A bar from ``y`` down, and a line from each GPU to it; GPUs above and below."""
    ends = [places[key] for key in counts if key in places]
    left, right = min(rect.x for rect in ends), max(rect.x + rect.w for rect in ends)
    own = numbered(marks, NVSWITCHES)
    tone = worst(own)
    text = counted(nvswitches, "NVSwitch", "NVSwitches") if nvswitches else "NVSwitches"
    each = {*counts.values()}
    if len(each) == 1 and (links := each.pop()) is not None:
        text += f": {counted(links, 'NVLink')} from every GPU"
    text = with_numbers(own, text)
    text += "".join(f" ({mark.tag})" for mark in own if mark.tag.startswith("missing"))
    width = max(right - left, text_width(text, NORMAL, True) + 16)
    rect = Rect(max(left + (right - left - width) / 2, 0), y, width, BAR)
    lines = (TextLine(text, NORMAL, True, tone),)
    bar = TextBox(kind="bar", rect=rect, lines=lines, tone=tone, hint=text, key="nvswitches")
    drawn = Wires(boxes=[bar], lines=[], arcs=[])
    for key, links in counts.items():
        if key not in places:
            continue
        gpu = places[key]
        x = _middle(gpu)
        start, end = (gpu.y + gpu.h, y) if gpu.y < y else (gpu.y, y + BAR)
        at_pair = [mark for mark in marks if any(at[0] == "pair" and key in at for at in mark.at)]
        count = "?" if links is None else str(links)
        drawn.lines.append(
            Polyline(kind="nvlink", points=((x, start), (x, end)), tone=worst(at_pair), down=not links,
                 hint=f"NVLinks up to the NVSwitches: {count}", ends=(key, bar.key))
        )  # fmt: skip
        drawn.boxes.append(label(with_numbers(at_pair, f"NV{count}"), x, (start + end) / 2, at_pair))
    return drawn


def arcs(places: Mapping[str, Rect], found: Sequence[Joint], upper: float, lower: float) -> Wires:
    """Arcs in the space between the heights ``upper`` and ``lower``; GPUs that stand below ``lower`` bend upwards."""
    placed = [joint for joint in found if joint.a in places and joint.b in places]
    single = is_single(placed)
    drawn = Wires(boxes=[], lines=[], arcs=[])
    ends = _ends(places, placed, single)
    spans = [abs(_middle(places[joint.a]) - _middle(places[joint.b])) for joint in placed]
    widest = max([*spans, 1.0])
    room = (lower - upper) * (1 if len({places[joint.a].y for joint in placed}) < 2 else _HALF)
    for number, joint in sorted(enumerate(placed), key=lambda item: spans[item[0]]):
        own = [_arc(joint, a, b, spans[number] / widest, upper, lower, room, single, index, widest)
               for index, (a, b) in enumerate(ends[number])]  # fmt: skip
        drawn.arcs.extend(own)
        if text := with_numbers(joint.marks, "" if single and joint.up < 2 else f"NV{joint.up}"):
            drawn.boxes.append(_free_label(text, own[-1], joint.marks, drawn.boxes))
    return drawn


def _ends(places: Mapping[str, Rect], placed: Sequence[Joint], single: bool) -> list[list[tuple[Point, Point]]]:
    """Where each NVLink of each pair begins and ends: spread over the edge of its GPUs so that few arcs cross."""
    slots: dict[str, list[tuple[tuple[int, float, float], int, int]]] = {}
    for number, joint in enumerate(placed):
        for line in range(_count(joint, single)):
            for key, other in ((joint.a, joint.b), (joint.b, joint.a)):
                here, there = places[key], places[other]
                side = 1 if here.y != there.y else 0 if there.x < here.x else 2
                distance = abs(there.x - here.x)
                nested = (distance, there.x, -distance)[side]
                slots.setdefault(key, []).append(((side, nested, line if side == 0 else -line), number, line))
    x_of: dict[tuple[str, int, int], float] = {}
    for key, wanted in slots.items():
        rect = places[key]
        step = min(rect.w / (len(wanted) + 1), 8.0)
        first = _middle(rect) - step * (len(wanted) - 1) / 2
        for place, (_, number, line) in enumerate(sorted(wanted)):
            x_of[key, number, line] = first + place * step

    def end(key: str, number: int, line: int) -> Point:
        return x_of[key, number, line], _edge(places, key)

    return [
        [(end(joint.a, number, line), end(joint.b, number, line)) for line in range(_count(joint, single))]
        for number, joint in enumerate(placed)
    ]


def _count(joint: Joint, single: bool) -> int:
    """How many arcs stand for a pair."""
    return joint.up + joint.down if single else 1


def _edge(places: Mapping[str, Rect], key: str) -> float:
    """The lower edge of a GPU in the upper row, the upper edge of one in the lower row."""
    top = min(rect.y for rect in places.values())
    rect = places[key]
    return rect.y + rect.h if rect.y == top else rect.y


def _arc(
    joint: Joint, a: Point, b: Point, share: float, upper: float, lower: float, room: float,
    single: bool, index: int, widest: float,
) -> Arc:  # fmt: skip
    reach = 50 + (min(room, widest * 0.5) - 20) * share
    if a[1] != b[1]:
        middle = (upper + lower) / 2
        bend = (middle, middle)
    elif a[1] <= upper:
        bend = (upper + reach, upper + reach)
    else:
        bend = (lower - reach, lower - reach)
    down = index >= joint.up if single else not joint.up
    trouble = any(mark.number for mark in joint.marks)
    partly = trouble and any(mark.down for mark in joint.marks) and joint.up > 0
    tone = None if partly and not down else worst(joint.marks)
    generation = f" of generation {joint.generation}" if joint.generation else ""
    hint = f"{counted(joint.up, 'NVLink')}{generation} up" if joint.up else "no NVLink up"
    return Arc(start=a, end=b, bend=bend, tone=tone, down=down, hint=hint,
               width=1.6 if single else min(1.6 + joint.up / 4, 6.0))  # fmt: skip


def _free_label(text: str, arc: Arc, marks: Sequence[Mark], others: Sequence[TextBox]) -> TextBox:
    """On the arc, where no other label stands."""
    tried = [label(text, *arc.at(share), marks) for share in
             (0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74, 0.2, 0.8)]  # fmt: skip
    free = (each for each in tried if not any(each.rect.overlaps(other.rect) for other in others))
    return next(free, tried[0])


def label(text: str, x: float, y: float, marks: Sequence[Mark]) -> TextBox:
    tone = worst(marks)
    width, height = text_width(text, SMALL, tone is not None) + 6, SMALL * LINE + 2
    rect = Rect(x - width / 2, y - height / 2, width, height)
    return TextBox(kind="label", rect=rect, lines=(TextLine(text, SMALL, tone is not None, tone),), tone=tone)


def _middle(rect: Rect) -> float:
    return rect.x + rect.w / 2
