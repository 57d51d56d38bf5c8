"""What a command does grows with the number of PCI functions, not with that of their pairs: calls are counted."""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

import pytest
from sample import swept
from seam import run, save

from dgxcheck.facts.missing import Json
from dgxcheck.source.recording.keys import GroupedFacts, insert

SMALL, TIMES = 30, 4
PCI = "/sys/bus/pci/devices"


def function(bdf: str, path: str, code: str, ids: tuple[str, str]) -> dict[str, Json]:
    link = {f"{which}_link_{what}": text for which in ("current", "max")
            for what, text in (("width", "16"), ("speed", "8.0 GT/s PCIe"))}  # fmt: skip
    values = {"class": code, "vendor": ids[0], "device": ids[1], "numa_node": "0", **link}
    facts: dict[str, Json] = {f"text {PCI}/{bdf}/{name}": f"{text}\n" for name, text in values.items()}
    return facts | {f"link {PCI}/{bdf}": f"../../../devices/{path}"}


def box(gpus: int, shape: str) -> GroupedFacts:
    """GPUs on root ports of their own, or all below one switch."""
    facts: dict[str, Json] = {}
    above = "pci0000:00"
    if shape == "one switch":
        facts |= function("0000:00:01.0", f"{above}/0000:00:01.0", "0x060400", ("0x8086", "0x6f04"))
        facts |= function("0000:01:00.0", f"{above}/0000:00:01.0/0000:01:00.0", "0x060400", ("0x10b5", "0x8796"))
        above += "/0000:00:01.0/0000:01:00.0"
    for number in range(gpus):
        port = f"0000:02:{number // 8:02x}.{number % 8}"
        bdf = f"0000:{number + 3:02x}:00.0"
        facts |= function(port, f"{above}/{port}", "0x060400", ("0x10b5", "0x8796"))
        facts |= function(bdf, f"{above}/{port}/{bdf}", "0x030200", ("0x10de", "0x1db1"))
        facts[f"link {PCI}/{bdf}/driver"] = "../../../../bus/pci/drivers/nvidia"
    facts[f"names {PCI}"] = [*sorted(key.rpartition("/")[2] for key in facts if key.count("/") == 5 and "link" in key)]
    lines: GroupedFacts = {}
    for key, fact in facts.items():
        insert(lines, key, fact)
    return lines


def calls(path: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> int:
    profile = cProfile.Profile()
    profile.runcall(run, capsys, *command, "--from", str(path))
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.in_ci
@pytest.mark.parametrize("shape", swept(["one switch", "root ports"], 3))
@pytest.mark.parametrize("command", [("health",), ("topo", "--tree"), ("list",)])
def test_calls_grow_with_the_functions(
    command: tuple[str, ...], shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = save(tmp_path / "small.json", box(SMALL, shape))
    large = save(tmp_path / "large.json", box(SMALL * TIMES, shape))
    run(capsys, *command, "--from", str(small))  # modules are imported
    assert calls(large, command, capsys) < calls(small, command, capsys) * TIMES * 1.15
