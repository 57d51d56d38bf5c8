"""Xids and SXids explained, as JSON: the document of schema ``dgxcheck/xid/1``."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck import __version__
from dgxcheck.assessment.xid_explanation import Explanation
from dgxcheck.facts.missing import Json
from dgxcheck.output.json_text import compact
from dgxcheck.xid.relations import Relation

SCHEMA = "dgxcheck/xid/1"


def render(explained: Sequence[Explanation], relations: Sequence[Relation]) -> str:
    """Strings and lists are empty where NVIDIA publishes nothing."""
    entries: list[Json] = [_entry(each) for each in explained]
    related: list[Json] = [
        {"effect": each.effect, "causes": [*sorted(each.causes)], "place": each.place, "source": each.source}
        for each in relations
    ]
    return compact({"schema": SCHEMA, "tool_version": __version__, "entries": entries, "relations": related})


def _entry(each: Explanation) -> dict[str, Json]:
    return {
        "kind": each.kind, "number": each.number, "applies_to": each.applies_to, "mnemonic": each.mnemonic,
        "text": each.text, "severity": each.severity, "about": each.about, "fatality": each.fatality,
        "action": each.action, "investigation": each.investigation, "products": [*each.products],
        "causes": [*each.causes], "fault": "" if each.fault is None else each.fault.word, "remedy": each.remedy,
        "steps": [*each.steps],
    }  # fmt: skip
