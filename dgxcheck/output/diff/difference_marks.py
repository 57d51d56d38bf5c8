"""Where a difference is in the pictures before and after."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.difference.model import Difference, Trend
from dgxcheck.output.picture.marks import NVSWITCHES, At, Mark, Tone, box, link, pair
from dgxcheck.topology.model import Topology

_TONES: dict[Trend, Tone] = {"worse": "fail", "better": "better", "neutral": "way"}
_SIGNS: dict[Trend, str] = {"worse": "WORSE", "better": "BETTER", "neutral": "CHANGED"}
_TAGS = {"network": "port", "memory": "memory", "counter": "counter", "measurement": "slower"}
_NOT_DRAWN = ("finding", "score", "host")
"""Areas of which a picture of the wiring shows nothing; findings repeat what facts say."""
MOST = 16


def difference_marks(differences: Sequence[Difference], topology: Topology, before: bool) -> list[Mark]:
    """Those of one picture, numbered alike in both: what is gone in the picture before, the others in that after."""
    drawn = [each for each in differences if each.area not in _NOT_DRAWN][:MOST]
    return [_mark(number, each, topology) for number, each in enumerate(drawn, 1) if (each.change == "gone") == before]


def _mark(number: int, difference: Difference, topology: Topology) -> Mark:
    at = _at(difference, topology)
    down = 0
    if difference.area == "nvlink" and isinstance(difference.old, int) and isinstance(difference.new, int):
        down = max(difference.old - difference.new, 0)
    return Mark(
        number=number, tone=_TONES[difference.kind], sign=_SIGNS[difference.kind],
        tag=difference.change if difference.area == "hardware" else _TAGS.get(difference.area, difference.area),
        words=f"{difference.device}: {difference.message}", at=at, down=down,
    )  # fmt: skip


def _at(difference: Difference, topology: Topology) -> tuple[At, ...]:
    ends = [topology.device(name) for name in difference.device.split(" - ")]
    keys = [device.bdf or device.name for device in ends if device is not None]
    if difference.area == "nvlink":
        return (pair(*keys),) if len(keys) == 2 else (*map(box, keys), NVSWITCHES)
    if difference.area == "link" and difference.bdf:
        return (link(difference.bdf),)
    if len(keys) == 2:
        return (pair(*keys),)
    return (box(difference.bdf),) if difference.bdf else tuple(map(box, keys))
