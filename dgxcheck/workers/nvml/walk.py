"""Walk a plan in order: every question is reported before it is asked, and its answer after."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import combinations, permutations, product

from dgxcheck.facts.ids import MOST_GPUS, NVLINK_5, NVLINK_MAX_LINKS, NvmlReturn
from dgxcheck.facts.missing import Gap, Missing, gap_to_json, question
from dgxcheck.facts.nvml.quantities import GROUPS, Quantity
from dgxcheck.workers.answers import SAY
from dgxcheck.workers.nvml import binding as calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Gpu = tuple[str, Any]  # bdf and handle


class Session:
    """Asks a question unless its answer is known, and tells both over stdout: ``key``, then ``key TAB value``."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.known = answers
        self._unsent = ""

    def ask(self, key: str, call: Callable[[], Any]) -> Any:
        """The answer to ``nvml ..``; a value, or a dict with ``missing`` for a gap."""
        if key in self.known:
            return self.known[key]
        self._send(f"{key}\n")
        if isinstance(value := calls.answer(key[5:], call), Missing):
            value = gap_to_json(value)
        self._unsent = f"{key}\t{json.dumps(value)}\n"
        self.known[key] = value
        return value

    def gpu(self, index: int) -> Gpu | None:
        """The bdf and handle of a GPU, which every child asks of the driver again; None where there is none."""
        key = f"nvml nvmlDeviceGetHandleByIndex {index}"
        if is_gap(self.known.pop(key, None)):
            return None
        held: list[Any] = []

        def call() -> str:
            held.extend(calls.gpu_at(index))
            return str(held[0])

        bdf = self.ask(key, call)
        return None if is_gap(bdf) else (str(bdf), held[1])

    def end(self) -> None:
        self._send("done\n")

    def _send(self, text: str) -> None:
        os.write(SAY, (self._unsent + text).encode("utf-8", "replace"))
        self._unsent = ""


def is_gap(value: Any) -> bool:
    return isinstance(value, dict) and "missing" in value


def walk(plan: dict[str, Any]) -> None:
    """Ask what the plan of ``nvml_child`` holds, then say ``done``."""
    session = Session(plan["known"])
    _walk(session, plan)
    session.end()


def _walk(session: Session, plan: dict[str, Any]) -> None:
    session.known.pop("nvml nvmlInit", None)
    if is_gap(session.ask("nvml nvmlInit", calls.init)):
        return
    count = session.ask("nvml nvmlDeviceGetCount", lambda: calls.call("nvmlDeviceGetCount", (), ()))
    indexes = range(count) if isinstance(count, int) and count <= MOST_GPUS else range(0)
    units = plan["units"] if plan["units"] is not None else ["system", *indexes, "pairs"]
    needed = [i for i in indexes if i in units or ("pairs" in units and i not in plan["avoid"])]
    gpus = {index: gpu for index in needed if (gpu := session.gpu(index))}
    for unit, name in product(units, plan["groups"]):
        for call in GROUPS[name]:
            if unit == "system":
                if call.scope == "system":
                    _ask(session, call.function, "", (), *call.args)
            elif unit == "pairs":
                _ask_pairs(session, call, list(gpus.values()))
            elif unit in gpus:
                _ask_gpu(session, call, *gpus[unit])


def _ask(session: Session, function: str, subject: str, handles: tuple[Any, ...], *args: int) -> Any:
    key = f"nvml {question(function, subject, *args)}"
    return session.ask(key, lambda: calls.call(function, handles, args))


def _ask_pairs(session: Session, call: Quantity, gpus: list[Gpu]) -> None:
    chosen = {"pair": combinations, "ordered pair": permutations}.get(call.scope)
    for (a, handle_a), (b, handle_b) in chosen(gpus, 2) if chosen else ():
        _ask(session, call.function, f"{a} {b}", (handle_a, handle_b), *call.args)


def _ask_gpu(session: Session, call: Quantity, bdf: str, handle: Any) -> None:
    function, args, scope = call.function, call.args, call.scope
    if scope == "gpu":
        _ask(session, function, bdf, (handle,), *args)
    elif scope == "position":
        for link in range(NVLINK_MAX_LINKS):
            state = _ask(session, function, bdf, (handle,), link, *args)
            if is_gap(state) and _no_more(link, state):
                break
    elif scope in ("link", "link up", "link 5"):
        for link in range(NVLINK_MAX_LINKS):
            state = session.known.get(f"nvml nvmlDeviceGetNvLinkState {bdf} {link}")
            version = session.known.get(f"nvml nvmlDeviceGetNvLinkVersion {bdf} {link}")
            newer = scope != "link 5" or (isinstance(version, int) and version >= NVLINK_5)
            if (state == 1 and newer) or (scope == "link" and state == 0):
                _ask(session, function, bdf, (handle,), link, *args)
    elif scope == "memory clock":
        memory_clocks = session.known.get(f"nvml nvmlDeviceGetSupportedMemoryClocks {bdf}")
        for clock in memory_clocks if isinstance(memory_clocks, list) else ():
            _ask(session, function, bdf, (handle,), clock)
    elif scope == "process":
        for kind in ("Compute", "Graphics"):
            processes = session.known.get(f"nvml nvmlDeviceGet{kind}RunningProcesses {bdf}")
            for process in processes if isinstance(processes, list) else ():
                _ask(session, function, "", (), process["pid"])


def _no_more(link: int, gap: dict[str, Any]) -> bool:
    """Are there no further NVLink positions, or would they hang or crash as the first one did?"""
    if link == 0 and (gap["missing"] == Gap.UNSUPPORTED.value or "code" not in gap):
        return True
    return gap.get("code") == NvmlReturn.INVALID_ARGUMENT
