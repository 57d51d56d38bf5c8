"""The JSON Schemas that ship, and what a document breaks of one."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from checkout import ROOT
from jsonschema_rs import Validator, validator_for

FOLDER = ROOT / "dgxcheck" / "schemas"


def schema(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
    return document


@cache
def validator(name: str) -> Validator:
    return validator_for(schema(name))


def complaints(name: str, document: object) -> list[str]:
    """What the schema of this name refuses in a document, each with its place."""
    return [f"{error.instance_path}: {error.message[:200]}" for error in validator(name).iter_errors(document)]
