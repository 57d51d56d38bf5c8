"""A few lines of pasted text do not pass, whatever they say; the whole output of nvidia-smi -q is judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from smi_texts import LINKS, STATION, TABLE
from test_smi_dumps import FOLDER

from dgxcheck.assessment import assess
from dgxcheck.checks.engine.run import LEAST_CHECKS, judged_checks
from dgxcheck.cli import main

THREE_LINES = """\
GPU 0: Tesla V100-SXM2-16GB (UUID: GPU-11111111-2222-3333-4444-555555555555)
GPU 1: Tesla V100-SXM2-16GB (UUID: GPU-11111111-2222-3333-4444-666666666666)
"""


def imported(text: str, folder: Path) -> Path | None:
    """The recording that ``import`` makes of a text; None where it reads nothing in it."""
    source, box = folder / "text", folder / "box.json"
    source.write_text(text, encoding="utf-8")
    main(["import", str(source), "-o", str(box)])
    return box if box.is_file() else None


@pytest.mark.parametrize("text", [STATION, TABLE, LINKS, THREE_LINES])
def test_a_few_lines_are_unknown(text: str, tmp_path: Path) -> None:
    box = imported(text, tmp_path)
    if box is None:
        return  # nothing was read, so that nothing can be judged
    found = assess(str(box))
    assert judged_checks(found.findings) < LEAST_CHECKS
    assert found.verdict.value in ("unknown", "fail")


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the published dumps are not here")
@pytest.mark.parametrize("name", ["a100-sxm4-80gb-8x-525.txt", "h100-sxm-1x-545.txt", "v100-sxm2-32gb-power9-418.txt"])
def test_a_whole_dump_is_judged(name: str, tmp_path: Path) -> None:
    box = imported((FOLDER / name).read_text(encoding="utf-8"), tmp_path)
    assert box is not None
    found = assess(str(box))
    assert judged_checks(found.findings) >= LEAST_CHECKS
    assert found.verdict.value == "pass"
