"""Mutants: random lines of checks, diagnosis and readers changed one at a time, and the tests that do not notice.

``make mutants MUTANTS=100 SEED=1``. A mutant lives in the memory of a process that runs the tests of its subject: no
file changes, and what a test does in a process of its own is not mutated. The tests are those that name one of its
checks, or share the most of its rarest words, or import it, directly or through few others, and what is printed of
shipped faults that its checks find.
"""

from __future__ import annotations

import ast
import os
import random
import re
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import NamedTuple

import pytest
from checkout import ROOT
from golden_text import FOLDER
from sample import FAULTS, expected

ROOMS = ("checks", "diagnosis", "readers")
SECONDS = 400
"""Of a CPU, for the tests of one mutant: one that never ends is noticed, too; on a machine with much else to do none
else is taken for that."""
LONGEST = 1200
"""Seconds of one that waits for ever."""
MOST_FILES = 14
MOST_FAULTS = 24
WHOLE = {
    "readers": ("tests/readers/test_whole_outputs.py", "tests/readers/test_damaged_outputs.py"),
    "checks": ("tests/test_golden.py::test_every_finding_is_golden",),
}
"""By room the test of all that its modules say of texts or boxes; it comes last."""
NEVER = "never ends"
NOTICED = "first to fail: "
SLOW = {"chaos", "system", "driver", "fuzz", "documents", "measure"}
"""Folders of tests that start processes or judge everything."""
_TUNED = ("lru_cache", "remembered", "zip")
_ID = re.compile(r'\bCheck\("([a-z0-9]+\.[a-z0-9-]+)"')
SWAPPED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OTHER: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.LShift: ast.RShift,
}  # fmt: skip


class Mutant(NamedTuple):
    """A node of a module's syntax tree, by its number among those that can be changed."""

    file: str
    number: int
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.number}"


def _bared(tree: ast.AST) -> None:
    """Takes away what changes no answer: annotations, how much is remembered, ``strict`` of ``zip``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Name("object", ast.Load(), lineno=node.lineno, col_offset=0)
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _TUNED:
            node.args, node.keywords = node.args if node.func.id == "zip" else [], []


def changeable(tree: ast.AST) -> Iterator[ast.AST]:
    """What has a mutant: comparisons, conditions, arithmetic and numbers."""
    _bared(tree)
    for node in ast.walk(tree):
        compared = isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED
        counted = isinstance(node, ast.Constant) and type(node.value) in (int, float, bool)
        computed = isinstance(node, ast.BinOp) and type(node.op) in OTHER and not isinstance(node.right, ast.Name)
        if compared or counted or computed or isinstance(node, ast.BoolOp | ast.If | ast.IfExp):
            yield node


def changed(node: ast.AST) -> str:
    """Changes the node; what was and what is."""
    before = ast.unparse(node).partition("\n")[0]
    if isinstance(node, ast.Compare):
        node.ops[0] = SWAPPED[type(node.ops[0])]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.If | ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.BinOp):
        node.op = OTHER[type(node.op)]()
    elif isinstance(node, ast.Constant):
        assert isinstance(node.value, int | float)
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    return f"{before}  ->  {ast.unparse(node)}".partition("\n")[0]


def mutated(mutant: Mutant) -> tuple[ast.Module, str]:
    tree = ast.parse((ROOT / mutant.file).read_text(encoding="utf-8"))
    said = changed([*changeable(tree)][mutant.number])
    return ast.fix_missing_locations(tree), said


def drawn(count: int, seed: int) -> list[Mutant]:
    """Random lines that can be changed, and at each a random change."""
    lines: dict[tuple[str, int], list[Mutant]] = {}
    for path in sorted(path for room in ROOMS for path in (ROOT / "dgxcheck" / room).rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        for number, node in enumerate(changeable(ast.parse(path.read_text(encoding="utf-8")))):
            line: int = node.lineno  # type: ignore[attr-defined]
            lines.setdefault((file, line), []).append(Mutant(file, number, line))
    chance = random.Random(seed)
    return [chance.choice(lines[place]) for place in chance.sample(sorted(lines), count)]


@cache
def imported(path: Path) -> frozenset[str]:
    """Modules that a file imports by name; of ``from a import b`` both ``a`` and ``a.b``."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


def importers() -> dict[str, set[Path]]:
    """The files that import each module: those of the project, and of the tests."""
    found: dict[str, set[Path]] = {}
    for path in [*(ROOT / "dgxcheck").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        for name in imported(path):
            found.setdefault(name, set()).add(path)
    return found


def module_of(path: Path) -> str:
    """As it is imported: modules of tests by their last name."""
    if path.is_relative_to(ROOT / "tests"):
        return path.stem
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def words_of(file: str) -> set[str]:
    """What a module defines, the faults and the like that it uses, and parts of its texts, docstrings aside."""
    tree, found = ast.parse((ROOT / file).read_text(encoding="utf-8")), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and node.attr.isupper():
            found |= {f".{node.attr}", f'"{node.attr.lower().replace("_", "-")}"'}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(re.findall(r"[A-Za-z][\w .:/-]{5,}\w", node.value))
    return found


def alike(file: str, tests: Mapping[Path, str]) -> list[Path]:
    """The tests that share words with a module, the most and rarest first."""
    shared = Counter[Path]()
    for word in words_of(file):
        those = [path for path, text in tests.items() if word in text]
        shared.update(dict.fromkeys(those, 1 / len(those)) if those else {})
    return sorted(shared, key=shared.__getitem__, reverse=True)


def ids_in(paths: Iterable[Path]) -> set[str]:
    """Of the checks that these modules define."""
    return {id for path in paths for id in _ID.findall(path.read_text(encoding="utf-8"))}


def tests_of(file: str, by_module: Mapping[str, set[Path]]) -> list[str]:
    """Test files, the nearest first: they name a check of the module, share its words, or import it over few others."""
    package = Path(file).parent.name
    users = by_module.get(module_of(ROOT / file), set())
    beside = [ROOT / file, *(path for path in users if path.parent.name == package)]
    ids = ids_in(beside) or ids_in(users)
    tests = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py"))
             if path.parent.name not in SLOW}  # fmt: skip
    ranked = [path for path in alike(file, tests) if Path(file).parts[1] in path.parts]
    near = [path for path in ranked if any(f'"{id}"' in tests[path] for id in ids)][: MOST_FILES // 2]
    stem, edge, seen = Path(file).stem, {ROOT / file}, set[Path]()
    near += [path for path in tests if stem in path.stem and Path(file).parts[1] in path.parts]
    near += ranked[: MOST_FILES // 2]
    while edge and len(near) < MOST_FILES:
        seen |= edge
        edge = {path for each in edge for path in by_module.get(module_of(each), ())} - seen
        near += sorted(edge & {*ranked})
    near += ranked
    found = [path.relative_to(ROOT).as_posix() for path in dict.fromkeys(near)][:MOST_FILES]
    return [*dict.fromkeys([*found, *faults_of(file, ids), *WHOLE.get(Path(file).parts[1], ())])]


def faults_of(file: str, ids: set[str]) -> list[str]:
    """The tests of what is printed of shipped faults that a module's checks find, of all for diagnosis: half of them
    the nearest."""
    every = Path(file).parts[1] == "diagnosis"
    names = [name for name in FAULTS if every or ids & {finding["id"] for finding in expected(name)["findings"]}]
    texts = {FOLDER / f"{name}.health.txt": name for name in names}
    near = alike(file, {path: path.read_text(encoding="utf-8") for path in texts})[: MOST_FAULTS // 2]
    some = [*map(texts.__getitem__, near), *names[:: 2 * len(names) // MOST_FAULTS + 1]]
    return [f"tests/test_golden.py::test_a_fault_is_golden[{name}]" for name in dict.fromkeys(some)]


class _First:
    """A plugin that notes the first test that fails; a file that cannot be imported is one."""

    failed = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Property tests last: they take the longest."""
        items.sort(key=lambda item: getattr(getattr(item, "function", None), "is_hypothesis_test", False))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def _note(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        self.failed = self.failed or (report.nodeid if report.failed else "")


def alone(mutant: Mutant | None, arguments: list[str]) -> str:
    """In a process of its own: the module mutated, then its tests; the first that fails."""
    first = _First()
    if mutant is not None:
        tree, path, plain = mutated(mutant)[0], str(ROOT / mutant.file), SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
            return compile(tree, path, "exec") if loader.path == path else plain(loader, fullname)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
    quick = ("-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--tb", "no", "--assert", "plain")
    pytest.main([*quick, *arguments], plugins=[first])
    return first.failed


def noticed(mutant: Mutant | None, arguments: list[str]) -> str:
    """The first test that fails."""
    changed_at = [mutant.file, str(mutant.number), str(mutant.line)] if mutant is not None else ["-", "0", "0"]
    try:
        done = subprocess.run([sys.executable, __file__, *changed_at, *arguments], cwd=ROOT, capture_output=True,
                              text=True, timeout=LONGEST, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return NEVER
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):  # the soft and the hard limit of CPU time
        return NEVER
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n").rpartition("\n")[2].removeprefix(NOTICED)


def survives(mutant: Mutant, tests: list[str], broken: set[str], sound: set[str]) -> bool:
    """Do all its tests pass, but for those that fail without a mutant? They are added to ``broken``, others that failed
    to ``sound``, which are not tried again."""
    while tests:
        failed = noticed(mutant, [*tests, *(f"--deselect={test}" for test in [*broken])])
        if not failed or failed == NEVER or failed in sound:
            return not failed
        without = noticed(None, [failed])
        assert without != NEVER, f"{failed} does not end without a mutant"
        if not without:
            sound.add(failed)
            return False
        broken.add(failed)
    return True


def main(count: int, seed: int) -> int:
    """Prints each mutant that survives; at most one of twenty may."""
    by_module, left, broken, sound = importers(), 0, set[str](), set[str]()
    mutants = drawn(count, seed)
    tests = [tests_of(mutant.file, by_module) for mutant in mutants]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        alive = pool.map(lambda mutant, files: survives(mutant, files, broken, sound), mutants, tests)
        for mutant, files, survived in zip(mutants, tests, alive, strict=True):
            left += survived
            said = f"{mutant.file}:{mutant.line}: {mutated(mutant)[1]}"
            print("SURVIVES" if survived else "killed  ", said, flush=True)
            if survived:
                print("         after", *files, flush=True)
    for test in sorted(broken):
        print("fails without a mutant:", test)
    print(f"{left} of {count} survive")
    return left * 20 > count


if __name__ == "__main__":
    if len(sys.argv) > 3:
        file, number, line, *arguments = sys.argv[1:]
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        failed = alone(Mutant(file, int(number), int(line)) if file != "-" else None, arguments)
        print(f"\n{NOTICED}{failed}")
        sys.exit()
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
