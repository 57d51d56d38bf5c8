"""A worker loads no library from the folder in which dgxcheck was started."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from dgxcheck.workers.process import start

REPORTER = """
import os

def main():
    text = f"{os.environ.get('LD_LIBRARY_PATH')} {os.getcwd()}\\n"
    os.write(3, text.encode())
"""


@pytest.mark.parametrize(
    ("path", "due"),
    [("", ""), (":/opt/lib", "/opt/lib"), ("/opt/lib:", "/opt/lib"), ("/a::/b", "/a:/b"), (".:lib:/a;b;/c", "/a:/c")],
)
def test_only_absolute_folders_of_the_library_path_reach_it(
    path: str, due: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reporter.py").write_text(REPORTER)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", path)
    pid, stdin, stdout = start("reporter")
    os.waitpid(pid, 0)
    deadline = time.monotonic() + 30
    text = b""
    while not text.endswith(b"\n") and time.monotonic() < deadline:
        text += os.read(stdout, 4096)
    os.close(stdin)
    os.close(stdout)
    assert text.decode() == f"{due} /\n"
