"""The fault words in dgxcheck-health(1), and the words of causes and actions in the schema of its JSON.

``python tests/fault_words.py`` writes both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import get_args

from dgxcheck.components.component import Kind
from dgxcheck.diagnosis.confidence import Level, Reason
from dgxcheck.facts.faults import EVERY_FAULT
from dgxcheck.facts.faults.kind import Scope, Step, Urgency
from dgxcheck.output.health.sentences import SENTENCES

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "man" / "dgxcheck-health.1"
SCHEMA = ROOT / "dgxcheck" / "schemas" / "health.schema.json"
MARK = '.\\" faults: written by tests/fault_words.py\n'
PLACE = re.compile(rf"(?<=^{re.escape(MARK)}).*?(?=^\.El$)", re.DOTALL | re.MULTILINE)
WORDS: Mapping[str, list[str]] = {
    "fault": [fault.word for fault in EVERY_FAULT],
    "step": [*get_args(Step)],
    "instruction": [*SENTENCES],
    "scope": [*get_args(Scope)],
    "urgency": [*get_args(Urgency)],
    "component-kind": [*get_args(Kind)],
    "confidence-level": [*get_args(Level)],
    "confidence-reason": [*get_args(Reason)],
}
"""By the name of the definition in the schema."""


def items() -> str:
    """The items of the list in the manual page, in the order of the code."""
    return "".join(f".It Cm {fault.word}\n{fill(fault.meaning, 80, break_on_hyphens=False)}\n" for fault in EVERY_FAULT)


def in_page() -> str:
    """What the page has in their place."""
    found = PLACE.search(PAGE.read_text(encoding="utf-8"))
    return found[0] if found else ""


def in_schema() -> dict[str, list[str]]:
    """The words of each definition in the schema."""
    definitions = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    return {name: definitions[name]["enum"] for name in WORDS}


def _written(schema: str) -> str:
    for name, words in WORDS.items():
        place = re.compile(rf'(?<=^    "{name}": )(\{{.*?"enum": )\[[^]]*\]', re.DOTALL | re.MULTILINE)
        schema = place.sub(lambda at, words=words: f"{at[1]}{json.dumps(words)}", schema, count=1)  # type: ignore[misc]
    return schema


if __name__ == "__main__":
    PAGE.write_text(PLACE.sub(lambda _: items(), PAGE.read_text(encoding="utf-8"), count=1), encoding="utf-8")
    SCHEMA.write_text(_written(SCHEMA.read_text(encoding="utf-8")), encoding="utf-8")
