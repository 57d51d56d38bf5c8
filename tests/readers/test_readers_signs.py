"""A reader finds nothing in a text that has none of its signs: so no text is missed where it is not asked."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from sample import swept

from dgxcheck.readers.any_text import SIGNS

RECORDINGS = next(
    (up / "shared/recordings" for up in Path(__file__).parents if (up / "shared/recordings").is_dir()), Path("none")
)
LONGEST = 100_000


def texts() -> Iterator[str]:
    """The outputs that the tests of the readers have, and those that are shared."""
    for path in sorted([*Path(__file__).parent.glob("*.py"), *Path(__file__).parent.parent.glob("*_texts.py")]):
        if path.stem != Path(__file__).stem:
            for value in vars(importlib.import_module(path.stem)).values():
                yield from within(value)
    for path in sorted(RECORDINGS.rglob("*")):
        if path.is_file():
            yield path.read_bytes()[:LONGEST].decode("utf-8", "replace")


def within(value: object) -> Iterator[str]:
    if isinstance(value, str) and "\n" in value:
        yield value
    elif isinstance(value, tuple | list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from within(each)


@pytest.mark.in_ci
@pytest.mark.parametrize("part", swept(range(8), 8))
def test_nothing_without_a_sign(part: int) -> None:
    wrong: list[str] = []
    count = 0
    for text in [*dict.fromkeys(texts())][part::8]:
        lines = tuple(text.splitlines())
        small = "\n".join(lines).lower()
        for reader, signs in SIGNS.items():
            if not any(sign in small for sign in signs):
                count += 1
                wrong += [f"{reader.__module__}.{reader.__name__}: {text[:60]!r}"] if reader(lines) else []
    assert wrong == []
    assert count > 1000
