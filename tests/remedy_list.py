"""Every cause and action that a shipped fault prints, once, with its source: ``golden/remedies.txt``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judging import briefly
from sample import FAULTS

GOLDEN = Path(__file__).parent / "golden" / "remedies.txt"
_BDF = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](,[0-9a-f:.]+)*")
_NODES = re.compile(r"/dev/nvidia\d+( /dev/nvidia\d+)*")
_DEVICES = re.compile(r"\b(GPU@BDF|GPU\d+|mlx5_\d+)((, | to )(GPU@BDF|GPU\d+|mlx5_\d+))*")
Entry = tuple[str, tuple[str, ...]]


def entries() -> Mapping[Entry, list[str]]:
    """Component, faults and severity with the actions, and the shipped faults that print them."""
    found: dict[Entry, list[str]] = {}
    for fault in FAULTS:
        document = briefly(fault)
        remedies = {finding["key"]: finding["remedy"] for finding in document["findings"]}
        for cause in document["causes"]:
            its = cause["component"]
            place = f"{its['kind']} {its['part'] or ''}".strip()
            head = f"{place}: {', '.join(cause['faults'])} ({cause['severity']})"
            lines = tuple(_line(action, remedies) for action in cause["actions"])
            found.setdefault((head, lines), []).append(fault)
    return found


def _line(action: dict[str, Any], remedies: Mapping[str, str]) -> str:
    text = _DEVICES.sub("DEVICES", _NODES.sub("/dev/nvidiaN", _BDF.sub("BDF", action["text"])))
    return f"{action['action']}: {text} | disturbs {action['scope']} | {action['urgency']} | {action['source']}"


def lines() -> Iterator[str]:
    for (head, actions), faults in sorted(entries().items()):
        yield head
        yield f"  printed for {', '.join(sorted(faults))}"
        yield from (f"  - {action}" for action in actions)
        yield ""


def text() -> str:
    return "\n".join(lines())


if __name__ == "__main__":
    GOLDEN.write_text(text(), encoding="utf-8")
