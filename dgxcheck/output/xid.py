"""What ``dgxcheck xid`` prints: text for people, and the document of schema ``dgxcheck/xid/1``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from dgxcheck.assessment.xid_explanation import Explanation
from dgxcheck.facts.missing import Json
from dgxcheck.facts.typical import gathered
from dgxcheck.output.health.instructions import STEPS
from dgxcheck.output.json_values import compact, head, members
from dgxcheck.output.plain_text import columns, lines, wording
from dgxcheck.xid.relations import Place, Relation
from dgxcheck.xid.table import FIRST_SXID, Severity, sxids

SEVERITIES: Mapping[Severity, str] = wording("xid severity")
PLACES: Mapping[Place, str] = wording("xid place")
_CAUSES: Mapping[Place, str] = {**PLACES, "nvswitch-to-gpu": "an NVSwitch", "gpu-to-nvswitch": "a GPU joined to it"}
_MOST = 40
"""Numbers that are listed one by one."""


def one(meanings: Sequence[Explanation], relations: Sequence[Relation]) -> str:
    """All about one number; a block for each of its meanings."""
    number = meanings[0].entry.number
    blocks: list[str] = []
    for meaning in meanings:
        entry = meaning.entry
        mnemonic = f" ({entry.mnemonic})" if entry.mnemonic else ""
        blocks += [f"{meaning.kind} {number}: {entry.text}{mnemonic}", *columns([*_rows(meaning)]), ""]
    effects = gathered((relation.place, relation.effect) for relation in relations if number in relation.causes)
    related = [
        *(("  Can cause", f"{_names(numbers)} on {PLACES[place]}") for place, numbers in effects.items()),
        *(("  Can follow", f"{_names(r.causes - {number})} on {_CAUSES[r.place]}")
          for r in relations if number == r.effect and r.causes - {number}),
    ]  # fmt: skip
    return lines([*blocks, *columns(related)] if related else blocks[:-1])


def table(explained: Sequence[Explanation]) -> str:
    """One line each."""
    head = ("", "Number", "Applies to", "Severity", "About", "NVIDIA's action", "Meaning")
    rows = [
        (each.kind, str(each.entry.number), each.applies_to, SEVERITIES[each.entry.severity], each.about,
         each.entry.action or each.entry.fatality or "-", each.entry.text)
        for each in explained
    ]  # fmt: skip
    return lines(columns([head, *rows]))


def _rows(each: Explanation) -> Iterator[tuple[str, str]]:
    entry = each.entry
    yield "  Applies to", each.applies_to
    yield "  Severity", SEVERITIES[entry.severity] + (f", {entry.fatality} by NVIDIA's guide" if entry.fatality else "")
    yield "  About", each.about
    if entry.action:
        then = f", then {entry.investigation}" if entry.investigation not in ("", entry.action) else ""
        yield "  NVIDIA's action", f"{entry.action}{then}"
    if entry.products:
        yield "  Products", ", ".join(entry.products)
    if entry.causes:
        yield "  Possible causes", ", ".join(cause.replace("-", " ") for cause in entry.causes)
    yield "  What to do", each.remedy
    if each.steps:
        yield "  Steps", ", ".join(STEPS[step] for step in each.steps)


def _names(numbers: Collection[int]) -> str:
    """``Xid 46, 62, 79``; a phrase for nearly all."""
    if len(numbers) <= _MOST:
        first, *others = sorted({*numbers})
        kind = "SXid" if first >= FIRST_SXID else "Xid"
        return f"{kind} {first}{''.join(f', {number}' for number in others)}"
    return "a fatal SXid" if {*numbers} & sxids().keys() else "any other Xid"


SCHEMA = "dgxcheck/xid/1"


def render(explained: Sequence[Explanation], relations: Sequence[Relation]) -> str:
    """Strings and lists are empty where NVIDIA publishes nothing."""
    entries: list[Json] = [_entry(finding) for finding in explained]
    related: list[Json] = [
        {"effect": each.effect, "causes": [*sorted(each.causes)], "place": each.place, "source": each.source}
        for each in relations
    ]
    return compact({**head(SCHEMA, dated=False), "entries": entries, "relations": related})


def _entry(each: Explanation) -> dict[str, Json]:
    return {
        **members(each, "kind number=entry.number applies_to"),
        **members(each.entry, "mnemonic text severity"),
        "about": each.about,
        **members(each.entry, "fatality action investigation products causes"),
        "fault": "" if each.fault is None else each.fault.word,
        **members(each, "remedy steps"),
    }
