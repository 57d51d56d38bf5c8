"""A profile and the GPU models as documents: what a TOML file may hold, and what is refused with file and key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dgxcheck.facts.record import replace
from dgxcheck.input_file import check_keys, refuse
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.profiles.model import BOARD_KEYS, BOX_KEYS, FRACTIONS, Board, Number, NumberRange, Profile, Wiring
from dgxcheck.topology.model import PCI_CLASSES, PciClass
from dgxcheck.topology.reference import ALL

MEMBERS = ("title", "products", "boards", "beside", "nvlink_graph", "wiring_source", "sources", "numbers", "wiring",
           "board")  # fmt: skip
_ID = LazyPattern("[0-9a-f]{4}:[0-9a-f]{4}", ":")
_GRAPHS = tuple(reference.name for reference in ALL)


def profile(document: Mapping[str, Any], name: str, path: str) -> Profile:
    """The profile in a document; BadInput names the file, the key and what is allowed."""
    check_keys(document, MEMBERS, path, "")
    sources = _sources(document, path)
    if (graph := _text(document, "nvlink_graph", path, "")) and graph not in _GRAPHS:
        refuse(path, "nvlink_graph", f"{graph!r} is not a reference graph; valid graphs: {', '.join(_GRAPHS)}")
    if not isinstance(wiring := document.get("wiring", []), list):
        refuse(path, "wiring", "must be an array of tables, [[wiring]]")
    return Profile(
        name=name,
        title=_text(document, "title", path),
        products=_texts(document, "products", path),
        boards=_texts(document, "boards", path),
        beside=_texts(document, "beside", path),
        own_boards={
            id: _board(id, table, sources, path, "board") for id, table in _table(document, "board", path).items()
        },
        numbers=_numbers(_table(document, "numbers", path), BOX_KEYS, sources, path, "numbers"),
        nvlink_graph=graph,
        wiring=tuple(_wiring(row, path) for row in wiring),
        wiring_source=_source(_text(document, "wiring_source", path, ""), sources, path, "wiring_source"),
    )


class Boards(Mapping[str, Board]):
    """GPU models by id, each parsed when it is first asked for: a machine has GPUs of one model or two.

    Of a model that a profile has as its ``own``, its numbers override those of the document.
    """

    def __init__(self, document: Mapping[str, Any], path: str, own: Mapping[str, Board] | None = None) -> None:
        check_keys(document, ("sources", "boards"), path, "")
        self._tables = _table(document, "boards", path)
        self._sources = _sources(document, path)
        self._path = path
        self._own = dict(own or {})
        self._parsed: dict[str, Board] = {}

    def __getitem__(self, id: str) -> Board:
        if id not in self._parsed:
            own = self._own.get(id)
            if own is None or id in self._tables:
                board = _board(id, self._tables[id], self._sources, self._path, "boards")
                own = board if own is None else replace(own, numbers={**board.numbers, **own.numbers})
            self._parsed[id] = own
        return self._parsed[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables | self._own)

    def __len__(self) -> int:
        return len(self._tables | self._own)


def _board(id: str, table: Any, sources: Mapping[str, str], path: str, member: str) -> Board:
    where = f"{member}.{id}"
    if not isinstance(table, dict) or not _ID.fullmatch(id):
        refuse(path, where, "must be a table named vendor:device, as printed by lspci -n")
    numbers = {key: value for key, value in table.items() if key != "name"}
    return Board(id=id, name=_text(table, "name", path),
                 numbers=_numbers(numbers, BOARD_KEYS, sources, path, where))


def _numbers(
    table: Mapping[str, Any], keys: Mapping[str, NumberRange], sources: Mapping[str, str], path: str, where: str
) -> dict[str, Number]:
    check_keys(table, keys, path, where)
    return {key: _number(value, keys[key], sources, path, f"{where}.{key}") for key, value in table.items()}


def _number(entry: Any, key: NumberRange, sources: Mapping[str, str], path: str, where: str) -> Number:
    if not isinstance(entry, dict) or entry.keys() - {"floor"} != {"value", "source"}:
        refuse(path, where, "must have the form { value = .., source = .. }")
    floor = _in_range(entry, "floor", key, path, where) if "floor" in entry else None
    return Number(_in_range(entry, "value", key, path, where), _source(entry["source"], sources, path, where), floor)


def _in_range(entry: Mapping[str, Any], member: str, key: NumberRange, path: str, where: str) -> int | float:
    if isinstance(value := entry[member], bool) or not isinstance(value, int | float):
        refuse(path, where, f"{member} is not a number ({key.unit})")
    if not key.low <= value <= key.high:
        refuse(path, where, f"{str(value)[:20]} is not between {key.low:g} and {key.high:g} {key.unit}")
    if key.unit not in FRACTIONS and value % 1:
        refuse(path, where, f"{value:g} is not a whole number ({key.unit})")
    return value


def _wiring(row: Any, path: str) -> Wiring:
    if not isinstance(row, dict):
        refuse(path, "wiring", "must be an array of tables, [[wiring]]")
    check_keys(row, ("gpus", "to_gpus", "to_hcas"), path, "wiring")
    return Wiring(gpus=_count(row.get("gpus"), path, "wiring.gpus"), to_gpus=_classes(row, "to_gpus", path),
                  to_hcas=_classes(row, "to_hcas", path))


def _classes(row: Mapping[str, Any], key: str, path: str) -> dict[PciClass, int]:
    table = _table(row, key, path)
    check_keys(table, PCI_CLASSES, path, f"wiring.{key}")
    return {pci: _count(table[pci], path, f"wiring.{key}.{pci}") for pci in PCI_CLASSES if pci in table}


def _count(value: Any, path: str, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 256:
        refuse(path, where, "is not an integer from 1 to 256")
    return value


def _sources(document: Mapping[str, Any], path: str) -> dict[str, str]:
    return {key: _text(_table(document, "sources", path), key, path) for key in _table(document, "sources", path)}


def _source(key: Any, sources: Mapping[str, str], path: str, where: str) -> str:
    if key == "":
        return ""
    if not isinstance(key, str) or key not in sources:
        refuse(path, where, f"source {key!r} is not listed under [sources]")
    return sources[key]


def _table(document: Mapping[str, Any], key: str, path: str) -> dict[str, Any]:
    if not isinstance(table := document.get(key, {}), dict):
        refuse(path, key, "is not a table")
    return table


def _text(document: Mapping[str, Any], key: str, path: str, default: str | None = None) -> str:
    if not isinstance(text := document.get(key, default), str) or (default is None and not text.strip()):
        refuse(path, key, "is not a non-empty string")
    return text


def _texts(document: Mapping[str, Any], key: str, path: str) -> tuple[str, ...]:
    if not isinstance(texts := document.get(key, []), list) or not all(isinstance(text, str) for text in texts):
        refuse(path, key, "is not a list of strings")
    return tuple(texts)
