"""What root and capabilities add to which checks, and which of it is missing here.

Which checks need what is found out, not listed: a machine that was recorded whole is judged without the facts that a
privilege gives, and compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dgxcheck.assessment.health import assess
from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import SMBIOS
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.source.recording.keys import flatten, from_rows, grouped, to_rows
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.survey import ALL, survey

REFERENCE = "dgx-a100"
"""A shipped recording in which everything could be read."""
_HEADER_BYTES = 64
"""Of a configuration space, what anyone may read (drivers/pci/pci-sysfs.c)."""
_DENIED: Json = {"missing": "denied", "detail": "not permitted"}


class Privilege(Record, kw_only=False):
    """A capability, or access to files, and the facts that cannot be read without it."""

    name: str
    gives: str
    concerns: Callable[[str], bool]
    """Is it about the fact of this key?"""


class Needed(Record):
    """One privilege, the checks that it adds, and whether it was missing."""

    privilege: Privilege
    checks: tuple[str, ...]
    """Ids, in the order of the report."""
    missing: tuple[str, ...]
    """Keys of facts of the machine that were not readable."""


PRIVILEGES = (
    Privilege("CAP_SYSLOG", "the kernel log, where kernel.dmesg_restrict is 1", lambda key: key.startswith("kmsg ")),
    Privilege("CAP_SYS_ADMIN", "PCI configuration space beyond its first 64 bytes",
              lambda key: key.startswith("data ") and key.endswith("/config")),
    Privilege("CAP_DAC_READ_SEARCH", "serial numbers of the firmware", lambda key: key == f"data {SMBIOS}" or (
              key.startswith("text /sys/class/dmi/id/") and key.endswith("serial"))),
    Privilege("access to /dev/nvidia*", "all that NVML reports (nodes of mode 0600; root, or their group)",
              lambda key: key.startswith(("nvml ", "opens /dev/nvidia"))),
    Privilege("access to /dev/infiniband/*", "whether programs can use RDMA",
              lambda key: key.startswith("opens /dev/infiniband")),
)  # fmt: skip


def needed(source: Source) -> tuple[Needed, ...]:
    """For each privilege what it adds, and what of it this source could not read."""
    recorder = RecordingSource(source)
    survey(recorder, ALL)
    unread = [key for key, fact in recorder.facts.items() if _is_denied(key, fact)]
    reference = open_source(REFERENCE)
    assert isinstance(reference, RecordedSource)
    whole = flatten(reference.lines)
    judged = _judged(whole)
    found = []
    for privilege in PRIVILEGES:
        left = _judged(_without(whole, privilege))
        checks = tuple(check for check, keys in judged.items() if keys - left.get(check, set()))
        missing = tuple(key for key in unread if privilege.concerns(key))
        found.append(Needed(privilege=privilege, checks=checks, missing=missing))
    return tuple(found)


def _judged(facts: Mapping[str, Json]) -> dict[str, set[str]]:
    """By check the keys of what it judges: all but what it skips, or cannot know."""
    found: dict[str, set[str]] = {}
    for finding in assess(RecordedSource(grouped(facts), Origin("recording"))).findings:
        subjects = found.setdefault(finding.id, set())
        if finding.status in (Status.PASS, Status.WARN, Status.FAIL):
            subjects.add(finding.key)
    return found


def _without(facts: Mapping[str, Json], privilege: Privilege) -> dict[str, Json]:
    """The facts as they are read without the privilege."""
    found = {key: _unprivileged(fact) if privilege.concerns(key) else fact for key, fact in facts.items()}
    if not any(key.startswith("kmsg ") and privilege.concerns(key) for key in facts):
        return found
    return {key: fact for key, fact in found.items() if not key.startswith("kmsg ")} | {"kmsg 0": _DENIED}


def _unprivileged(fact: Json) -> Json:
    config = from_rows(fact)
    return _DENIED if config is None else to_rows(config[:_HEADER_BYTES])


def _is_denied(key: str, fact: Json) -> bool:
    if isinstance(fact, dict) and fact.get("missing") == "denied":
        return True
    return key.endswith("/config") and (config := from_rows(fact)) is not None and len(config) <= _HEADER_BYTES
