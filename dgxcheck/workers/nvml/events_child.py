"""The worker that stays in NVML and waits for its events, where the kernel log is closed to us.

It says ``open`` before and after NVML is opened (a gap where it cannot be), then ``event N`` before and after each
wait: null where there was none, a gap where the driver could not wait, else the bus id and the Xid (48 for a double-bit
ECC error). It ends when stdin does.
"""

from __future__ import annotations

import time
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
    opened = _open()
    answer(OPEN, gap_to_json(opened) if isinstance(opened, Missing) else None)
    number = 0
    while not isinstance(opened, Missing) and not told_to_end():
        key = f"event {number}"
        ask(key)
        answer(key, _next(opened))
        number += 1
    end()


def _open() -> Any:
    """An event set with all GPUs that take part."""
    if isinstance(begun := calls.answer("nvmlInit", calls.init), Missing):
        return begun
    held: list[Any] = []
    made = calls.answer("nvmlEventSetCreate", lambda: held.append(calls.call("nvmlEventSetCreate", (), ())))
    if isinstance(made, Missing):
        return made
    count = calls.answer("nvmlDeviceGetCount", lambda: calls.call("nvmlDeviceGetCount", (), ()))
    if not isinstance(count, int) or count > MOST_GPUS:
        return Missing(Gap.GARBLED, "nvmlDeviceGetCount", "no number of GPUs")
    registered = [_registered(index, held[0]) for index in range(count)]
    refused = [gap for gap in registered if isinstance(gap, Missing)]
    return refused[0] if refused and len(refused) == count else held[0]


def _registered(index: int, events: Any) -> Missing | None:
    def register() -> None:
        handle = calls.call("nvmlDeviceGetHandleByIndex", (), (index,))
        calls.call("nvmlDeviceRegisterEvents", (handle,), (XID | DOUBLE_BIT_ECC, events))

    found = calls.answer("nvmlDeviceRegisterEvents", register)
    return found if isinstance(found, Missing) else None


def _next(events: Any) -> Json:
    """The next event within ``WAIT_MS``; an error other than that there is none is said, and waited for, too."""
    found: list[Any] = []

    def wait() -> str:
        found.append(calls.call("nvmlEventSetWait_v2", (events,), (WAIT_MS,)))
        return calls.bdf_of(found[0].device)

    if isinstance(bdf := calls.answer("nvmlEventSetWait", wait), Missing):
        if bdf.gap is Gap.TIMEOUT:
            return None
        time.sleep(WAIT_MS / 1000)
        return gap_to_json(bdf)
    kind, data = int(found[0].eventType), int(found[0].eventData)
    return {"bdf": bdf, "xid": data if kind == XID else DOUBLE_BIT_XID}
