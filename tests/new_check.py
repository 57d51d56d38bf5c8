"""Write the skeleton of a check with its test, and register it with its remedy: ``make new-check NAME=host.uptime``.

The package is the one whose checks have that subject; ``make new-check NAME=host.uptime PACKAGE=host`` names it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKS = ROOT / "dgxcheck" / "checks"
REGISTRY = CHECKS / "registry.py"
REMEDIES = CHECKS / "remedies.tsv"
NAME = re.compile(r"([a-z][a-z0-9]*)\.([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")
OF_THE_HOST = ("driver", "host")
"""Packages whose skeleton judges the host; those of the others judge every GPU."""
HOST_CHECK = '''\
"""TODO: what is judged, in one sentence."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, host, per_host
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status
from dgxcheck.facts.missing import need


def _rule(box: Box) -> Judgement:
    """Reports the release of the kernel. Always passes. TODO: the rule; a bad judgement has a fault (facts/faults).

    Source: /proc/sys/kernel/osrelease
    """
    release = need(need(box.snapshot.host).kernel_release)
    evidence = (Evidence("/proc/sys/kernel/osrelease", release),)
    return Judgement(Status.PASS, f"Linux {release}", release, evidence=evidence)


CHECKS = (
    Check("SUBJECT.WORD", per_host(_rule), host("kernel")),
)
'''
GPU_CHECK = '''\
"""TODO: what is judged, in one sentence."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, part, per_gpu
from dgxcheck.checks.engine.finding import Judgement, Status, answered
from dgxcheck.facts.missing import need
from dgxcheck.facts.nvml.gpu import GpuBoard


def _rule(box: Box, board: GpuBoard) -> Judgement:
    """Reports the board's part number. Always passes. TODO: the rule; a bad judgement has a fault (facts/faults).

    Source: nvmlDeviceGetBoardPartNumber
    """
    number = need(board.part_number)
    evidence = (answered(number, "nvmlDeviceGetBoardPartNumber", board.bdf),)
    return Judgement(Status.PASS, f"part number {number}", number, evidence=evidence)


CHECKS = (
    Check("SUBJECT.WORD", per_gpu("gpu_board", _rule), part("board")),
)
'''
TEST = '''\
"""TODO: what is judged, in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_health_checks import DEVICE_IMPORTchanged, status

from dgxcheck.facts.missing import Json

KEY = "FACT"


@pytest.mark.parametrize(
    ("fact", "due"),
    [
        ("1", "pass"),
        ({"missing": "denied"}, "skip no-permission"),
        ({"missing": "garbled"}, "unknown"),
    ],
)
def test_status(fact: Json, due: str, tmp_path: Path) -> None:
    assert status(changed(tmp_path, {KEY: fact}), "SUBJECT.WORD", DEVICE) == due
'''
HOST_TEST = (
    TEST.replace("DEVICE_IMPORT", "").replace("DEVICE", "None").replace("FACT", "text /proc/sys/kernel/osrelease")
)
GPU_TEST = (
    TEST.replace("DEVICE_IMPORT", "GPU2, ").replace("DEVICE", "GPU2")
    .replace('"FACT"', 'f"nvml nvmlDeviceGetBoardPartNumber {GPU2}"')
)  # fmt: skip
NEXT = """\
Next: replace the TODOs in {check} and {test}, and its row in dgxcheck/checks/remedies.tsv, then
  .venv/bin/pytest {test}
  make golden      (writes the manual page and the golden files: look at what changes)
  make test
and add a line to CHANGELOG.md."""


def package_of(subject: str) -> str:
    """The package below ``dgxcheck/checks`` that has most checks of this subject."""
    counts = {
        package.name: sum(
            path.read_text(encoding="utf-8").count(f'Check("{subject}.') for path in sorted(package.glob("*.py"))
        )
        for package in sorted(CHECKS.iterdir())
        if (package / "__init__.py").is_file() and package.name != "engine"
    }
    most = max(counts, key=lambda name: (counts[name], name == subject))
    if counts[most] or most == subject:
        return most
    raise SystemExit(f"no package has checks of the subject {subject!r}; add PACKAGE= and one of {', '.join(counts)}")


def registered(registry: str, package: str, module: str) -> str:
    """The text of ``registry.py`` with a new module behind those of its package."""
    name = f"{package}_{module}" if re.search(rf"\b{module}\b", registry) else module
    imported = f"from dgxcheck.checks.{package} import {module}" + (f" as {name}" if name != module else "")
    head, mark, body = registry.partition("\nMODULES = ")
    modules = [as_ or word for words in re.findall(rf"^from dgxcheck\.checks\.{package} import (.*)$", head, re.M)
               for word, as_ in re.findall(r"(\w+)(?: as (\w+))?(?:, |$)", words)]  # fmt: skip
    listed = body[: body.index(")")]
    ends = [at.end() for at in re.finditer(r"(\w+),", listed) if at[1] in modules]
    end = body.index("\n", max(ends, default=body.index("(")))
    return f"{head}{imported}\n{mark}{body[:end]}\n    {name},{body[end:]}"


def with_remedy(table: str, name: str) -> str:
    """The text of ``remedies.tsv`` with a row of the check behind the last one of its subject."""
    subject = name.partition(".")[0]
    rows = table.splitlines(keepends=True)
    last = max((at for at, row in enumerate(rows) if row.startswith(f"{subject}.")), default=len(rows) - 1)
    return "".join((*rows[: last + 1], f"{name}\t\tnothing to do\n", *rows[last + 1 :]))


def write(name: str, package: str = "") -> None:
    """Two new files and the registry; an error where the name is taken or has not the form of an id."""
    match = NAME.fullmatch(name)
    if match is None:
        raise SystemExit(f"{name!r} is not a name of the form subject.word or subject.two-words")
    subject, word = match.groups()
    package, module = package or package_of(subject), word.replace("-", "_")
    check = CHECKS / package / f"{module}.py"
    test = ROOT / "tests" / "checks" / f"test_{subject}_{module}.py"
    if not check.parent.is_dir():
        raise SystemExit(f"there is no package dgxcheck/checks/{package}")
    for path in (check, test):
        if path.exists():
            raise SystemExit(f"{path.relative_to(ROOT)} exists already")
    texts = (HOST_CHECK, HOST_TEST) if package in OF_THE_HOST else (GPU_CHECK, GPU_TEST)
    for path, text in zip((check, test), texts, strict=True):
        path.write_text(text.replace("SUBJECT.WORD", name), encoding="utf-8")
    REGISTRY.write_text(registered(REGISTRY.read_text(encoding="utf-8"), package, module), encoding="utf-8")
    REMEDIES.write_text(with_remedy(REMEDIES.read_text(encoding="utf-8"), name), encoding="utf-8")
    sort_imports = (sys.executable, "-m", "ruff", "check", "--quiet", "--fix", "--select", "I", str(REGISTRY))
    subprocess.run(sort_imports, cwd=ROOT, check=True)
    print(NEXT.format(check=check.relative_to(ROOT), test=test.relative_to(ROOT)))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit("usage: make new-check NAME=subject.word [PACKAGE=package]")
    write(*sys.argv[1:])
