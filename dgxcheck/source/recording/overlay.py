"""An overlay changes the facts of a base recording: one fault, written down once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dgxcheck.facts.missing import BadInput, Missing, items_of
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.source.protocol import Json
from dgxcheck.source.recording.keys import FILE_KINDS, GroupedFacts, find, insert
from dgxcheck.source.recording.load import Recording, recording

Base = Callable[[str], Recording]
MEMBERS = ("schema", "base", "fault", "sources", "expect", "facts", "add", "drop", "later")


def applied(document: dict[str, Json], path: str, base: Base) -> Recording:
    """The base with the overlay's ``facts``, ``add`` and ``drop`` in place; ``later`` replaces the base's.

    A key of ``facts`` must exist in the base; what is new stands under ``add``. ``base`` loads a recording by name.
    """
    if unknown := document.keys() - MEMBERS:
        raise BadInput(f"{path}: unknown overlay member {sorted(unknown)[0]!r}; valid members: {', '.join(MEMBERS)}")
    if not isinstance(name := document.get("base"), str):
        raise BadInput(f"{path}: overlay without a base recording; name it under 'base'")
    below = base(name)
    lines = {line: _copy(group) for line, group in below.lines.items()}
    for member, wrong in (("facts", f"is not in {name}; new facts belong under 'add'"),
                          ("add", f"is already in {name}; changed facts belong under 'facts'")):
        for key, fact in _members(document, member, path).items():
            if isinstance(find(lines, key), Missing) == (member == "facts"):
                raise BadInput(f"{path}: {key!r} {wrong}")
            _put(lines, key, fact, path)
    dropped = _subjects(document, path)
    for subject in dropped:
        if not _drop(lines, subject):
            raise BadInput(f"{path}: {subject!r} under 'drop' does not exist in {name}")
    later = recording({"facts": {}, "later": document["later"]}, path).later if "later" in document else below.later
    moments = [(at, _without(changed, dropped)) for at, changed in later]
    return Recording(lines, moments, head_onto(below.head, document))


def head_onto(below: dict[str, Json], document: dict[str, Json]) -> dict[str, Json]:
    """The members beside the facts: the overlay's name of its base and its fault replace those of the base."""
    return below | {"base": document["base"], "fault": document.get("fault"), "provenance": {"kind": "overlay"}}


def _without(changed: GroupedFacts, dropped: Sequence[str]) -> GroupedFacts:
    """A later moment without what the overlay drops."""
    lines = {line: _copy(group) for line, group in changed.items()}
    for subject in dropped:
        _drop(lines, subject)
    return lines


def _copy(group: dict[str, Json]) -> dict[str, Json]:
    return {kind: dict(facts) if isinstance(facts, dict) else facts for kind, facts in group.items()}


def _members(document: dict[str, Json], member: str, path: str) -> dict[str, Json]:
    if not isinstance(facts := document.get(member, {}), dict):
        raise BadInput(f"{path}: {member!r} is not an object of keys and facts")
    return facts


def _subjects(document: dict[str, Json], path: str) -> list[str]:
    dropped = document.get("drop", [])
    subjects = [subject for subject in items_of(dropped) if isinstance(subject, str)]
    if not isinstance(dropped, list) or len(subjects) != len(dropped) or not all(subjects):
        raise BadInput(f"{path}: 'drop' is not a list of bus ids or paths")
    return subjects


def _put(lines: GroupedFacts, key: str, fact: Json, path: str) -> None:
    try:
        insert(lines, key, fact)
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from None


def _drop(lines: GroupedFacts, subject: str) -> bool:
    """Take a bdf or a path out: its own lines, its name in the parent's, its place in NVML's list."""
    _keep_bridges(lines, subject)
    gone = [line for line in lines if _is_of(line, subject)]
    for line in gone:
        del lines[line]
    parents = 0
    for line, group in lines.items():
        if not line.startswith("/"):
            continue
        for kind in FILE_KINDS:
            if isinstance(facts := group.get(kind), list):
                kept = [name for name in facts if name != subject and f"{line}/{name}" != subject]
                parents += len(kept) != len(facts)
                group[kind] = kept
            elif isinstance(facts, dict):
                for name in [name for name in facts if subject in (name, f"{line}/{name}")]:
                    del facts[name]
                    parents += 1
    return bool(gone or parents) | _renumbered(lines, subject)


def _keep_bridges(lines: GroupedFacts, subject: str) -> None:
    """The bridges above a PCI function stay when it goes: where they are is known from its own place alone."""
    group = lines.get(PCI_DEVICES, {})
    links, present = group.get("link"), group.get("names")
    if isinstance(links, dict) and isinstance(present, list) and isinstance(target := links.get(subject), str):
        steps = target.split("/")
        for place, bridge in enumerate(steps):
            if bridge in present and bridge != subject:
                links.setdefault(bridge, "/".join(steps[: place + 1]))


def _is_of(line: str, subject: str) -> bool:
    if subject.startswith("/"):
        return line == subject or line.startswith(f"{subject}/")
    return subject in line.split("/") if line.startswith("/") else subject in line.split(" ")


def _renumbered(lines: GroupedFacts, subject: str) -> bool:
    if (handles := lines.get("nvml nvmlDeviceGetHandleByIndex")) is None or subject not in handles.values():
        return False
    order = sorted(handles, key=lambda index: (len(index), index))  # decimal numbers, whatever else is in there
    kept = [handles[index] for index in order if handles[index] != subject]
    lines["nvml nvmlDeviceGetHandleByIndex"] = {str(index): bdf for index, bdf in enumerate(kept)}
    lines["nvml nvmlDeviceGetCount"] = {"": len(kept)}
    return True
