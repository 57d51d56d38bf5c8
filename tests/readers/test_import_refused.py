"""``dgxcheck import`` of what is no text, or nowhere: one line, and no file."""

from __future__ import annotations

from pathlib import Path

import pytest
from seam import is_one_clear_line, run
from smi_texts import STATION
from test_import import put

from dgxcheck.assessment.importing.texts import lines
from dgxcheck.facts.missing import BadInput
from dgxcheck.limits import IMPORT_BYTES


@pytest.mark.parametrize(("raw", "why"), [
    (b"\x7fELF\0\0", "contains NUL bytes"),
    (b"GPU0\0GPU1", "contains NUL bytes"),
])  # fmt: skip
def test_binaries_are_refused(raw: bytes, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").write_bytes(raw)
    done = run(capsys, "import", str(tmp_path / "a"), "-o", str(tmp_path / "box.json"))
    assert done.code == 3
    assert is_one_clear_line(done.err)
    assert why in done.err
    assert not (tmp_path / "box.json").exists()


def test_files_beyond_the_limit_and_no_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(IMPORT_BYTES + 1)
    good = put(tmp_path, "good", STATION)
    (tmp_path / "empty").mkdir()
    for argv, why in (
        ((str(tmp_path / "empty"), "-o", str(tmp_path / "x")), "is a directory"),
        ((str(tmp_path / "big"), "-o", str(tmp_path / "x")), "larger than 64 MiB"),
        ((str(tmp_path / "none"), "-o", str(tmp_path / "x")), "No such file"),
        (("/dev/null", "-o", str(tmp_path / "x")), "not a regular file"),
        ((good, "-o", "-"), "import cannot write to '-'"),
        ((good, "-o", str(tmp_path)), "is a directory"),
        ((good, "-o", str(tmp_path / "no" / "x")), "cannot be written"),
        ((good, "--onto", "nothing-of-the-kind", "-o", str(tmp_path / "x")), "no such recording"),
    ):
        done = run(capsys, "import", *argv)
        assert done.code == 3
        assert is_one_clear_line(done.err), done.err
        assert why in done.err


def test_texts_of_windows_are_read() -> None:
    assert lines("a\r\nb\rc\n".encode("utf-16"), "x") == ("a", "b", "c", "")
    assert lines(b"\xef\xbb\xbfa\xff\n", "x") == ("a\N{REPLACEMENT CHARACTER}", "")
    with pytest.raises(BadInput):
        lines(b"a\0", "x")
