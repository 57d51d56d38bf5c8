"""Conditions that the tests never vary: all tests once, with every condition of checks, diagnosis and readers watched.

``make conditions``. A line is printed for a comparison whose sides were never equal (``<`` and ``<=`` are the same to
the tests), for ``and`` and ``or`` that could be exchanged, for an operand or a test that was always true or always
false, and for what no test reached. Each is a mutant that survives, or a condition that nothing needs; what runs in a
process of its own is not watched.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from checkout import ROOT

ROOMS = ("checks", "diagnosis", "readers")
FOLDER = "DGXCHECK_CONDITIONS"
FALSE, TRUE, EQUAL = 1, 2, 4

Place = tuple[str, int, int, str]
"""File, line, number of the operand or -1, and the text: of an operand that of the whole."""

_PLACES: list[Place] = []
SEEN: list[int] = []
"""By number of the place which of ``FALSE``, ``TRUE`` and ``EQUAL`` were seen."""


def tested(number: int, value: object) -> object:
    """A value whose truth decides; a gap has none, and is what ``or`` leaves at the end."""
    SEEN[number] |= FALSE | TRUE if type(value).__name__ == "Missing" else TRUE if value else FALSE
    return value


def compared(number: int, operator: str, one: object, other: object) -> object:
    """``one < other`` and the like."""
    value = bool(_OPERATORS[operator](one, other))
    SEEN[number] |= (TRUE if value else FALSE) | (EQUAL if one == other else 0)
    return value


_OPERATORS = {
    "Lt": lambda one, other: one < other, "LtE": lambda one, other: one <= other,
    "Gt": lambda one, other: one > other, "GtE": lambda one, other: one >= other,
}  # fmt: skip


class Watched(ast.NodeTransformer):
    """The same code, in which every condition passes through ``tested`` or ``compared``."""

    def __init__(self, file: str) -> None:
        self._file = file

    def _call(self, name: str, node: ast.expr, operand: int, text: str, *arguments: ast.expr) -> ast.expr:
        _PLACES.append((self._file, node.lineno, operand, text))
        SEEN.append(0)
        function = ast.Attribute(ast.Name("__conditions__", ast.Load()), name, ast.Load())
        return ast.copy_location(ast.Call(function, [ast.Constant(len(SEEN) - 1), *arguments], []), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        text, operator = ast.unparse(node), type(node.ops[0]).__name__
        self.generic_visit(node)
        if len(node.ops) > 1 or operator not in _OPERATORS:
            return node
        return self._call("compared", node, -1, text, ast.Constant(operator), node.left, *node.comparators)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        text = ast.unparse(node)
        self.generic_visit(node)
        node.values = [self._call("tested", each, at, text, each) for at, each in enumerate(node.values)]
        return node

    def _test(self, test: ast.expr) -> ast.expr:
        """Of ``and`` and ``or`` the operands are watched, of an ordering its sides."""
        text, new = ast.unparse(test), self.visit(test)
        return new if isinstance(test, ast.BoolOp) or new is not test else self._call("tested", test, -1, text, new)

    def visit_If(self, node: ast.If) -> ast.stmt:
        node.test = self._test(node.test)
        node.body, node.orelse = ([self.visit(each) for each in those] for those in (node.body, node.orelse))
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        node.test, node.body, node.orelse = self._test(node.test), self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        node.iter, node.ifs = self.visit(node.iter), [self._test(each) for each in node.ifs]
        return node


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        tree = ast.parse(Path(self.path).read_bytes())
        watched = Watched(Path(self.path).relative_to(ROOT).as_posix()).visit(tree)
        return compile(ast.fix_missing_locations(watched), self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__conditions__"] = sys.modules[__name__]
        super().exec_module(module)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(tuple(f"dgxcheck.{room}" for room in ROOMS)):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


if FOLDER in os.environ:  # as a plugin, before conftest.py imports what is watched
    sys.meta_path.insert(0, _Finder())


def pytest_sessionfinish() -> None:
    rows = [[*place, seen] for place, seen in zip(_PLACES, SEEN, strict=True)]
    (Path(os.environ[FOLDER]) / f"{os.getpid()}.json").write_text(json.dumps(rows), encoding="utf-8")


def unvaried(seen: Mapping[Place, int]) -> Iterator[tuple[str, int, str, str]]:
    """File, line, what was never seen, and the condition."""
    operands: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    for (file, line, operand, text), what in sorted(seen.items()):
        if operand >= 0:
            operands[file, line, text].append(what)
        elif not what:
            yield file, line, "never reached", text
        elif what & (FALSE | TRUE) != FALSE | TRUE:
            yield file, line, "always true" if what & TRUE else "always false", text
        elif not what & EQUAL and _is_order(text):
            yield file, line, "never equal", text
    for (file, line, text), each in operands.items():
        whole = ast.parse(text, mode="eval").body
        assert isinstance(whole, ast.BoolOp)
        goes_on, word = (TRUE, "true") if isinstance(whole.op, ast.And) else (FALSE, "false")
        if not each[0]:
            yield file, line, "never reached", text
        elif all(what in (goes_on, 0) for what in each):
            yield file, line, f"operands always {word}", text
        else:
            yield from ((file, line, f"operand {at} always {word}", text) for at, what in enumerate(each, 1)
                        if what == goes_on and not isinstance(whole.values[at - 1], ast.Constant))  # fmt: skip


def _is_order(text: str) -> bool:
    node = ast.parse(text, mode="eval").body
    return isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]).__name__ in _OPERATORS


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal", "-p", Path(__file__).stem]
        environment = {**os.environ, FOLDER: folder, "PYTHONPATH": f"{ROOT}:{ROOT}/tests"}
        subprocess.run([*command, *sys.argv[1:]], cwd=ROOT, env=environment, check=False)
        seen: dict[Place, int] = defaultdict(int)
        for path in Path(folder).glob("*.json"):
            for *place, what in json.loads(path.read_text(encoding="utf-8")):
                seen[tuple(place)] |= what
    found = sorted(unvaried(seen))
    for file, line, what, text in found:
        print(f"{file}:{line}: {what}: {text}")
    print(f"{len(found)} of {len(seen)} conditions and operands were never varied")


if __name__ == "__main__":
    main()
