"""``dcgmi diag -j`` where the JSON is cut, edited or garbled: the results that are whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dgxcheck.facts.missing import Json

_TOKEN = re.compile(r'"((?:[^"\\]|\\.){0,2000})"\s{0,8}(:?)|([{}])|(?<![\w.])(\d{1,10})(?![\w.])')
_OF_RESULT = ("gpu_id", "gpu_ids", "entity_id", "entity_group", "status")
_WARNINGS = ("warning", "warnings")


def tests(lines: Sequence[str]) -> Iterator[tuple[dict[str, Json], range]]:
    """Each object with a status and the GPUs that it is of, as a test with one result; with the lines that it is on.

    The name of the test is the last one before it.
    """
    name, key = "test", ""
    result: dict[str, Json] = {}
    warnings: list[Json] = []
    depth = begun = first = 0
    for number, line in enumerate(lines):
        for text, colon, brace, digits in _TOKEN.findall(line[:4000]):
            if colon:
                key = text
            elif brace:
                depth += 1 if brace == "{" else -1
                if result and depth < begun:
                    if "status" in result and len(result) > 1:
                        yield {"name": name, "results": [{**result, "warnings": [*warnings]}]}, range(first, number + 1)
                    result, warnings = {}, []
            elif key == "name":
                name = text or name
            elif key in _OF_RESULT:
                begun, first = (begun, first) if result else (depth, number)
                result[key] = text or digits
            elif key in _WARNINGS and text and result:
                warnings.append(text)
