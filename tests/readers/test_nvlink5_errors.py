"""``nvidia-smi nvlink -e`` from NVLink 5 on: what is an error there, what is none, and how it is judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from readers_text import one

from dgxcheck.assessment.health import assess
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.readers.nvidia_smi import nvlink

QUIET = """\
GPU 0: NVIDIA B200 (UUID: GPU-00112233-4455-6677-8899-aabbccddeeff)
\t Link 0: Tx packets: 123456
\t Link 0: Rx bytes: 99
\t Link 0: Malformed packet Errors: 0
\t Link 0: Buffer overrun Errors: 0
\t Link 0: Rx Errors: 0
\t Link 0: Rx remote Errors: 0
\t Link 0: Rx General Errors: 0
\t Link 0: Local link integrity Errors: 0
\t Link 0: Tx discards: 0
\t Link 0: Link recovery successful events: 0
\t Link 0: Link recovery failed events: 0
\t Link 0: Total link recovery events: 0
\t Link 0: Effective Errors: 0
\t Link 0: Effective BER: 15e-255
\t Link 0: Symbol Errors: 0
\t Link 0: Symbol BER: 15e-255
\t Link 0: Raw BER Lane 0: 2061
\t Link 0: Raw Errors Lane 0: 82
\t Link 0: FEC Errors - 0: 36140749276
\t Link 0: FEC Errors - 1: 7
"""


def judged(folder: Path, text: str) -> list[Finding]:
    path = folder / "nvlink.txt"
    path.write_text(text)
    return [found for found in assess(str(path)).findings if found.id == "nvlink.errors"]


def test_every_line_is_read_and_only_errors_are_facts() -> None:
    found = one(nvlink.read_errors, QUIET)
    assert len(found.understood) == len(QUIET.splitlines())
    assert found.facts["stated nvlink-errors GPU0 0 220"] == 0xFFF
    assert len(found.facts) == 13
    assert one(nvlink.read_errors, QUIET.replace("\n", "\n\n", 1)).facts == found.facts


@pytest.mark.parametrize(("rate", "packed"), [("15e-1", 0xF01), ("16e-0", None), ("1e-256", None)])
def test_a_rate_is_packed_as_nvml_does(rate: str, packed: int | None) -> None:
    fact = one(nvlink.read_errors, QUIET.replace("Effective BER: 15e-255", f"Effective BER: {rate}")).facts
    told = fact["stated nvlink-errors GPU0 0 220"]
    assert (told if isinstance(told, int) else None) == packed


@pytest.mark.parametrize(
    ("zero", "count", "status"),
    [
        ("", "", "skip"),
        ("failed events: 0", "failed events: 1", "fail"),
        ("successful events: 0", "successful events: 1", "warn"),
        ("Effective BER: 15e-255", "Effective BER: 3e-9", "fail"),
        ("Effective BER: 15e-255", "Effective BER: 3e-14", "skip"),
        ("Symbol BER: 15e-255", "Symbol BER: 2e-11", "fail"),
        ("FEC Errors - 1: 7", "FEC Errors - 1: 700000000", "skip"),
        ("Raw Errors Lane 0: 82", "Raw Errors Lane 0: 82000000", "skip"),
    ],
)
def test_errors_of_a_link(zero: str, count: str, status: str, tmp_path: Path) -> None:
    assert [found.status.value for found in judged(tmp_path, QUIET.replace(zero, count))] == [status]
