"""What ``dgxcheck integrate`` prints: the catalogue, one entry, and what was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.integrate import INTEGRATIONS, CommandProblem, Integration, PlannedFile
from dgxcheck.output.plain_text import columns, lines, wording

_STATES = {"new": "new", "unchanged": "unchanged", "differs": "differs, left alone", "unusable": "cannot be used"}

_PROBLEMS: Mapping[CommandProblem, str] = wording("command problem")


def listing() -> str:
    """All integrations, a line each."""
    rows = [(integration.name, str(len(integration.files)), integration.purpose) for integration in INTEGRATIONS]
    return lines([*columns([("Name", "Files", "Purpose"), *rows]), "", "Show one: dgxcheck integrate NAME"])


def report(
    integration: Integration, files: Sequence[PlannedFile], written: bool, command: str, problem: CommandProblem
) -> str:  # fmt: skip
    """What would be written, or what was; then the steps that remain, and why ``command`` will not run."""
    rows = [
        ("written" if written and file.state == "new" else _STATES[file.state],
         file.place + (f" ({file.reason})" if file.reason else ""))
        for file in files
    ]  # fmt: skip
    steps = [f"  {number}. {step}" for number, step in enumerate(integration.steps, 1)]
    return lines([
        f"{integration.name}: {integration.purpose}",
        *(f"  {line}" for line in columns(rows)),
        "Then:",
        *steps,
        *_notes(files, written, _PROBLEMS.get(problem, "").format(command)),
    ])  # fmt: skip


def contents(files: Sequence[PlannedFile]) -> str:
    """One file as it is; several below each other, each after a line with its place, as ``systemctl cat`` does."""
    if len(files) == 1:
        return files[0].text
    return "\n".join(f"# {file.place}\n{file.text}" for file in files)


def _notes(files: Sequence[PlannedFile], written: bool, problem: str) -> list[str]:
    notes = [problem] if problem else []
    if any(file.state == "unusable" for file in files):
        notes.append("No file was written, because a place cannot be used.")
    elif any(file.state == "differs" for file in files):
        notes.append("No file was written, because existing files are not replaced; --print shows the new contents.")
    elif not written and any(file.state == "new" for file in files):
        notes.append("Nothing was written; --print shows the contents, --write writes the files.")
    return ["", *notes] if notes else []
