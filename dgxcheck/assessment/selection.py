"""Which checks a request selects, the site's settings for them, and what ``--explain`` is about."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from dgxcheck.assessment.request import Request
from dgxcheck.assessment.result import Assessment
from dgxcheck.checks import baseline
from dgxcheck.checks.engine.check import IDS, Check
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.faults import BY_WORD
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.ids import NVIDIA
from dgxcheck.facts.missing import BadInput, did_you_mean
from dgxcheck.facts.nature import Fact
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.rootfs import decode, list_names, read_bytes
from dgxcheck.settings import THRESHOLDS, Settings

SITE = "/etc/dgxcheck/config.toml"
_SUBJECTS = {id.partition(".")[0] for id in IDS}


def selected(request: Request) -> tuple[list[Check], set[str]]:
    """The checks to run, and the ids of those that must be judged; BadInput for one that does not exist."""
    left_out = {check.id for check in named(request.skip)}
    checks = [check for check in (named(request.only) or CHECKS) if check.id not in left_out]
    required = {check.id for check in named(request.require)}
    if baseline.ID in required and request.baseline is None:
        raise BadInput(f"--require {baseline.ID} requires --baseline FILE, the recording to compare with")
    if idle := sorted(required - {check.id for check in checks}):
        raise BadInput(f"--require {idle[0]}: the check is excluded by --only or --skip")
    return checks, required


def named(words: Iterable[str]) -> list[Check]:
    """Checks by id or by subject, in the order of the catalogue; each word may list several, with commas between."""
    wanted = {word.strip() for each in words for word in each.split(",")}
    if unknown := sorted(wanted.difference(IDS, _SUBJECTS)):
        hint = did_you_mean(unknown[0], {*IDS, *_SUBJECTS}, "list the checks with 'dgxcheck health -H'")
        raise BadInput(f"no check {unknown[0]!r}; {hint}")
    return [check for check in CHECKS if wanted & {check.id, check.id.partition(".")[0]}]


def site_settings(config: str | None) -> Settings:
    """What the site configured: in this file, else in ``$DGXCHECK_CONFIG``, else in /etc/dgxcheck/config.toml."""
    return of_site(config, IDS)


def of_site(path: str | None, checks: Collection[str]) -> Settings:
    """What ``--config``, else ``$DGXCHECK_CONFIG``, else ``/etc/dgxcheck/config.toml`` says; nothing without a file."""
    chosen = path if path is not None else os.environ.get("DGXCHECK_CONFIG") or _of_etc()
    if chosen is None:
        return Settings()
    from dgxcheck import configuration

    return configuration.of_file(chosen, checks)


def _of_etc() -> str | None:
    """The site's file where there is one; one that may not be read is not passed over."""
    try:
        os.stat(SITE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        pass
    return SITE


class Topic(Record):
    """What is to be explained."""

    word: str
    checks: tuple[Check, ...] = ()
    """Empty for a fault or facts."""
    fault: FaultKind | None = None
    key: bool = False
    """Is the word the key of one finding? Its check is the only one then."""
    facts: tuple[Fact, ...] = ()
    """Of that name; then neither checks nor a fault."""


def words() -> list[str]:
    """Everything that has an explanation, but keys: check ids, their subjects, thresholds, fault words."""
    return [*dict.fromkeys((*IDS, *sorted(_SUBJECTS), *THRESHOLDS, *BY_WORD))]


def topic(word: str) -> Topic:
    """BadInput for a word that names nothing, with the nearest that does."""
    if word in BY_WORD:
        return Topic(word=word, fault=BY_WORD[word])
    if word in THRESHOLDS and word not in IDS:
        return Topic(word=word, checks=tuple(check for check in CHECKS if f"{{{word}}}" in check.rule))
    ids, slash, _ = word.partition("/")
    for each in (part.strip() for part in ids.split(",")):
        if each not in _SUBJECTS and each not in IDS:
            from dgxcheck.facts import catalogue

            if facts := catalogue.named(word):
                return Topic(word=word, facts=facts)
            hint = did_you_mean(each, words(), "list the checks with 'dgxcheck health -H'")
            raise BadInput(f"no check {each!r}; {hint}")
    return Topic(word=word, checks=tuple(named((ids,))), key=bool(slash))


def findings_of(about: Topic, assessment: Assessment) -> tuple[Finding, ...]:
    """The findings of a box that the topic is about; BadInput for a key that it has not.

    A key ends with a bus id, or as well with the name of the device: ``pcie.width/GPU2``.
    """
    if about.fault is not None:
        return tuple(finding for finding in assessment.findings if finding.judgement.fault is about.fault)
    ids = {check.id for check in about.checks}
    found = tuple(finding for finding in assessment.findings if finding.id in ids)
    if not about.key:
        return found
    word, place = about.word.lower(), about.word.partition("/")[2].lower()
    if not (meant := tuple(finding for finding in found if word == finding.key.lower() or place in _places(finding))):
        names = list(dict.fromkeys(f"{each.id}/{each.subject.name}" for each in found if each.subject.kind != "host"))
        some = f"this box has {', '.join(names[:3])}" if names else "the check has no device here"
        raise BadInput(f"no finding {about.word!r}; {did_you_mean(about.word, names, some)}")
    return meant


def _places(finding: Finding) -> tuple[str, ...]:
    return finding.subject.name.lower(), (finding.subject.bdf or "").lower()


def has_nvidia_gpu(root: str) -> bool:
    """Is there an NVIDIA function on the PCI bus of the live machine? Costs a few milliseconds."""
    base = root.rstrip("/") + PCI_DEVICES
    try:
        names = list_names(base)
    except OSError:
        return False
    return any(_vendor(f"{base}/{name}/vendor") == f"{NVIDIA:#06x}" for name in names)


def _vendor(path: str) -> str:
    try:
        return decode(read_bytes(path)).strip()
    except OSError:
        return ""
