"""Profiles: a list of them, one with its sources for people, and one as TOML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from dgxcheck.output.plain_text import columns, lines, visible
from dgxcheck.profiles.model import BOARD_KEYS, BOX_KEYS, Board, Key, Number, Profile
from dgxcheck.topology.model import PciClass


def listed(profiles: Iterable[Profile]) -> str:
    """One line each."""
    rows = [(each.name, visible(each.title), ", ".join(map(visible, each.products)) or "-") for each in profiles]
    return lines(columns([("Name", "Machine", "Product names"), *rows]))


def shown(profile: Profile, boards: Mapping[str, Board]) -> str:
    """Every number with its unit and its source."""
    rows = _rows(profile.numbers, BOX_KEYS)
    for id in profile.boards:
        if id in boards:
            rows += [("", "", ""), (visible(boards[id].name), "", id), *_rows(boards[id].numbers, BOARD_KEYS)]
    wiring = [
        f"{row.gpus} GPUs reach {_classes(row.to_gpus)} GPUs and {_classes(row.to_hcas)} HCAs" for row in profile.wiring
    ]
    graph = [f"NVLink graph: {profile.nvlink_graph}"] if profile.nvlink_graph else []
    return lines([visible(profile.title), *columns(rows), "", *wiring, *graph])


def toml(profile: Profile, sources: Mapping[str, str]) -> str:
    """The file of a profile; ``sources`` are names for the sources of its numbers."""
    names = {source: name for name, source in sources.items()}
    told = [
        f"title = {_quoted(profile.title)}",
        f"products = {_quoted([*profile.products])}",
        f"boards = {_quoted([*profile.boards])}",
        f"nvlink_graph = {_quoted(profile.nvlink_graph)}",
        *([f"wiring_source = {_quoted(names[profile.wiring_source])}"] if profile.wiring else []),
        "", "[sources]", *(f"{name} = {_quoted(source)}" for name, source in sources.items()),
        "", "[numbers]", *(f"{_quoted(key)} = {_entry(each, names)}" for key, each in profile.numbers.items()),
    ]  # fmt: skip
    for id, board in profile.own_boards.items():
        told += ["", f"[board.{_quoted(id)}]", f"name = {_quoted(board.name)}"]
        told += [f"{key} = {_entry(each, names)}" for key, each in board.numbers.items()]
    for row in profile.wiring:
        told += ["", "[[wiring]]", f"gpus = {row.gpus}"]
        told += [f"to_gpus = {_table(row.to_gpus)}", f"to_hcas = {_table(row.to_hcas)}"]
    return lines(told)


def _rows(numbers: Mapping[str, Number], keys: Mapping[str, Key]) -> list[tuple[str, ...]]:
    return [
        (f"  {key}", f"{each.value:g} {keys[key].unit}".rstrip(), visible(each.source)) for key, each in numbers.items()
    ]


def _classes(counts: Mapping[PciClass, int]) -> str:
    return " + ".join(f"{count} {name}" for name, count in counts.items()) or "no"


def _entry(number: Number, names: Mapping[str, str]) -> str:
    return f"{{ value = {number.value!r}, source = {_quoted(names[number.source])} }}"


def _table(counts: Mapping[PciClass, int]) -> str:
    return "{ " + ", ".join(f"{name} = {count}" for name, count in counts.items()) + " }" if counts else "{}"


def _quoted(value: str | list[str]) -> str:
    """A basic string of TOML is one of JSON, but for DEL."""
    return json.dumps(value).replace("\x7f", "\\u007f")
