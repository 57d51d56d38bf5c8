"""Any input of 64 MiB ends within 1 GiB and 30 s, with a result or one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest
from loader_costs import BYTES, CPU_S, LOADERS, cost, every, write
from sample import swept


def check(loader: str, content: str, folder: Path, size: int = 0) -> None:
    write(folder, loader, content, size)
    took = cost(loader, folder)
    assert took.code in (0, 1, 2, 3), took
    assert took.seconds < CPU_S
    assert "Traceback" not in took.err
    assert "internal error" not in took.err
    assert took.err.strip() or took.printed or (took.code == 0 and loader == "watch state")


@pytest.mark.in_ci
@pytest.mark.parametrize("loader", swept(LOADERS, 3))
def test_what_is_too_large_is_refused(loader: str, tmp_path: Path) -> None:
    check(loader, "nothing", tmp_path, size=BYTES)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("loader", "content"), [*every()])
def test_large_inputs_of_any_content(loader: str, content: str, tmp_path: Path) -> None:
    check(loader, content, tmp_path)
