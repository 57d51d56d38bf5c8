"""``dgxcheck xid``: one number, the list, and what is refused."""

from __future__ import annotations

import json

import pytest
from schemas import complaints
from seam import is_one_clear_line, run


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("79",), ("Xid 79: GPU has fallen off the bus", "RESTART_BM", "cold power cycle", "Xid 74")),
        (("79", "--gpu", "v100"), ("Possible causes", "GPUs before Ampere")),
        (("32", "--gpu", "Tesla V100-SXM2-16GB"), ("PCIe link",)),
        (("32", "--gpu", "h100"), ("application", "RESTART_APP")),
        (("64", "--gpu", "GeForce RTX 4090"), ("row remapping failed",)),
        (("64", "--gpu", "GeForce GTX 1080 Ti"), ("page retirement failed",)),
        (("63",), ("page retirement recorded", "row remapping recorded")),
        (("20034",), ("SXid 20034: LTSSM fault up", "fatal by NVIDIA's guide", "reset all GPUs")),
        (("NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU has fallen off the bus.",), ("Xid 79: GPU",)),
        (("Xid: 79",), ("Xid 79: GPU",)),
        (("[  9.1] nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 32",), ("SXid 20034: LTSSM",)),
        (("--list",), ("Number", "GPU has fallen off the bus", "LTSSM fault up")),
    ],
)
def test_it_explains(argv: tuple[str, ...], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "xid", *argv)
    assert (done.code, done.err) == (0, "")
    assert not [word for word in words if word not in done.out]


def test_the_list_of_one_gpu_has_its_meanings_and_no_sxids(capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "xid", "--list", "--gpu", "p100")
    assert "page retirement recorded" in done.out
    assert "row remapping" not in done.out
    assert "SXid" not in done.out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("999",), "Xid 999 is not in NVIDIA's lists"), (("0",), "Xid 0 is not"), (("99999",), "SXid 99999 is not"),
        (("1" * 40,), "is not in NVIDIA's"), (("79", "--gpu", "v1000"), "did you mean v100"), ((), "give the number"),
        (("79", "--list"), "give the number"), (("20034", "--gpu", "a100"), "--gpu does not apply"),
        (("x",), "not a valid number"), (("--", "-1"), "not in the range"),
    ],
)  # fmt: skip
def test_it_refuses_in_one_line(argv: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "xid", *argv)
    assert (done.code, done.out) == (3, "")
    assert is_one_clear_line(done.err)
    assert words in done.err


@pytest.mark.parametrize("argv", [("79",), ("45", "--gpu", "a100"), ("22003",), ("--list",)])
def test_it_writes_what_its_schema_says(argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, "xid", *argv, "--format", "json").out)
    assert complaints("xid", document) == []
    assert document["entries"]
