"""The text of a PTX module as kernels, their parameters and instructions."""

from __future__ import annotations

import re
from typing import NamedTuple

ENTRY = re.compile(r"\.visible \.entry (\w+)\(([^)]*)\)\s*\{\n(.*?)\n\}", re.DOTALL)
PARAMETER = re.compile(r"\.param \.(\w+) (\w+)")
STATEMENT = re.compile(r"(\w+):|(?:@(!?)(%\w+)\s+)?([a-z][\w.]*)\s*([^;]*);|\.reg[^;]*;")
OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")


class Instruction(NamedTuple):
    """One instruction: ``@!%p add.u32 %a, %b, 1`` has the guard ``%p``, is negated, and three operands."""

    guard: str
    negated: bool
    words: tuple[str, ...]
    operands: tuple[str, ...]


class Kernel(NamedTuple):
    """A kernel: parameters as (type, name) in their order; labels are indexes into the instructions."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]


def kernels(text: str) -> dict[str, Kernel]:
    """The kernels of a module by name; ValueError where a body holds what is not understood."""
    bare = re.sub(r"//[^\n]*", "", text)
    return {name: _kernel(name, parameters, body) for name, parameters, body in ENTRY.findall(bare)}


def _kernel(name: str, parameters: str, body: str) -> Kernel:
    if rest := STATEMENT.sub("", body).strip():
        raise ValueError(f"{name}: not understood: {rest[:80]}")
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for label, negated, guard, words, operands in STATEMENT.findall(body):
        if label:
            labels[label] = len(instructions)
        elif words:
            parts = tuple(words.split("."))
            instructions.append(Instruction(guard, bool(negated), parts, tuple(OPERAND.findall(operands))))
    return Kernel(name, tuple(PARAMETER.findall(parameters)), tuple(instructions), labels)
