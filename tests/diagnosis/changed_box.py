"""A shipped machine with other facts and lines of its kernel log, and how it is judged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judging import judged

from dgxcheck.facts.missing import Json

PCI = "/sys/bus/pci/devices"
HOT = "0000:9d:00.0"
OF_H200 = [f"0000:{bus}:00.0" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")]


def document(
    folder: Path, base: str, facts: Mapping[str, Json], log: tuple[str, ...] = (), later: dict[str, Json] | None = None,
    at_s: int = 60,
) -> Any:
    """How the box is judged with these facts and lines, and with others in its second reading; empty: it has none."""
    lines = {f"kmsg {place}": f"{3600 + place / 100:.6f};{line}" for place, line in enumerate(log, 40)}
    path = folder / f"{base}-changed.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": base, "facts": facts, "add": lines,
                                **({} if later is None else
                                   {"later": [{"at_s": at_s, "facts": later}] if later else []})}))  # fmt: skip
    return judged(str(path))[1]


def causes(folder: Path, base: str, facts: Mapping[str, Json], log: tuple[str, ...] = ()) -> Any:
    """What it is judged to have."""
    return document(folder, base, facts, log)["causes"]


def links_down(links: int, bdfs: list[str]) -> dict[str, Json]:
    return {f"nvml nvmlDeviceGetNvLinkState {bdf} {link}": 0 for bdf in bdfs for link in range(links)}


DIED = ("poll_health:835:(pid 0): device's health compromised - reached miss count",
        "mlx5_health_try_recover:343:(pid 9): health recovery flow aborted, PCI reads still not working")  # fmt: skip
IB = "/sys/class/infiniband"
LOST: dict[str, Json] = {"missing": "lost", "detail": "NVML 15: GPU is lost"}


def off_the_bus(*bdfs: str) -> dict[str, Json]:
    ones: dict[str, Json] = {"size": 64, "rows": {f"0{row}0": "f" * 32 for row in range(4)}}
    return {f"data {PCI}/{bdf}/config": ones for bdf in bdfs}
