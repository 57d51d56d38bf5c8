"""What only time shows of a fleet: as text, page and metrics, and as the document of schema ``dgxcheck/history/1``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from dgxcheck import __version__
from dgxcheck.checks.engine.finding import counted
from dgxcheck.facts.faults.kind import FIELD_DIAGNOSTIC
from dgxcheck.facts.inventory import Part
from dgxcheck.facts.missing import Json
from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.history import NodeHistory, Spell
from dgxcheck.fleet.lemons import RATE, Lemon, incidents
from dgxcheck.fleet.node import VERDICTS
from dgxcheck.fleet.part_history import DAY_S, Followed, PartHistory, Place, Sightings, Stay
from dgxcheck.fleet.trends import Trend
from dgxcheck.output.exposition import classic, metric, now
from dgxcheck.output.fleet.text import number, section
from dgxcheck.output.json_values import compact, head, members
from dgxcheck.output.page.blocks import Block, Fold, Page, Paragraph, sections
from dgxcheck.output.page.html import render as page
from dgxcheck.output.plain_text import lines
from dgxcheck.output.report import HistoryReport

_MOST = 10
"""Rows of a section at once."""
_MOST_SPELLS = 50
"""Of one fault that JSON lists one by one: the last."""
_LEAST_CHANCE = 1e-6
"""No model of a fleet is good to more."""
_Seen = NodeHistory | Stay | Spell | Sightings | Trend
_NAMES = {"gpu": "GPU", "hca": "HCA", "dimm": "DIMM"}


def text(report: HistoryReport) -> str:
    """The summary line first; sections that have nothing to say are left out."""
    most = None if report.verbose else _MOST
    found = [row for title, rows in _sections(report) for row in section(title, rows, most)]
    return lines([f"{report.verdict.upper()}: {_summary(report)}", *found])


def html(report: HistoryReport) -> str:
    """The same as one file; what is beyond the first rows of a section unfolds."""
    summary = _summary(report)
    return page(Page(
        title=counted(len(report.history.nodes), "node"), status=report.verdict.upper(), tone=report.verdict,
        lead=f"{summary}.", facts=(("Written", f"{_date(time.time())} by dgxcheck {__version__}"),),
        sections=sections(*((title, _blocks(rows)) for title, rows in _sections(report))),
    ))  # fmt: skip


def _blocks(rows: Sequence[str]) -> Iterator[Block]:
    yield from map(Paragraph, rows[:_MOST])
    if more := rows[_MOST:]:
        yield Fold(title=f"{len(more)} more", blocks=tuple(map(Paragraph, more)))


def prometheus(report: HistoryReport) -> str:
    """Incidents of every node, and a series for all that is blamed or will reach its limit."""
    nodes = report.history.nodes.items()
    lemons = [({"node": lemon.node}, int(not lemon.mended)) for lemon in report.lemons]
    blamed = [(
        {"what": each.what, "kind": each.part.kind, "serial": each.part.serial, "fault": each.word,
         **dict(zip(("node", "at"), (each.after if each.what == "part" else each.before).place, strict=True))}, 1,
    ) for each in report.followed]  # fmt: skip
    ahead = [({"kind": trend.part.kind, "serial": trend.part.serial, "gauge": trend.gauge,
               **dict(zip(("node", "at"), trend.place, strict=True))}, trend.reached_s)
             for trend in report.history.trends]  # fmt: skip
    return classic([
        now("history_timestamp_seconds"),
        metric("history_results", [({}, report.history.results)]),
        metric("history_incidents", [({"node": name}, len(incidents(node))) for name, node in nodes]),
        metric("history_lemon", lemons),
        metric("history_blamed", blamed),
        metric("history_limit_timestamp_seconds", ahead),
    ])  # fmt: skip


def _summary(report: HistoryReport) -> str:
    history = report.history
    nodes = history.nodes.values()
    first, last = min(node.first_s for node in nodes), max(node.last_s for node in nodes)
    blamed = {(each.what, each.part.serial if each.what == "part" else each.before.place) for each in report.followed}
    kinds = Counter(what for what, _ in blamed)
    bad = sum(not lemon.mended for lemon in report.lemons)
    counts = (bad, "lemon", ""), (kinds["part"], "bad part", ""), (kinds["slot"], "bad slot", ""), (
        len(history.trends), "limit ahead", "limits ahead"), (
        sum(node.verdict != "pass" for node in nodes), "node with open faults", "nodes with open faults")  # fmt: skip
    found = [counted(*count) for count in counts if count[0]]
    return (
        f"{counted(len(history.nodes), 'node')}, {counted(history.results, 'result')}, {_day(first)} to {_day(last)}:"
        f" {', '.join(found) or 'nothing stands out'}"
    )


def _sections(report: HistoryReport) -> tuple[tuple[str, list[str]], ...]:
    history = report.history
    return (
        ("Nodes that fail more often than others", [_lemon(lemon) for lemon in report.lemons if not lemon.mended]),
        ("Nodes that did, and are quiet since", [_lemon(lemon) for lemon in report.lemons if lemon.mended]),
        ("Parts whose fault went along with them", [_along(each) for each in report.followed if each.what == "part"]),
        ("Slots, boards or cables: the fault stayed when the part was exchanged",
         [_stayed(each) for each in report.followed if each.what == "slot"]),
        ("Limits ahead", [*map(_trend, history.trends)]),
        ("Faults that came back", _came_back(history.nodes)),
        ("Open faults", _open(history.nodes)),
        ("Not read", [f"{unreadable.where}: {unreadable.why}" for unreadable in history.unread]),
    )  # fmt: skip


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def _one_in(chance: float) -> str:
    return f"by chance 1 in {1 / chance:,.0f}" if chance > _LEAST_CHANCE else "by chance less than 1 in a million"


def _lemon(lemon: Lemon) -> str:
    where = f", most at {lemon.place}" if lemon.place else ""
    return (
        f"{lemon.node}: {counted(len(lemon.incidents), 'incident')} in {counted(lemon.days, 'day')}{where}, the last"
        f" {_day(lemon.incidents[-1])}; {lemon.expected:.1f} expected from {counted(lemon.likes, 'like node')},"
        f" {_one_in(lemon.chance)}"
    )


def _name(part: Part) -> str:
    return f"{_NAMES.get(part.kind, part.kind)} {part.serial}{f' ({part.model})' if part.model else ''}"


def _place(place: Place) -> str:
    return " ".join(place).rstrip()


def _seen(word: str, stay: Stay) -> str:
    seen = stay.found[word]
    return f"{_day(seen.first_s)} to {_day(seen.last_s)} ({counted(seen.results, 'result')})"


def _along(each: Followed) -> str:
    old, new = each.before, each.after
    with_other = f"clean since with {each.other} ({counted(each.clean, 'result')})"
    there = f"; {_place(old.place)} is {with_other if each.other else 'empty since'}"
    return (
        f"{_name(each.part)}: {each.word} at {_place(old.place)} {_seen(each.word, old)}, moved to"
        f" {_place(new.place)} on {_day(new.first_s)}, again {_seen(each.word, new)}{there}; {_one_in(each.chance)};"
        f" do: {FIELD_DIAGNOSTIC if each.part.kind == 'gpu' else 'ask for a replacement'}, with this evidence"
    )


def _stayed(each: Followed) -> str:
    old, new = each.before, each.after
    gone = f"is clean elsewhere since ({counted(each.clean, 'result')})" if each.clean else "was not seen since"
    return (
        f"{_place(old.place)}: {each.word} with {_name(each.part)} {_seen(each.word, old)}, and with {each.other}"
        f" from {_day(new.first_s)} on, again {_seen(each.word, new)}; {each.part.serial} {gone};"
        f" {_one_in(each.chance)}; do: inspect the slot, the board below it and its cables before another part is"
        " exchanged"
    )


def _trend(trend: Trend) -> str:
    rise = f"{trend.per_day:+.3g} a day, {counted(trend.readings, 'reading')}"
    return (
        f"{_name(trend.part)} at {_place(trend.place)}: {trend.gauge} {number(trend.first)} on {_day(trend.first_s)},"
        f" {number(trend.last)} on {_day(trend.last_s)} ({rise}): reaches {number(trend.limit)} about"
        f" {_day(trend.reached_s)}"
    )


def _came_back(nodes: Mapping[str, NodeHistory]) -> list[str]:
    """The most frequent first."""
    rows = [(len(spells), name, key, spells) for name, node in nodes.items()
            for key, spells in _by_key(node).items() if len(spells) > 1]  # fmt: skip
    return [f"{name} {key} {spells[-1].fault.word}: {count} times, {_day(spells[0].first_s)} to"
            f" {_day(spells[-1].last_s)}{'' if spells[-1].gone_s else ', still there'}{_returns(spells)}"
            for count, name, key, spells in sorted(rows, key=lambda row: (-row[0], *row[1:3]))]  # fmt: skip


def _open(nodes: Mapping[str, NodeHistory]) -> list[str]:
    """The worst nodes first; what could not be read is no fault that is followed."""
    bad = sorted((VERDICTS.index(node.verdict), name) for name, node in nodes.items() if node.verdict != "pass")
    return [f"{name} {what}" for _, name in bad for what in [
        *(f"{spell.fault.key} {spell.fault.word}: {spell.fault.status}, since {_day(spell.first_s)}"
          for spell in nodes[name].open)] or [f"{nodes[name].verdict} on {_day(nodes[name].last_s)}"]]  # fmt: skip


def _by_key(node: NodeHistory) -> dict[str, list[Spell]]:
    return gathered((spell.fault.key, spell) for spell in node.spells)


def _returns(spells: Sequence[Spell]) -> str:
    """After what it was gone, and for how long; the last of them."""
    ended = [(spell, after) for spell, after in pairwise(spells) if spell.after and spell.gone_s]
    if not ended:
        return ""
    spell, after = ended[-1]
    days = max(0.0, (after.first_s - (spell.gone_s or 0)) / DAY_S)
    return f"; came back {days:.0f} d after: {', '.join(spell.after)}"


def as_json(report: HistoryReport) -> str:
    """All nodes with their faults, all parts with a fault or a move, and what is blamed."""
    history = report.history
    return compact({
        **head("dgxcheck/history/1"),
        **members(report, "verdict exit_code results=history.results"),
        "false_alarm_rate": RATE,
        "nodes": [{
            "name": name, **_dates(node), **members(node, "verdict results days"),
            "faults": [_fault(key, spells) for key, spells in _by_key(node).items()],
        } for name, node in history.nodes.items()],
        "parts": [_part(serial, part) for serial, part in history.parts.items()
                  if len(part.stays) > 1 or any(stay.found for stay in part.stays)],
        "lemons": [{
            "node": lemon.node, "incidents": [_date(when) for when in lemon.incidents], "days": lemon.days,
            "expected": round(lemon.expected, 3), **members(lemon, "like_nodes=likes chance mended place?"),
        } for lemon in report.lemons],
        "blamed": [{
            **members(each, "what fault=word serial=part.serial kind=part.kind model=part.model"),
            "before": _stay(each.before), "after": _stay(each.after),
            **members(each, "other_serial=other? clean_results=clean chance"),
        } for each in report.followed],
        "trends": [{
            **members(trend, "serial=part.serial kind=part.kind"), "node": trend.place[0], "at": trend.place[1],
            "gauge": trend.gauge, **_dates(trend), **members(trend, "first last limit per_day readings"),
            "reached": _date(trend.reached_s),
        } for trend in history.trends],
        "unread": [members(unreadable, "where why") for unreadable in history.unread],
    })  # fmt: skip


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _dates(first: _Seen, last: _Seen | None = None) -> dict[str, Json]:
    """Of one, or from the first to the last of several."""
    return {"first_seen": _date(first.first_s), "last_seen": _date((last or first).last_s)}


def _fault(key: str, spells: Sequence[Spell]) -> Json:
    return {
        "key": key, "fault": spells[-1].fault.word, **_dates(spells[0], spells[-1]), "times": len(spells),
        "open": spells[-1].gone_s is None,
        "spells": [{
            **_dates(spell), "results": spell.results, "gone": None if spell.gone_s is None else _date(spell.gone_s),
            "after": [*spell.after],
        } for spell in spells[-_MOST_SPELLS:]],
    }  # fmt: skip


def _part(serial: str, history: PartHistory) -> Json:
    return {
        "serial": serial, **members(history.part, "kind model"),
        **_dates(history.stays[0], history.stays[-1]),
        "stays": [_stay(stay) for stay in history.stays],
    }  # fmt: skip


def _stay(stay: Stay) -> Json:
    faults: dict[str, Json] = {
        word: {**_dates(seen), "results": seen.results}
        for word, seen in stay.found.items()
    }
    return {"node": stay.place[0], "at": stay.place[1], **_dates(stay), "results": stay.results, "faults": faults}
