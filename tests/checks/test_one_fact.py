"""A change of any one fact of any device is found, or differs by nature, or stands here with the reason.

A device that is the only one of its kind and role on a box can be judged by rules and by the reference machine alone;
its changes are counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from one_fact import Change, Changeable
from sample import BOXES, swept

from dgxcheck.facts.nature import COMPARED

MOST_UNSEEN = 0.05
QUICK = ("pcie-x4",)
ROLE = "names the model or use of a device: another one makes it a device of another kind, which may be alone"
UNSEEN = {
    **dict.fromkeys(
        ("PciFunction.vendor", "PciFunction.device", "PciFunction.subsystem_vendor", "PciFunction.subsystem_device",
         "PciFunction.class_code", "Gpu.name", "NetInterface.type", "BlockDevice.model", "BlockDevice.vendor",
         "IbDevice.hca_type", "IbDevice.is_vf"), ROLE),
    "PciFunction.max_link_gen": "a root port may be the only one of its id above a GPU",
    "GpuMemory.total": "a difference of one byte is within the tolerance",
    "NumaMemory.memory_kb": "a difference of 1 kB is within the tolerance",
    "GpuClocks.supported.graphics": "a list within a list of clocks; that of the memory clocks is compared",
    "GpuClocks.auto_boost": "a board may support it only with some application clocks",
    "GpuClocks.auto_boost_default": "a board may support it only with some application clocks",
}  # fmt: skip
"""Facts of which a change may go unseen, each with the reason; of the first kind, by a device that leaves its role."""


def is_natural(box: Changeable, change: Change) -> bool:
    """Do healthy devices of a kind differ in it by nature, or for the reason that its row gives?"""
    of, kind = box.rows_of(change.path), box.kind_of(change.path)
    own = next((row for row in of if row.nature != "holder"), None)
    if own is None:
        return False
    natures = {row.nature for row in of}
    reasons = any({"differs", "any"} & row.more.keys() or kind in row.more.get("differs_in", ()) for row in of)
    return reasons or own.nature not in COMPARED or not natures <= {*COMPARED, "holder"}


def outcome(box: Changeable, change: Change) -> str:
    if is_natural(box, change):
        return "naturally different"
    if box.sees(change):
        return "found"
    if change.fact in UNSEEN and UNSEEN[change.fact] is ROLE:
        return "another role"
    return "alone of its kind" if change.alone else "unseen"


def counted(outcomes: Iterable[str]) -> str:
    return ", ".join(f"{number} {what}" for what, number in Counter(outcomes).most_common())


FEW = {"geforce-x4": 200, "gh200": 80, "h100": 90, "h200": 90, "vgpu-l40s": 25}
"""Facts that are judged on boxes with little in them."""


@pytest.mark.in_ci
@pytest.mark.parametrize("name", swept(BOXES, QUICK))
def test_any_one_fact(name: str) -> None:
    box = Changeable(name)
    seen = [(change, outcome(box, change)) for change in box.changes()]
    print(f"{name}: {counted(each for _, each in seen)}")
    unseen = [change for change, each in seen if each == "unseen"]
    judged = [each for _, each in seen if each in ("found", "unseen")]
    assert {change.fact for change in unseen} <= UNSEEN.keys(), [(each.fact, each.how, each.device) for each in unseen]
    assert len(unseen) < MOST_UNSEEN * len(judged)
    assert len(judged) > FEW.get(name, 300)
