"""What ``make conditions`` prints of a module."""

from __future__ import annotations

import ast
import sys
from typing import Any

import conditions
import pytest

CODE = """
def judged(value, limit, names):
    if value < limit and names:
        return "low"
    return [name for name in names if name] or None if value > 9 else value
"""


@pytest.mark.parametrize(("calls", "expected"), [
    ((), {"value < limit: never reached", "value < limit and names: never reached", "value > 9: never reached",
          "name: never reached", "[name for name in names if name] or None: never reached"}),
    (((1, 2, "a"), (2, 1, "")), {"value < limit and names: operand 2 always true", "value < limit: never equal",
                                 "value > 9: always false", "name: never reached",
                                 "[name for name in names if name] or None: never reached"}),
    (((1, 2, ["a"]), (2, 2, ""), (1, 2, ""), (9, 1, ""), (10, 1, ["", "a"]), (10, 1, "")), set()),
])  # fmt: skip
def test_what_was_never_varied(
    calls: tuple[tuple[object, ...], ...], expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[conditions.Place] = []
    monkeypatch.setattr(conditions, "_PLACES", places)
    monkeypatch.setattr(conditions, "SEEN", [])
    tree = ast.fix_missing_locations(conditions.Watched("a.py").visit(ast.parse(CODE)))
    space: dict[str, Any] = {"__conditions__": sys.modules["conditions"]}
    exec(compile(tree, "a.py", "exec"), space)
    plain: dict[str, Any] = {}
    exec(CODE, plain)
    for call in calls:
        assert space["judged"](*call) == plain["judged"](*call)
    found = conditions.unvaried(dict(zip(places, conditions.SEEN, strict=True)))
    assert {f"{text}: {what}" for _, _, what, text in found} == expected
