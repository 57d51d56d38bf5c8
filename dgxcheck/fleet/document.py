"""Results out of JSON documents of schemas ``dgxcheck/result/1`` and ``dgxcheck/health/2``."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeGuard, TypeVar

from dgxcheck.checks.engine.finding import against
from dgxcheck.facts.ids import NVLINK_MAX_LINKS
from dgxcheck.facts.inventory import Part
from dgxcheck.facts.missing import Json, is_number, items_of, members_of, text_of
from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.node import COMPARED, LEVELS, VERDICTS, GpuLinks, Identity, LikeMachines, NodeFault, Result
from dgxcheck.source.state_file import is_date

RESULT, HEALTH = "dgxcheck/result/1", "dgxcheck/health/2"
_FAMILIES = tuple(schema.rpartition("/")[0] for schema in (RESULT, HEALTH))
Word = TypeVar("Word", bound=str)
Shared = TypeVar("Shared")
_TEXT_CHARACTERS = 256
_LARGEST = 1e18
"""A figure of any unit is less; floating point goes on to sum its square."""
Figures = dict[str, float]
"""By key of the finding, in the unit of its check."""
_Cause = tuple[str, str]
"""Id and first step."""


class NotAResult(ValueError):
    """The document is none, or breaks its schema; the text says where."""


class SharedStrings:
    """Sets and groups that many results have in common, each kept once."""

    def __init__(self) -> None:
        self._first: dict[Hashable, Any] = {}

    def one(self, found: Shared, key: Hashable = None) -> Shared:
        """The equal one, or that of the same key, which was seen first."""
        first: Shared = self._first.setdefault((type(found), found if key is None else key), found)
        return first


def result_of(document: Json, shared: SharedStrings) -> tuple[Result, Figures]:
    """One result and its figures. Raises NotAResult."""
    if not isinstance(document, dict) or (schema := document.get("schema")) not in (RESULT, HEALTH):
        if isinstance(document, dict) and isinstance(schema, str) and schema.rpartition("/")[0] in _FAMILIES:
            raise NotAResult(f"{schema[:40]} is of another version of dgxcheck; this one reads {RESULT} and {HEALTH}")
        raise NotAResult(f"not a result of 'dgxcheck health --format jsonl' ({RESULT})")
    whole = schema == HEALTH
    findings = _list(document, "findings" if whole else "found")
    passed, figures = _judged(findings) if whole else _passed(document)
    causes = _causes(document, findings, whole) if findings else {}
    faults = tuple(_fault(finding, whole, causes) for finding in findings if _counts(finding))
    verdict = _word(document, "verdict", VERDICTS)
    identity = _identity(document)
    if verdict == "pass" and (not passed or any(_counts(each) and not each.get("acknowledged") for each in findings)):
        raise NotAResult("'verdict' is pass, and what was judged does not say so")
    versions, settings = (_by_name(document, member) for member in ("versions", "settings"))
    versions = shared.one(versions, tuple(versions.items()))
    return Result(
        node=_text(document, "host", "the host's name"),
        live=members_of(document.get("source")).get("kind") == "live",
        generated_at=_date(document),
        level=_word(document, "level", LEVELS),
        verdict=verdict,
        score=_score(document),
        group=shared.one(_group(document, versions)),
        versions=versions,
        settings=shared.one(settings, tuple(settings.items())),
        nvlink_domains=tuple(each for each in items_of(document.get("nvlink_domains")) if isinstance(each, str)),
        nvlinks=_nvlinks(document),
        faults=faults,
        passed=shared.one(passed),
        skipped=shared.one(_skipped(document, findings, whole)),
        devices=_devices(document),
        accepted=shared.one(frozenset(str(finding.get("key")) for finding in findings if finding.get("acknowledged"))),
        machine=identity.machine,
        identity=shared.one(identity),
        tool_version=str(document.get("tool_version") or "")[:_PART_CHARACTERS],
        coverage=_coverage(document),
        unread=shared.one(_skipped(document, findings, whole, UNREAD)),
        gpus_at=shared.one(_gpus_at(document)),
    ), figures


def _text(document: Mapping[str, Json], name: str, what: str) -> str:
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise NotAResult(f"{name!r} is missing: {what}")
    if len(value) > _TEXT_CHARACTERS:
        raise NotAResult(f"{name!r} is longer than {_TEXT_CHARACTERS} characters: {what}")
    return value


def _date(document: Mapping[str, Json]) -> str:
    text = _text(document, "generated_at", "when it was made")
    if is_date(text):
        return text
    raise NotAResult("'generated_at' is no date like 2026-11-20T12:00:00Z")


def _word(document: Mapping[str, Json], name: str, words: tuple[Word, ...]) -> Word:
    value: Any = document.get(name)
    if value not in words:
        raise NotAResult(f"{name!r} is none of {', '.join(words)}")
    return words[words.index(value)]


def _score(document: Mapping[str, Json]) -> float | None:
    score = document.get("score")
    total = score.get("total", "") if isinstance(score, dict) else score
    if total is None:
        return None
    if not _is_figure(total) or not 0 <= total <= 100:
        raise NotAResult("'score' is no number from 0 to 100")
    return float(total)


def _coverage(document: Mapping[str, Json]) -> float | None:
    score = document.get("score")
    coverage = score.get("coverage") if isinstance(score, dict) else document.get("coverage")
    return float(coverage) if _is_figure(coverage) and 0 <= coverage <= 1 else None


_STATUSES = (*VERDICTS, "skip")


def _list(document: Mapping[str, Json], name: str) -> list[dict[str, Json]]:
    value = document.get(name)
    if not isinstance(value, list):
        raise NotAResult(f"{name!r} is no list")
    if not all(isinstance(each, dict) for each in value):
        raise NotAResult(f"{name!r} holds something else than findings")
    findings = [members_of(each) for each in value]
    for finding in findings:
        _word(finding, "status", _STATUSES)
    return findings


def _passed(document: Mapping[str, Json]) -> tuple[frozenset[str], Figures]:
    passed = document.get("passed")
    if not isinstance(passed, dict):
        raise NotAResult("'passed' is no object")
    return frozenset(passed), {key: value for key, value in passed.items() if _is_figure(value)}


def _judged(findings: list[dict[str, Json]]) -> tuple[frozenset[str], Figures]:
    """The same out of the whole document."""
    passed = [finding for finding in findings if finding.get("status") == "pass"]
    keys = {str(each.get("key")): each for each in passed}
    figures = {key: each.get("measured") for key, each in keys.items() if each.get("unit") in COMPARED}
    return frozenset(keys), {key: value for key, value in figures.items() if _is_figure(value)}


def _is_figure(value: object) -> TypeGuard[int | float]:
    return is_number(value) and abs(value) <= _LARGEST


def _counts(finding: Mapping[str, Json]) -> bool:
    count = finding.get("acknowledged")
    lapsed = bool(members_of(count).get("lapsed"))
    return finding.get("status") in ("warn", "unknown", "fail") and (not count or lapsed)


def _causes(document: Mapping[str, Json], findings: list[dict[str, Json]], whole: bool) -> Mapping[str, _Cause]:
    """By key of the finding."""
    found = [cause for cause in items_of(document.get("causes")) if isinstance(cause, dict)]
    if not whole:
        by_id = {str(each.get("id")): (str(each.get("id")), _step(each)) for each in found}
        named = ((str(finding.get("key")), str(finding.get("cause"))) for finding in findings)
        return {key: by_id[cause] for key, cause in named if cause in by_id}
    return {
        str(key): (str(each.get("id")), _step(each.get("action")))
        for each in found
        for key in items_of(each.get("explains"))
    }


def _step(action: Json) -> str:
    return text_of(members_of(action).get("action"))


def _fault(finding: Mapping[str, Json], whole: bool, causes: Mapping[str, _Cause]) -> NodeFault:
    key = _text(finding, "key", "of a finding")
    cause, step = causes.get(key, ("", ""))
    figures = (finding.get(name) for name in ("measured", "expected"))
    measured, expected = (value if _is_figure(value) else None for value in figures)
    ends = [_named(each) for each in (finding.get("subject"), finding.get("peer")) if each]
    return NodeFault(
        key=key,
        check=key.partition("/")[0],
        status=_word(finding, "status", VERDICTS),
        word=str(finding.get("fault") or ""),
        message=str(finding.get("message") or ""),
        subject=" - ".join(ends),
        action=str(finding.get("remedy" if whole else "action") or ""),
        figure=against(measured, expected, str(finding.get("unit") or "")),
        cause=cause,
        step=step,
    )


def _named(subject: Json) -> str:
    """``GPU2 0000:0a:00.0``, as the line has it."""
    if not isinstance(subject, dict):
        return str(subject)
    name, bdf = str(subject.get("name") or ""), str(subject.get("bdf") or "")
    return name if bdf in name else f"{name} {bdf}"


def _group(document: Mapping[str, Json], versions: Mapping[str, Sequence[str]]) -> LikeMachines:
    profile = document.get("profile")
    name = profile.get("name") if isinstance(profile, dict) else profile
    models = (f"{count} x {model}" for model, count in sorted(members_of(document.get("gpus")).items()))
    return LikeMachines(str(name or ""), ", ".join(models), ", ".join(versions.get("driver", ())))


def _by_name(document: Mapping[str, Json], member: str) -> dict[str, tuple[str, ...]]:
    found = members_of(document.get(member)).items()
    return {name: tuple(map(str, each)) for name, each in found if isinstance(each, list)}


def _identity(document: dict[str, Json]) -> Identity:
    serials = gathered((part.kind, part.serial) for part in parts_of(document))
    machine, boot = next(iter(serials.pop("machine", ())), ""), document.get("boot_id")
    boots = frozenset([boot[:_PART_CHARACTERS]] if isinstance(boot, str) and boot else ())
    return Identity(machine, boots, frozenset(serials.get("gpu", ())), frozenset(chain.from_iterable(serials.values())))


def _gpus_at(document: Mapping[str, Json]) -> frozenset[str]:
    parts = map(members_of, items_of(document.get("parts")))
    return frozenset(str(part.get("at"))[:_PART_CHARACTERS] for part in parts if part.get("kind") == "gpu")


def _devices(document: Mapping[str, Json]) -> dict[str, int]:
    """A driver that does not answer lists no GPU, and counts none."""
    listed = [count for count in members_of(document.get("gpus")).values() if isinstance(count, int)]
    hcas = sum(members_of(part).get("kind") == "hca" for part in items_of(document.get("parts")))
    return {kind: number for kind, number in (("GPU", sum(listed)), ("HCA", hcas)) if number}


def _nvlinks(document: Mapping[str, Json]) -> dict[str, GpuLinks]:
    read: dict[str, GpuLinks] = {}
    for name, links in members_of(document.get("nvlinks")).items():
        wired, down = (members_of(links).get(word) for word in ("wired", "down"))
        if isinstance(wired, int) and isinstance(down, list) and 0 <= len(down) <= wired <= NVLINK_MAX_LINKS:
            read[name] = GpuLinks(wired, tuple(link for link in down if isinstance(link, int)))
    return read


UNREAD = ("no-permission", "not-visible")
"""Reasons of checks that had nothing to read: not of the machine, but of how dgxcheck ran."""


def _skipped(
    document: Mapping[str, Json], findings: list[dict[str, Json]], whole: bool, reasons: Collection[str] = ()
) -> frozenset[str]:
    """For any reason, or for one of these."""
    if whole:
        skips = ((str(each.get("reason")), str(each.get("id"))) for each in findings if each.get("status") == "skip")
        return frozenset(check for reason, check in skips if not reasons or reason in reasons)
    skipped = members_of(document.get("skipped"))
    of_reasons = skipped.values() if not reasons else (skipped.get(reason) for reason in reasons)
    return frozenset(str(check) for ids in of_reasons for check in items_of(ids))


_PART_CHARACTERS = 64
"""That are kept of a serial number, place or model."""


def parts_of(document: Json) -> Iterator[Part]:
    """GPUs, HCAs, DIMMs and the machine itself; what has no serial number is left out."""
    for each in items_of(members_of(document).get("parts")):
        if isinstance(each, dict) and isinstance(each.get("serial"), str) and each["serial"]:
            words = (str(each.get(name) or "")[:_PART_CHARACTERS] for name in ("kind", "serial", "at", "model"))
            kind, serial, at, model = words
            yield Part(kind=kind, serial=serial, at=at, model=model, gauges=_gauges(each.get("gauges")))


def _gauges(found: Json) -> dict[str, tuple[float, ...]]:
    gauges: dict[str, tuple[float, ...]] = {}
    for name, values in members_of(found).items():
        figures = tuple(value for value in items_of(values) if _is_figure(value))
        if len(figures) == len(items_of(values)) and len(figures) in (2, 3):
            gauges[name] = figures
    return gauges
