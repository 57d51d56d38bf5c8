"""The worker that stays in NVML and waits for its events, where the kernel log is closed to us.

It says ``open`` before and after NVML is opened (a gap where it cannot be, or some GPUs do not take part), then
``event N`` before and after each wait: null where there was none, else the bus id and the Xid (48 for a double-bit ECC
error). It ends when stdin does, and with a gap where the driver could not wait: what NVML holds is then outdated, as
after a reload of the driver.
"""

from __future__ import annotations

from typing import Any

from dgxcheck.facts.ids import MOST_GPUS
from dgxcheck.facts.missing import Gap, Json, Missing, gap_to_json
from dgxcheck.workers.answers import answer, ask, end, first_line, told_to_end
from dgxcheck.workers.nvml import binding as calls

OPEN = "open"
WAIT_MS = 1000
DOUBLE_BIT_ECC, XID = 0x2, 0x8
"""``nvmlEventTypeDoubleBitEccError``, ``nvmlEventTypeXidCriticalError``"""
DOUBLE_BIT_XID = 48


def main() -> None:
    first_line()  # there is nothing to plan
    ask(OPEN)
    events, gap = _open()
    answer(OPEN, None if gap is None else gap_to_json(gap))
    number = 0
    while events is not None and not told_to_end():
        key = f"event {number}"
        ask(key)
        found = _next(events)
        answer(key, gap_to_json(found) if isinstance(found, Missing) else found)
        number += 1
        if isinstance(found, Missing):
            break
    end()


def _open() -> tuple[Any, Missing | None]:
    """An event set with all GPUs that take part, None where none does, and which do not."""
    if isinstance(begun := calls.answer("nvmlInit", calls.init), Missing):
        return None, begun
    events = calls.answer("nvmlEventSetCreate", lambda: calls.call("nvmlEventSetCreate", (), ()))
    if isinstance(events, Missing):
        return None, events
    count = calls.answer("nvmlDeviceGetCount", lambda: calls.call("nvmlDeviceGetCount", (), ()))
    if not isinstance(count, int) or count > MOST_GPUS:
        return None, Missing(Gap.GARBLED, "nvmlDeviceGetCount", "no number of GPUs")
    refused = {index: gap for index in range(count) if (gap := _registered(index, events)) is not None}
    if not refused:
        return events, None
    gap = next(iter(refused.values()))
    which = f"of GPU {', '.join(map(str, refused))} of {count}: {gap}"
    return events if len(refused) < count else None, Missing(gap.gap, gap.where, which)


def _registered(index: int, events: Any) -> Missing | None:
    def register() -> None:
        handle = calls.call("nvmlDeviceGetHandleByIndex", (), (index,))
        calls.call("nvmlDeviceRegisterEvents", (handle,), (XID | DOUBLE_BIT_ECC, events))

    found = calls.answer("nvmlDeviceRegisterEvents", register)
    return found if isinstance(found, Missing) else None


def _next(events: Any) -> Json | Missing:
    """The next event within ``WAIT_MS``; None for none."""
    found: list[Any] = []

    def wait() -> str:
        found.append(calls.call("nvmlEventSetWait_v2", (events,), (WAIT_MS,)))
        return calls.bdf_of(found[0].device)

    if isinstance(bdf := calls.answer("nvmlEventSetWait", wait), Missing):
        return None if bdf.gap is Gap.TIMEOUT else bdf
    kind, data = int(found[0].eventType), int(found[0].eventData)
    return {"bdf": bdf, "xid": data if kind == XID else DOUBLE_BIT_XID}
