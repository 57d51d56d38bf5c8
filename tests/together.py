"""Many small cases in one test: collecting and reporting each costs more than running it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def holds_for_each(cases: Iterable[T], test: Callable[[T], None], named: Callable[[T], str] = str) -> None:
    """All cases are tried, and all that fail are told."""
    failed: dict[str, str] = {}
    tried = 0
    for case in cases:
        tried += 1
        try:
            test(case)
        except AssertionError as error:
            failed[named(case)] = str(error)
    assert tried
    assert not failed, f"{len(failed)} of {tried}:\n" + "\n".join(f"{case}: {said}" for case, said in failed.items())
