"""The recordings that ship with dgxcheck, and what ``--from`` may name."""

from __future__ import annotations

import os
from functools import cache

from dgxcheck import package_files
from dgxcheck.facts.missing import BadInput, did_you_mean, members_of, text_of
from dgxcheck.limits import OVERLAY_DEPTH
from dgxcheck.source.protocol import Json, Origin, Source
from dgxcheck.source.recording.load import OVERLAY, Recording, head, load, load_shipped, recording
from dgxcheck.source.recording.replay import RecordedSource

MADE = ("reconstructed", "overlay")
"""Kinds of provenance of what is no real machine."""


def open_source(spec: str) -> Source:
    """What ``--from SPEC`` names: a shipped recording, a recording or overlay file, or a directory."""
    if (shipped := _shipped_file(spec)) is None and os.path.isdir(spec):
        from dgxcheck.source.directory import DirectorySource

        return DirectorySource(spec)
    loaded = _load(shipped or spec, OVERLAY_DEPTH)
    return RecordedSource(loaded.lines, _origin(spec, loaded.head), loaded.later, head=loaded.head)


def is_shipped(spec: str) -> bool:
    """Does a recording of this name ship with dgxcheck?"""
    return _shipped_file(spec) is not None


def shipped() -> list[tuple[str, str]]:
    """Name and file of every shipped recording and overlay, boxes before faults, each sorted by name."""
    found = []
    for folder in (_folder(), os.path.join(_folder(), "faults")):
        files = package_files.names(folder)
        found += [(name[:-5], os.path.join(folder, name)) for name in files if name.endswith(".json")]
    return found


def head_of(path: str) -> dict[str, Json]:
    """The members of a shipped file beside its facts; for those of an overlay its facts are not laid over the base."""
    return {**_head(path)}


@cache
def _head(path: str) -> dict[str, Json]:
    document = load_shipped(path)
    if document["schema"] != OVERLAY:
        return head(document)
    from dgxcheck.source.recording.overlay import head_onto

    name = str(document["base"])
    return head_onto(_head(_shipped_file(name) or name), document)


def _load(path: str, depth: int) -> Recording:
    if not path:
        raise BadInput("--from '': give a recording, a file or a directory")
    if not package_files.is_packed(path) and not os.path.lexists(path):
        raise BadInput(_unknown(path))
    document = load_shipped(path) if path.startswith(f"{_folder()}/") else load(path)
    if document["schema"] != OVERLAY:
        return recording(document, path)
    if not depth:
        raise BadInput(f"{path}: more than {OVERLAY_DEPTH} overlays based on each other; check 'base' for a loop")
    from dgxcheck.source.recording.overlay import applied

    def base(name: str) -> Recording:
        if not name or "/" in name or name.startswith("."):
            raise BadInput(f"{path}: base: {name[:80]!r} is not the plain name of a recording or of a file beside it")
        beside = os.path.join(os.path.dirname(path), name)
        try:
            return _load(_shipped_file(name) or beside, depth - 1)
        except BadInput as error:
            raise BadInput(f"{path}: base: {error}") from None

    return applied(document, path, base)


def _folder() -> str:
    """fixtures/ inside the installed package, beside it in a checkout."""
    inside = os.path.join(package_files.FOLDER, "fixtures")
    if package_files.is_packed(inside) or os.path.isdir(inside):
        return inside
    return os.path.join(os.path.dirname(package_files.FOLDER), "fixtures")


def _shipped_file(name: str) -> str | None:
    if not name or "/" in name or name.startswith("."):
        return None
    paths = (os.path.join(_folder(), f"{name}.json"), os.path.join(_folder(), "faults", f"{name}.json"))
    return next(filter(package_files.is_file, paths), None)


def _unknown(spec: str) -> str:
    names = [name for name, _ in shipped()]
    wanted = os.path.basename(spec)[:80].removesuffix(".gz").removesuffix(".json").lower()
    hint = did_you_mean(wanted, names, "list the recordings with 'dgxcheck recordings'", most=3, likeness=0.4)
    return f"{spec}: no such recording, file or directory; {hint}"


def _origin(spec: str, head: dict[str, Json]) -> Origin:
    provenance = members_of(head.get("provenance"))
    kind, onto = provenance.get("kind"), members_of(provenance.get("onto")).get("kind")
    kind = f"{kind} onto {onto}" if onto in MADE else kind
    return Origin("recording", spec, text_of(head.get("recorded_at")), kind if isinstance(kind, str) else "recorded")
