"""Profiles as text: the list of them, one with its sources, and one as TOML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from dgxcheck.checks.engine.finding import counted
from dgxcheck.output.plain_text import columns, lines, visible
from dgxcheck.profiles.model import BOARD_KEYS, BOX_KEYS, Board, Number, NumberRange, Profile
from dgxcheck.topology.model import PciClass


def listed(profiles: Iterable[Profile]) -> str:
    """One line each."""
    rows = [
        (profile.name, visible(profile.title), ", ".join(map(visible, profile.products)) or "-") for profile in profiles
    ]
    return lines(columns([("Name", "Machine", "Product names"), *rows]))


def shown(profile: Profile, boards: Mapping[str, Board]) -> str:
    """Every number with its unit and its source."""
    rows = _rows(profile.numbers, BOX_KEYS)
    for id in profile.boards:
        if id in boards:
            rows += [("", "", ""), (visible(boards[id].name), "", id), *_rows(boards[id].numbers, BOARD_KEYS)]
    beside = [f"GPU models beside, without numbers: {', '.join(profile.beside)}"] if profile.beside else []
    wiring = [
        f"{counted(row.gpus, 'GPU')}: to other GPUs {_classes(row.to_gpus)}; to HCAs {_classes(row.to_hcas)}"
        for row in profile.wiring
    ]
    graph = [f"NVLink graph: {profile.nvlink_graph}"] if profile.nvlink_graph else []
    return lines([visible(profile.title), *columns(rows), "", *wiring, *graph, *beside])


def toml(profile: Profile, sources: Mapping[str, str]) -> str:
    """The TOML file of a profile; ``sources`` maps keys to the sources of its numbers."""
    names = {source: name for name, source in sources.items()}
    text = [
        f"title = {_quoted(profile.title)}",
        f"products = {_quoted([*profile.products])}",
        f"boards = {_quoted([*profile.boards])}",
        *([f"beside = {_quoted([*profile.beside])}"] if profile.beside else []),
        f"nvlink_graph = {_quoted(profile.nvlink_graph)}",
        *([f"wiring_source = {_quoted(names[profile.wiring_source])}"] if profile.wiring else []),
        "", "[sources]", *(f"{name} = {_quoted(source)}" for name, source in sources.items()),
        "", "[numbers]", *(f"{_quoted(key)} = {_entry(number, names)}" for key, number in profile.numbers.items()),
    ]  # fmt: skip
    for id, board in profile.own_boards.items():
        text += ["", f"[board.{_quoted(id)}]", f"name = {_quoted(board.name)}"]
        text += [f"{key} = {_entry(number, names)}" for key, number in board.numbers.items()]
    for row in profile.wiring:
        text += ["", "[[wiring]]", f"gpus = {row.gpus}"]
        text += [f"to_gpus = {_table(row.to_gpus)}", f"to_hcas = {_table(row.to_hcas)}"]
    return lines(text)


def _rows(numbers: Mapping[str, Number], keys: Mapping[str, NumberRange]) -> list[tuple[str, ...]]:
    return [(f"  {key}", _value(number, keys[key].unit), visible(number.source)) for key, number in numbers.items()]


def _classes(counts: Mapping[PciClass, int]) -> str:
    return " + ".join(f"{count} {name}" for name, count in counts.items()) or "none"


def _entry(number: Number, names: Mapping[str, str]) -> str:
    floor = "" if number.floor is None else f", floor = {number.floor!r}"
    return f"{{ value = {number.value!r}, source = {_quoted(names[number.source])}{floor} }}"


def _table(counts: Mapping[PciClass, int]) -> str:
    return "{ " + ", ".join(f"{name} = {count}" for name, count in counts.items()) + " }" if counts else "{}"


def _quoted(value: str | list[str]) -> str:
    """A TOML basic string or array: JSON's, except that DEL is escaped."""
    return json.dumps(value).replace("\x7f", "\\u007f")


def _value(number: Number, unit: str) -> str:
    """``51 GB/s, floor 48``"""
    text = f"{number.value:g} {unit}".rstrip()
    return text if number.floor is None else f"{text}, floor {number.floor:g}"
