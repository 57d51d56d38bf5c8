"""Moves of a fault: its overlay as it would be had it hit another GPU, adapter, port, board or pair of NVLinks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from moving_values import changed
from wired import End, Wired, bdf_of

from dgxcheck.facts.missing import Json
from dgxcheck.source.recording.keys import GroupedFacts, find, flatten, insert

T = TypeVar("T")
HANDLE, COUNT = "nvml nvmlDeviceGetHandleByIndex", "nvml nvmlDeviceGetCount"
MINOR, NODE = "nvml nvmlDeviceGetMinorNumber", re.compile(r"opens /dev/nvidia\d+")
NVLINK = re.compile(r"(nvml nvmlDeviceGetNvLink\w+) (\S+) (\d+)(.*)")
COPIED = re.compile(r"measure p2p (\S+) (\S+)")
"""The more NVLinks, the faster."""
LOGGED_LINK = re.compile(r"\(PCI:([0-9a-f:]+)\).* on link (\d+)")


def closed(partial: Mapping[T, T]) -> dict[T, T]:
    """A one-to-one mapping made onto: what stands in the way goes where a place became free."""
    whole, back = dict(partial), {new: old for old, new in partial.items()}
    assert len(back) == len(partial)
    for new in partial.values():
        if new not in whole:
            free = new
            while free in back:
                free = back[free]
            whole[new] = free
    return whole


class Move:
    """Which devices, bridges and ends of NVLinks take the places of which others."""

    def __init__(
        self, box: Wired, devices: Mapping[str, str], bridges: Iterable[tuple[str, str]] = (),
        ends: Mapping[End, End] | None = None,
    ) -> None:  # fmt: skip
        self.box = box
        self.devices = closed(devices)
        names = dict(bridges)
        for old, new in devices.items():
            names.update(zip(box.names(old), box.names(new), strict=True))
        self._names = closed(names)
        self.ends = dict(ends or {})
        tokens = "|".join(map(re.escape, sorted(self._names, key=len, reverse=True)))
        self._tokens = re.compile(rf"(?<![0-9A-Za-z_.])(?:{tokens or '(?!)'})(?!\w)")

    def text(self, text: str) -> str:
        """With the new names, and the new position in a line of the kernel log about an NVLink."""
        if found := LOGGED_LINK.search(text):
            _, position = self.end((f"{found[1]}.0", int(found[2])))
            text = f"{text[: found.start(2)]}{position}{text[found.end(2) :]}"
        return self._tokens.sub(lambda found: self._names[found[0]], text)

    def end(self, end: End) -> End:
        """Of an NVLink; a GPU that moves takes its positions along."""
        return self.ends.get(end) or (self.devices.get(end[0], end[0]), end[1])

    def key(self, key: str) -> str:
        """The key of a fact."""
        if found := NVLINK.fullmatch(key):
            bdf, position = self.end((found[2], int(found[3])))
            return f"{found[1]} {bdf} {position}{found[4]}"
        if key.startswith(f"{HANDLE} "):
            gpu = self.box.gpus[int(key.rpartition(" ")[2])]
            return f"{HANDLE} {self.box.gpus.index(self.devices.get(gpu, gpu))}"
        return self.text(key)

    def finding(self, key: str) -> str:
        """The key of a finding; of two GPUs the first in order stands first."""
        check, *rest = key.split("/")
        order = self.box.gpus
        if len(rest) == 2 and rest[0] in order and rest[1].isdecimal():
            bdf, position = self.end((rest[0], int(rest[1])))
            return f"{check}/{bdf}/{position}"
        words = [self.text(word) for word in rest]
        if {*words} <= {*order}:
            words.sort(key=order.index)
        return "/".join((check, *words))

    def overlay(self, document: dict[str, Any]) -> dict[str, Any]:
        """The overlay at its new place."""
        base = flatten(self.box.lines)
        facts = self._facts({**document.get("facts", {}), **document.get("add", {})}, document.get("drop", []))
        later = [{"at_s": each["at_s"], "facts": self._moment(each["facts"])} for each in document.get("later", [])]
        return {
            **{member: document[member] for member in ("schema", "base", "fault", "sources", "expect")},
            "facts": {key: fact for key, fact in facts.items() if key in base},
            "add": {key: fact for key, fact in facts.items() if key not in base},
            "drop": [self.text(subject) for subject in document.get("drop", [])],
            **({"later": later} if later else {}),
        }

    def _facts(self, given: Mapping[str, Json], drop: list[str]) -> dict[str, Json]:
        """What is under ``facts`` and ``add``. Where NVML lists fewer GPUs, the others are counted again."""
        listed = [given.get(f"{HANDLE} {index}", gpu) for index, gpu in enumerate(self.box.gpus)]
        gone = [gpu for gpu in self.box.gpus if gpu in drop or (COUNT in given and gpu not in listed)]
        if not gone:
            return {self.key(key): self._fact(key, fact) for key, fact in given.items()}
        left = [gpu for gpu in self.box.gpus if gpu not in {self.devices.get(each, each) for each in gone}]
        facts: dict[str, Json] = {}
        for key, fact in given.items():
            if key == COUNT or NODE.fullmatch(key):
                facts[key] = fact  # the last nodes are those without a GPU
            elif not key.startswith((f"{HANDLE} ", f"{MINOR} ")):
                facts[self.key(key)] = self._fact(key, fact)
        facts |= {f"{MINOR} {gpu}": number for number, gpu in enumerate(left)}
        if not drop:
            facts |= {f"{HANDLE} {index}": gpu for index, gpu in enumerate(left)}
            facts |= {f"{HANDLE} {index}": {"missing": "unrecorded"} for index in range(len(left), len(self.box.gpus))}
        return facts

    def _fact(self, key: str, fact: Json) -> Json:
        if (named := bdf_of(fact)) is not None:  # a GPU, or what is at the other end of a link
            old, new = (find(self.box.lines, f"nvml nvmlDeviceGetPciInfo {bdf}") for bdf in (named, self.text(named)))
            return changed(old, fact, new, self.text)
        if (
            (copied := COPIED.fullmatch(key))
            and isinstance(fact, dict)
            and isinstance(rate := fact.get("value"), float)
        ):
            links, there = (len(self.box.links(*two)) for two in (copied.groups(), map(self.text, copied.groups())))
            return {**fact, "value": rate * (there / links if links else 1)}
        return changed(find(self.box.lines, key), fact, find(self.box.lines, self.key(key)), self.text)

    def _moment(self, lines: GroupedFacts) -> GroupedFacts:
        """A later one."""
        moved: GroupedFacts = {}
        for key, fact in flatten(lines).items():
            insert(moved, self.key(key), self._fact(key, fact))
        return moved
