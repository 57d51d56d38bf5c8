"""An ordinary user forges lines of the kernel log by programs that crash, and the log is read as it is: live.

Their names (15 bytes) and the names of their files (any bytes but the slash, newlines too) are chosen to look like
lines of the NVIDIA driver, of AER, EDAC, machine checks, disks and slots. Skips where the kernel does not
log such crashes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_kernel_log_forged import FORGED, TASK_COMM_LEN

from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.facts.missing import Missing
from dgxcheck.source.kernel_log.kmsg import read, relevant_lines
from dgxcheck.source.kernel_log.saved import times
from probes.kernel_log import facts

KMSG = "/dev/kmsg"
NOBODY = 65534
CRASHES = 8
"""The kernel logs ten in five seconds."""
SOURCE = (
    "#include <sys/prctl.h>\nint main(int n, char **v) { prctl(PR_SET_NAME, v[n - 1]); return *(volatile int *)0; }\n"
)
Events = set[tuple[str, str]]


def events(log: KernelLog | Missing) -> Events:
    """Lines of all errors that a log has, by kind, without the crashes of other tests in stand-ins for the driver."""
    if isinstance(log, Missing):
        return set()
    kinds = ("xids", "sxids", "off_bus", "pcie", "not_started", "refused", "hcas", "host")
    found = ((kind, event.line) for kind in kinds for event in getattr(log, kind))
    return {(kind, line) for kind, line in found if not line.startswith("python")}


def from_device() -> Events:
    lines = read(KMSG)
    return set() if isinstance(lines, Missing) else events(facts(lines, KMSG))


def from_text(*argv: str) -> Events:
    text = subprocess.run(argv, check=True, capture_output=True).stdout
    log = times(text)
    return set() if log is None else events(facts(relevant_lines(log), "dmesg"))


@pytest.fixture
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A program that crashes under the name that is its last argument, in a folder that everybody may read."""
    if os.getuid() or shutil.which("gcc") is None or shutil.which("dmesg") is None or not os.access(KMSG, os.R_OK):
        pytest.skip("needs root, gcc, dmesg and /dev/kmsg")
    folder = Path("/tmp") / f"dgxcheck-forged-{os.getpid()}"
    folder.mkdir(mode=0o755)
    (folder / "crash.c").write_text(SOURCE)
    subprocess.run(("gcc", "-o", str(folder / "crash"), str(folder / "crash.c")), check=True, capture_output=True)
    yield folder / "crash"
    shutil.rmtree(folder)


def crash(program: Path, number: int, name: str, lines: list[str]) -> None:
    """Run a copy of it as an ordinary user, with lines in the name of its file."""
    folder = program.parent / str(number)
    folder.mkdir(mode=0o755)
    path = folder / "\n".join(("x", *lines))[:250]
    shutil.copy(program, path)
    path.chmod(0o755)
    subprocess.run((str(path), name), user=NOBODY, group=NOBODY, check=False, capture_output=True)


def test_programs_of_an_ordinary_user_forge_nothing(program: Path) -> None:
    entrances: dict[str, Callable[[], Events]] = {
        "/dev/kmsg": from_device, "dmesg": lambda: from_text("dmesg"), "dmesg -x": lambda: from_text("dmesg", "-x"),
        "dmesg -S": lambda: from_text("dmesg", "-S"), "dmesg -r": lambda: from_text("dmesg", "-r"),
    }  # fmt: skip
    before = {name: entrance() for name, entrance in entrances.items()}
    marks = []
    for number in range(CRASHES):
        forged = [*FORGED[number::CRASHES], FORGED[0]]
        marks.append(f"f{os.getpid()}x{number}")
        crash(
            program, number, forged[0][: TASK_COMM_LEN - 1], [marks[-1], *(line.replace("/", "-") for line in forged)]
        )
    text = subprocess.run(("dmesg",), check=True, capture_output=True, text=True).stdout
    logged = [mark for mark in marks if mark in text]
    if not logged:
        pytest.skip("this kernel does not log programs that crash")
    assert {name: entrance() - before[name] for name, entrance in entrances.items()} == {
        name: set() for name in entrances
    }  # fmt: skip
