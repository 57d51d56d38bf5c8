"""Load a recording or an overlay, shipped or of the user: data only, within limits, every refusal one clear line."""

from __future__ import annotations

import json
import os
from functools import cache

from dgxcheck import package_files
from dgxcheck.facts.missing import BadInput, did_you_mean, is_number, members_of, text_of
from dgxcheck.facts.record import Record
from dgxcheck.input_file import PACKED, read_input, too_large, unzipped
from dgxcheck.limits import JSON_GROUPS, JSON_VALUES, NUMBER_DIGITS, OVERLAY_BYTES, OVERLAY_DEPTH, RECORDING_BYTES
from dgxcheck.package_files import read
from dgxcheck.source.protocol import Json, Origin, Source
from dgxcheck.source.recording.keys import FILE_KINDS, GroupedFacts
from dgxcheck.source.recording.replay import RecordedSource

SCHEMA = "dgxcheck/recording/1"
OVERLAY = "dgxcheck/overlay/1"


class Recording(Record, kw_only=False):
    """A loaded file: its lines, the later moments, and the members beside them."""

    lines: GroupedFacts
    later: list[tuple[float, GroupedFacts]]
    head: dict[str, Json]


_KINDS = frozenset(FILE_KINDS)
_RESULTS = {
    "dgxcheck/result/1": "dgxcheck fleet reads it, and dgxcheck diff compares those of --format json",
    "dgxcheck/health/2": "dgxcheck fleet and diff read it",
}
"""What this tool prints itself, by schema, and the commands that take it."""
_NONE = "not a recording (JSON of 'dgxcheck record'), and no output of a known tool; see dgxcheck import --show"


def load(path: str) -> dict[str, Json]:
    """The members of a recording or overlay file; BadInput with one line for whatever is wrong with it."""
    raw = _read(path)
    document = parsed(raw, path)
    schema = document.get("schema")
    if schema == OVERLAY and len(raw) > OVERLAY_BYTES:  # as many as overlays are deep are held at once
        raise too_large(path, OVERLAY_BYTES)
    if schema not in (SCHEMA, OVERLAY):
        if isinstance(schema, str) and schema in _RESULTS:
            raise BadInput(f"{path}: a result of dgxcheck health, not a recording; {_RESULTS[schema]}")
        if "schema" not in document:
            raise BadInput(f"{path}: {_NONE}")
        named = repr(schema)[:80] if isinstance(schema, str | int) else "(missing or not a string)"
        raise BadInput(f"{path}: unknown schema {named}; this version reads {SCHEMA} and {OVERLAY}")
    return document


def load_shipped(path: str) -> dict[str, Json]:
    """The same of a file of the package; that ``load`` takes it is a matter of its tests."""
    document: dict[str, Json] = json.loads(read(path))
    return document


def members(path: str) -> dict[str, Json]:
    """The members of a JSON file of whatever schema, read within the limits that hold for recordings."""
    return parsed(_read(path), path)


def parsed(raw: bytes, path: str) -> dict[str, Json]:
    """The members of a JSON text."""
    try:
        text = raw.decode("utf-8-sig")
        _check_size(raw)
        document: Json = json.loads(
            text, object_pairs_hook=unique, parse_int=_bounded_int, parse_float=_bounded_float, parse_constant=_refused,
        )  # fmt: skip
        if "\\ud" in text or "\\uD" in text:
            json.dumps(document, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8 text; create recordings with 'dgxcheck record'") from None
    except UnicodeEncodeError:
        raise BadInput(f"{path}: contains an unpaired surrogate, which is not valid text") from None
    except RecursionError:
        raise BadInput(f"{path}: nested too deeply for a recording") from None
    except ValueError as error:
        lines_of_json = str(error).startswith("Extra data") and b'"schema"' not in raw
        if lines_of_json or not raw.lstrip().startswith(b"{"):
            raise BadInput(f"{path}: {_NONE}") from None
        raise BadInput(f"{path}: incomplete or damaged recording: {error}; record the box again") from None
    if not isinstance(document, dict):
        raise BadInput(f"{path}: not a recording: not a JSON object with a schema")
    return document


def recording(document: dict[str, Json], path: str) -> Recording:
    """The lines of a loaded recording, their form checked."""
    later = []
    moments = document.get("later", [])
    for moment in moments if isinstance(moments, list) else [moments]:
        at_s = members_of(moment).get("at_s")
        if not isinstance(moment, dict) or not is_number(at_s) or at_s <= 0:
            raise BadInput(f"{path}: 'later' is not a list of {{at_s, facts}}")
        later.append((float(at_s), _lines(moment.get("facts"), path)))
    return Recording(_lines(document.get("facts"), path), sorted(later, key=lambda moment: moment[0]), head(document))


def head(document: dict[str, Json]) -> dict[str, Json]:
    """The members of a recording beside its facts."""
    return {key: value for key, value in document.items() if key not in ("facts", "later")}


def _lines(facts: Json, path: str) -> GroupedFacts:
    if not isinstance(facts, dict):
        raise BadInput(f"{path}: contains no 'facts' object; create recordings with 'dgxcheck record'")
    lines: GroupedFacts = {}
    for line, group in facts.items():
        if not isinstance(group, dict):
            raise BadInput(f"{path}: line {line[:80]!r} is not an object")
        if line[:1] == "/" and not group.keys() <= _KINDS:
            raise BadInput(f"{path}: line {line[:80]!r} has members other than {', '.join(FILE_KINDS)}")
        lines[line] = group
    return lines


def _read(path: str) -> bytes:
    raw = read_input(path, RECORDING_BYTES, "save it to a file first")
    if raw[:2] == PACKED:
        raw = unzipped(raw, path, RECORDING_BYTES)
    if not raw.strip():
        raise BadInput(f"{path}: file is empty; create recordings with 'dgxcheck record'")
    return raw


def _check_size(raw: bytes) -> None:
    """ValueError for more values than any recording has: each takes far more memory than its bytes in the file.

    What stands inside of texts counts too.
    """
    if (groups := raw.count(b"{") + raw.count(b"[")) > JSON_GROUPS:
        raise ValueError(f"{groups} objects and lists, more than {JSON_GROUPS}")
    if (values := raw.count(b",")) > JSON_VALUES:
        raise ValueError(f"{values} values, more than {JSON_VALUES}")


def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """The members of an object. Raises ValueError where one stands twice: readers differ in which of them counts."""
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"duplicate key {key[:80]!r}")
            seen.add(key)
    return members


def _bounded_int(digits: str) -> int:
    if len(digits) > NUMBER_DIGITS:
        raise ValueError(f"number with {len(digits)} digits")
    return int(digits)


def _bounded_float(digits: str) -> float:
    value = float(digits)
    if value - value != 0:
        raise ValueError(f"number {digits[:40]} is too large")
    return value


def _refused(name: str) -> float:
    raise ValueError(f"{name} is not a valid JSON number")


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
