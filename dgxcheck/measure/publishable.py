"""Withhold results that other results invalidate: bandwidth of pairs with wrong data, consequences of wrong memory."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.missing import Json

_OF_SOUND_PAIRS = ("p2p", "p2p-both", "p2p-shared", "latency", "latency-sm")
Facts = Mapping[str, Json]


def publishable_facts(facts: Facts) -> dict[str, Json]:
    """The facts, with those that follow from another fault skipped: wrong words are reported at their source only."""
    checked = {key: _pair_integrity(key, fact, facts) for key, fact in facts.items()}
    return {key: _pair_bandwidth(key, fact, checked) for key, fact in checked.items()}


def _pair_integrity(key: str, fact: Json, facts: Facts) -> Json:
    """The integrity of a pair, skipped if a GPU's own memory or the other direction causes the fault."""
    _, kind, *pair = key.split(" ")
    if kind != "p2p-integrity" or not wrong(fact):
        return fact
    for bdf in pair:
        if wrong(facts.get(f"measure memory-integrity {bdf}")):
            return _withheld(f"the memory of {bdf} returns wrong words by itself")
    back = facts.get(f"measure p2p-integrity {pair[1]} {pair[0]}")
    if isinstance(fact, dict) and fact.get("value") == 0 and isinstance(back, dict) and back.get("value"):
        return _withheld("timed out because data of the other direction was lost")
    return fact


def _pair_bandwidth(key: str, fact: Json, facts: Facts) -> Json:
    _, kind, *pair = key.split(" ")
    if kind not in _OF_SOUND_PAIRS or not isinstance(fact, dict) or "value" not in fact:
        return fact
    for a, b in (pair, pair[::-1]) if kind == "p2p-both" else (pair,):
        checked = facts.get(f"measure p2p-integrity {a} {b}")
        if wrong(checked):
            return _withheld("data did not arrive intact")
        if not isinstance(checked, dict) or "value" not in checked:
            return _withheld("data integrity was not tested")
    return fact


def wrong(fact: Json) -> bool:
    """Were there wrong words, or did an exchange time out?"""
    return isinstance(fact, dict) and "value" in fact and (fact["value"] != 0 or bool(fact.get("timed_out")))


def _withheld(why: str) -> Json:
    return {"skipped": "dependency-failed", "detail": why}
