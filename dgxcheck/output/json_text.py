"""JSON documents as text: on one line for programs, indented for people."""

from __future__ import annotations

import json
from collections.abc import Mapping

from dgxcheck.facts.missing import Json


def compact(document: Mapping[str, Json]) -> str:
    """One line. ``indent`` would leave json's encoder in C for the one in Python, ten times slower."""
    return json.dumps(document) + "\n"


def indented(text: str) -> str:
    """The same document with a member on each line."""
    return json.dumps(json.loads(text), indent=1) + "\n"
