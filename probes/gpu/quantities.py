"""The facts that a group of NVML quantities gives, by ``dgxcheck.facts.nvml_quantities``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dgxcheck.facts.missing import Missing, question
from dgxcheck.facts.nvml_quantities import GROUPS, Quantity
from dgxcheck.source.protocol import Source
from probes.gpu.values import is_on, members, number, outputs, text


def facts_of(source: Source, group: str, bdf: str) -> dict[str, Any]:
    """Fields of the group's record to values or gaps, for one GPU."""
    return {
        name: value
        for quantity in GROUPS[group]
        if quantity.scope == "gpu" and quantity.facts
        for name, value in zip(quantity.facts, _values(source, quantity, bdf), strict=True)
    }


def facts_of_link(source: Source, group: str, bdf: str, link: int, state: int | Missing) -> dict[str, Any]:
    """Fields to values or gaps, for one NVLink; all are the gap of its ``state`` where that is missing."""
    of_links = (quantity for quantity in GROUPS[group] if quantity.scope in ("link", "link up"))
    return {
        quantity.facts[0]: state if isinstance(state, Missing) else _values(source, quantity, bdf, link)[0]
        for quantity in of_links
    }


def nested(facts: Mapping[str, Any], record: str) -> dict[str, Any]:
    """The facts of a record within the group's: ``current.sm`` is ``sm`` of ``current``."""
    prefix = f"{record}."
    return {name[len(prefix) :]: value for name, value in facts.items() if name.startswith(prefix)}


def plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that are in no record within the group's."""
    return {name: value for name, value in facts.items() if "." not in name}


def _values(source: Source, quantity: Quantity, bdf: str, *first: int) -> tuple[Any, ...]:
    function, args = quantity.function, (*first, *quantity.args)
    if quantity.form == "text":
        return (text(source, function, bdf, *args),)
    values: tuple[int | Missing, ...]
    if quantity.members:
        values = members(source, function, bdf, *args, names=quantity.members)
    elif len(quantity.facts) > 1:
        values = outputs(source, function, bdf, *args, count=len(quantity.facts))
    else:
        values = (number(source, function, bdf, *args, low=quantity.low, high=quantity.high),)
    if quantity.form != "flag":
        return values
    where = question(function, bdf, *args)
    return tuple(is_on(value, where) for value in values)
