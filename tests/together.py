"""Many small cases in one test: collecting and reporting each costs more than running it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
Test = Callable[..., None]


def holds_for_each(cases: Iterable[T], test: Callable[[T], None], named: Callable[[T], str] = str) -> None:
    """All cases are tried, and all that fail are named."""
    failed: dict[str, str] = {}
    tried = 0
    for case in cases:
        tried += 1
        try:
            test(case)
        except AssertionError as error:
            failed[named(case)] = str(error)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 -- the other cases are tried, too
            failed[named(case)] = f"{type(error).__name__}: {error}"
    assert tried
    assert not failed, f"{len(failed)} of {tried}:\n" + "\n".join(f"{case}: {said}" for case, said in failed.items())


def for_each(names: str | Sequence[str], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """As ``pytest.mark.parametrize``, but for one test that tries all cases; its fixtures are those of all of them."""
    given = (names,) if isinstance(names, str) else tuple(names)
    all_of_them = tuple(cases)

    def whole(test: Test) -> Test:
        def tried(**fixtures: Any) -> None:
            def one(case: Any) -> None:
                test(**dict(zip(given, (case,) if isinstance(names, str) else case, strict=True)), **fixtures)

            holds_for_each(all_of_them, one, named=lambda case: str(case)[:200])

        left: list[Parameter] = [each for name, each in signature(test).parameters.items() if name not in given]
        tried.__name__, tried.__doc__, tried.__module__ = test.__name__, test.__doc__, test.__module__
        tried.__signature__ = Signature(left)  # type: ignore[attr-defined]
        return tried

    return whole
