"""What of the measured may stand: a bandwidth only of a pair whose data arrived, and a fault only where it is."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.missing import Json

_OF_SOUND_PAIRS = ("p2p", "p2p-both", "p2p-shared", "latency", "latency-sm")
Facts = Mapping[str, Json]


def publishable_facts(facts: Facts) -> dict[str, Json]:
    """The facts, but those that say nothing of their own: each wrong word is told once, where it comes from."""
    checked = {key: _pair_integrity(key, fact, facts) for key, fact in facts.items()}
    return {key: _pair_bandwidth(key, fact, checked) for key, fact in checked.items()}


def _pair_integrity(key: str, fact: Json, facts: Facts) -> Json:
    """What was seen of a pair's data, unless a GPU's own memory or the other direction is to blame."""
    _, kind, *pair = key.split(" ")
    if kind != "p2p-integrity" or not wrong(fact):
        return fact
    for bdf in pair:
        if wrong(facts.get(f"measure memory-integrity {bdf}")):
            return _withheld(f"the memory of {bdf} gives wrong words by itself")
    back = facts.get(f"measure p2p-integrity {pair[1]} {pair[0]}")
    if isinstance(fact, dict) and fact.get("value") == 0 and isinstance(back, dict) and back.get("value"):
        return _withheld("its exchange of data waits for the other direction, which loses some")
    return fact


def _pair_bandwidth(key: str, fact: Json, facts: Facts) -> Json:
    _, kind, *pair = key.split(" ")
    if kind not in _OF_SOUND_PAIRS or not isinstance(fact, dict) or "value" not in fact:
        return fact
    for a, b in (pair, pair[::-1]) if kind == "p2p-both" else (pair,):
        checked = facts.get(f"measure p2p-integrity {a} {b}")
        if wrong(checked):
            return _withheld("its data did not arrive as it was sent")
        if not isinstance(checked, dict) or "value" not in checked:
            return _withheld("whether its data arrives was not seen")
    return fact


def wrong(fact: Json) -> bool:
    """Were there wrong words, or did an exchange never end?"""
    return isinstance(fact, dict) and "value" in fact and (fact["value"] != 0 or bool(fact.get("timed_out")))


def _withheld(why: str) -> Json:
    return {"skipped": "dependency-failed", "detail": why}
