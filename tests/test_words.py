"""Words are for people: no cause, action, check or score depends on those of a message."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from together import holds_for_each

PROJECT = next(up for up in Path(__file__).parents if (up / "pyproject.toml").exists())
WORDS = {"message", "detail"}
NAMED = re.compile(rf"\b(?:{'|'.join(WORDS)})\b")
WRITTEN = {
    "dgxcheck/fabric/finding.py",  # that of a cage holds those of its links
    "dgxcheck/facts/missing.py", "dgxcheck/facts/measurement.py",  # define them
    "dgxcheck/checks/engine/finding.py",  # extends messages
    "dgxcheck/source/recording/keys.py",  # writes them into recordings
    "dgxcheck/workers/nvml/walk.py", "dgxcheck/workers/files/child.py",
    "dgxcheck/workers/nvml/supervisor.py",  # the three pass them on
    "dgxcheck/checks/engine/run.py",  # says that a check was required
    "dgxcheck/checks/baseline.py",  # passes a difference on as a finding
    "dgxcheck/assessment/load.py",  # writes findings into the log of events
    "dgxcheck/watch/judgement_child.py",  # hands findings to the watch
    "dgxcheck/assessment/importing/onto.py", "dgxcheck/cli/commands/fleet_pairs.py",  # pass messages on
    "dgxcheck/assessment/compare.py", "dgxcheck/difference/findings.py",  # pass the new message on
}  # fmt: skip
"""Files that carry words from one place to another and decide nothing by them."""
FILES = sorted(
    path.relative_to(PROJECT).as_posix()
    for root in ("dgxcheck", "probes")
    for path in (PROJECT / root).rglob("*.py")
    if not path.is_relative_to(PROJECT / "dgxcheck" / "output")
)


def test_no_message_is_read() -> None:
    def reads_none(file: str) -> None:
        text = (PROJECT / file).read_text(encoding="utf-8")
        read = [
            f"{file}:{node.lineno}: .{node.attr}"
            for node in (ast.walk(ast.parse(text)) if NAMED.search(text) else ())
            if isinstance(node, ast.Attribute) and node.attr in WORDS and isinstance(node.ctx, ast.Load)
        ]
        assert read == []

    holds_for_each([file for file in FILES if file not in WRITTEN], reads_none)
