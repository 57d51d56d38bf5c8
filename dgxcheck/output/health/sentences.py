"""What an instruction says: a sentence for each code, with its values. The sentences are in ``sentences.tsv``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from dgxcheck.checks.engine.finding import Finding
from dgxcheck.diagnosis.action import Instruction
from dgxcheck.facts.faults.kind import SOLDERED
from dgxcheck.package_files import table

_ROWS = [*table("output/health/sentences.tsv")]
_PHRASES = [(row["code"].strip("{}"), row["value"], row["text"]) for row in _ROWS if row["code"][0] == "{"]
SENTENCES: Mapping[str, str] = {row["code"]: row["text"] for row in _ROWS if row["code"][0] != "{"}
_NO_LABEL = " whose label was found, and no other: if nothing names one, call the vendor"


def instruction_text(instruction: Instruction, of: Finding | None = None) -> str:
    """The sentence of a code with its values; the remedy of a finding as it is."""
    values = instruction.values
    words = {"chosen": "", "switches": " and NVSwitches", "soldered": SOLDERED, "remedy": of.remedy if of else ""}
    words |= {name: device_list(value) if isinstance(value, tuple) else str(value) for name, value in values.items()}
    words["node"] = shlex.quote(words.get("node", ""))
    for word, value, text in _PHRASES:
        words[word] = text.format_map(words) if not value or values.get(value) else ""
    place = values.get("name") or values.get("position")
    words["at"] = f" at {place}" if place else _NO_LABEL if "position" in values else ""
    words["disk"] = f"the disk at {place}"
    words["device"] = shlex.quote(f"/dev/{values.get('array', place)}")
    if "members" in values:  # of an array whose errors name no member, how to find it
        shown = f"mdadm --detail {words['device']} lists it as faulty, or no longer; else the kernel log names it"
        unnamed = f"the failing disk of {place} ({shown})"
        words["disk"] = f"{words['members']} of {place}" if words["members"] else unnamed
    return SENTENCES[instruction.code].format_map(words)


def device_list(names: Sequence[str]) -> str:
    """``GPU0 to GPU7``, ``GPU6, GPU7``, ``mlx5_0``"""
    first = names[0].removeprefix("GPU") if names else ""
    if len(names) > 2 and first.isdecimal():
        consecutive = [f"GPU{number}" for number in range(int(first), int(first) + len(names))]
        if [*names] == consecutive:
            return f"{names[0]} to {names[-1]}"
    return ", ".join(names)
