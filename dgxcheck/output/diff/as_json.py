"""The document of schema ``dgxcheck/diff/1``."""

from __future__ import annotations

from collections import Counter

from dgxcheck.assessment.compare import Look
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import fields
from dgxcheck.output.json_values import compact, head, members, source
from dgxcheck.output.report import DiffReport

SCHEMA = "dgxcheck/diff/1"


def render(report: DiffReport) -> str:
    comparison = report.comparison
    counts = Counter(difference.kind for difference in comparison.differences)
    whole: dict[str, Json] = {
        **head(SCHEMA, dated=False),
        "old": _look(comparison.old),
        "new": _look(comparison.new),
        "verdict": comparison.verdict,
        "summary": {
            "worse": counts["worse"], "better": counts["better"], "neutral": counts["neutral"],
            "exit_code": report.exit_code,
        },
        "differences": [
            {**members(each, " ".join(fields(each))), "unit": each.unit or None} for each in comparison.differences
        ],
        "notes": [*comparison.notes],
    }  # fmt: skip
    return compact(whole)


def _look(look: Look) -> Json:
    return {"source": source(look.origin), **members(look.report, "score profile=against?")}
