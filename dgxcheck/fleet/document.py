"""Results out of JSON documents of schemas ``dgxcheck/result/1`` and ``dgxcheck/health/2``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard, TypeVar

from dgxcheck.checks.engine.wording import against
from dgxcheck.facts.ids import NVLINK_MAX_LINKS
from dgxcheck.facts.inventory import Part
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.fleet.node import COMPARED, LEVELS, VERDICTS, GpuLinks, LikeMachines, NodeFault, Result
from dgxcheck.source.state_file import is_date

RESULT, HEALTH = "dgxcheck/result/1", "dgxcheck/health/2"
Word = TypeVar("Word", bound=str)
_LARGEST = 1e18
"""A figure of any unit is less; floating point goes on to sum its square."""
Figures = dict[str, float]
"""By key of the finding, in the unit of its check."""


class _Cause(Record, kw_only=False):
    id: str
    step: str


_NO_CAUSE = _Cause("", "")


class NotAResult(ValueError):
    """The document is none, or breaks its schema; the text says where."""


class SharedStrings:
    """Sets and groups that many results have in common, each kept once."""

    def __init__(self) -> None:
        self._sets: dict[frozenset[str], frozenset[str]] = {}
        self._groups: dict[tuple[str, str, str], LikeMachines] = {}

    def group(self, words: tuple[str, str, str]) -> LikeMachines:
        """Profile, GPUs and driver."""
        if words not in self._groups:
            self._groups[words] = LikeMachines(*words)
        return self._groups[words]

    def one(self, items: frozenset[str]) -> frozenset[str]:
        """The equal set that was seen first."""
        return self._sets.setdefault(items, items)


def result_of(document: Json, shared: SharedStrings) -> tuple[Result, Figures]:
    """One result and its figures. Raises NotAResult."""
    if not isinstance(document, dict) or document.get("schema") not in (RESULT, HEALTH):
        raise NotAResult(f"not a result of 'dgxcheck health --format jsonl' ({RESULT})")
    whole = document["schema"] == HEALTH
    findings = _list(document, "findings") if whole else _list(document, "found")
    passed, figures = _judged(findings) if whole else _passed(document)
    causes = _causes(document, findings, whole) if findings else {}
    faults = tuple(_fault(finding, whole, causes) for finding in findings if _counts(finding))
    verdict = _word(document, "verdict", VERDICTS)
    if verdict == "pass" and (not passed or any(_counts(each) and not each.get("acknowledged") for each in findings)):
        raise NotAResult("'verdict' is pass, and what was judged does not say so")
    versions = _versions(document)
    score = document.get("score")
    total = score.get("total") if isinstance(score, dict) else score
    return Result(
        node=_text(document, "host", "the host's name"),
        live=isinstance(source := document.get("source"), dict) and source.get("kind") == "live",
        generated_at=_date(document),
        level=_word(document, "level", LEVELS),
        verdict=verdict,
        score=float(total) if _is_figure(total) else None,
        group=shared.group(_group(document, versions)),
        versions=versions,
        nvlink_domains=_domains(document),
        nvlinks=_nvlinks(document),
        faults=faults,
        passed=shared.one(passed),
        skipped=shared.one(_skipped(document, findings, whole)),
        devices=_devices(document),
        accepted=shared.one(frozenset(str(finding.get("key")) for finding in findings if finding.get("acknowledged"))),
    ), figures


def _text(document: Mapping[str, Json], name: str, what: str) -> str:
    value = document.get(name)
    if not isinstance(value, str) or not value or len(value) > 256:
        raise NotAResult(f"{name!r} is missing: {what}")
    return value


def _date(document: Mapping[str, Json]) -> str:
    text = _text(document, "generated_at", "when it was made")
    if is_date(text):
        return text
    raise NotAResult("'generated_at' is no date like 2026-11-20T12:00:00Z")


def _word(document: Mapping[str, Json], name: str, words: tuple[Word, ...]) -> Word:
    value = document.get(name)
    for word in words:
        if value == word:
            return word
    raise NotAResult(f"{name!r} is none of {', '.join(words)}")


def _list(document: Mapping[str, Json], name: str) -> list[dict[str, Json]]:
    value = document.get(name)
    if not isinstance(value, list):
        raise NotAResult(f"{name!r} is no list")
    found = [each for each in value if isinstance(each, dict)]
    if len(found) != len(value):
        raise NotAResult(f"{name!r} holds something else than findings")
    return found


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
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _counts(finding: Mapping[str, Json]) -> bool:
    count = finding.get("acknowledged")
    lapsed = isinstance(count, dict) and bool(count.get("lapsed"))
    return finding.get("status") in ("warn", "unknown", "fail") and (not count or lapsed)


def _causes(document: Mapping[str, Json], findings: list[dict[str, Json]], whole: bool) -> Mapping[str, _Cause]:
    """Id and first step, by key of the finding."""
    causes = document.get("causes")
    found = [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []
    if not whole:
        by_id = {str(each.get("id")): _Cause(str(each.get("id")), _step(each)) for each in found}
        named = ((str(finding.get("key")), str(finding.get("cause"))) for finding in findings)
        return {key: by_id[cause] for key, cause in named if cause in by_id}
    return {
        str(key): _Cause(str(each.get("id")), _step(each.get("action")))
        for each in found
        if isinstance(explains := each.get("explains"), list)
        for key in explains
    }


def _step(action: Json) -> str:
    word = action.get("action") if isinstance(action, dict) else None
    return word if isinstance(word, str) else ""


def _fault(finding: Mapping[str, Json], whole: bool, causes: Mapping[str, _Cause]) -> NodeFault:
    key = _text(finding, "key", "of a finding")
    cause = causes.get(key, _NO_CAUSE)
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
        cause=cause.id,
        step=cause.step,
    )


def _named(subject: Json) -> str:
    """``GPU2 0000:0a:00.0``, as the line has it."""
    if not isinstance(subject, dict):
        return str(subject)
    name, bdf = str(subject.get("name") or ""), str(subject.get("bdf") or "")
    return name if bdf in name else f"{name} {bdf}"


def _group(document: Mapping[str, Json], versions: Mapping[str, Sequence[str]]) -> tuple[str, str, str]:
    profile, gpus = document.get("profile"), document.get("gpus")
    name = profile.get("name") if isinstance(profile, dict) else profile
    models = (f"{count} x {model}" for model, count in sorted(gpus.items())) if isinstance(gpus, dict) else ()
    return str(name or ""), ", ".join(models), ", ".join(versions.get("driver", ()))


def _versions(document: Mapping[str, Json]) -> dict[str, tuple[str, ...]]:
    found = document.get("versions")
    if not isinstance(found, dict):
        return {}
    return {name: tuple(map(str, each)) for name, each in found.items() if isinstance(each, list)}


def _domains(document: Mapping[str, Json]) -> tuple[str, ...]:
    found = document.get("nvlink_domains")
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def _devices(document: Mapping[str, Json]) -> dict[str, int]:
    """A driver that does not answer lists no GPU, and counts none."""
    gpus, parts = document.get("gpus"), document.get("parts")
    listed = [count for count in gpus.values() if isinstance(count, int)] if isinstance(gpus, dict) else []
    hcas = sum(isinstance(part, dict) and part.get("kind") == "hca" for part in parts) if isinstance(parts, list) else 0
    return {kind: number for kind, number in (("GPU", sum(listed)), ("HCA", hcas)) if number}


def _nvlinks(document: Mapping[str, Json]) -> dict[str, GpuLinks]:
    found = document.get("nvlinks")
    read: dict[str, GpuLinks] = {}
    for name, links in found.items() if isinstance(found, dict) else ():
        wired, down = (links.get("wired"), links.get("down")) if isinstance(links, dict) else (None, None)
        if isinstance(wired, int) and isinstance(down, list) and 0 <= len(down) <= wired <= NVLINK_MAX_LINKS:
            read[name] = GpuLinks(wired, tuple(link for link in down if isinstance(link, int)))
    return read


def _skipped(document: Mapping[str, Json], findings: list[dict[str, Json]], whole: bool) -> frozenset[str]:
    if whole:
        return frozenset(_ids(findings))
    skipped = document.get("skipped")
    lists = skipped.values() if isinstance(skipped, dict) else ()
    return frozenset(str(check) for ids in lists if isinstance(ids, list) for check in ids)


def _ids(findings: list[dict[str, Json]]) -> Iterator[str]:
    return (str(finding.get("id")) for finding in findings if finding.get("status") == "skip")


_PART_CHARACTERS = 64
"""That are kept of a serial number, place or model."""


def parts_of(document: Json) -> Iterator[Part]:
    """GPUs, HCAs, DIMMs and the machine itself; what has no serial number is left out."""
    found = document.get("parts") if isinstance(document, dict) else None
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict) and isinstance(each.get("serial"), str) and each["serial"]:
            words = (str(each.get(name) or "")[:_PART_CHARACTERS] for name in ("kind", "serial", "at", "model"))
            kind, serial, at, model = words
            yield Part(kind=kind, serial=serial, at=at, model=model, gauges=_gauges(each.get("gauges")))


def _gauges(found: Json) -> dict[str, tuple[float, ...]]:
    gauges: dict[str, tuple[float, ...]] = {}
    for name, values in found.items() if isinstance(found, dict) else ():
        figures = tuple(value for value in values if _is_figure(value)) if isinstance(values, list) else ()
        if isinstance(values, list) and len(figures) == len(values) and len(figures) in (2, 3):
            gauges[name] = figures
    return gauges
