"""HCAs and ports under the names that ``/sys/class/infiniband`` gives them, and how their transfers end."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.faults import BY_WORD, Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.infiniband import LANE_GBIT, PHYS_STATES, PortState
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import INFINIBAND
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.model import Imported, ToolPart
from dgxcheck.readers.wording import outcome_of, rows

NAME = r"[A-Za-z][\w.-]{0,63}"
"""How a device is called: ``mlx5_0``, ``mlx5_bond_0``, ``ibp12s0``."""
_STATE_WORDS = {"INITIALIZING": "INIT", "INITIALIZE": "INIT"}
_PHYSICAL = {name.replace(" ", "").lower(): f"{state.value}: {name}" for state, name in PHYS_STATES.items()}
_PHYSICAL["training"] = _PHYSICAL["portconfigurationtraining"]
"""Without blanks, dashes and case."""
_SPEEDS = {lane: name for name, lane in LANE_GBIT.items() if name != "FDR10"}
"""Gbit/s of a lane, as ``active_speed`` gives them: 10 is also FDR10."""
_GUID = LazyPattern(
    r"(?:0x)?([0-9a-f]{4}):?([0-9a-f]{4}):?([0-9a-f]{4}):?([0-9a-f]{4})", flags=re.IGNORECASE | re.ASCII
)


def state(words: str) -> str | None:
    """``4: ACTIVE`` of ``Active``, ``PORT_ACTIVE (4)``, ``ACTIVE`` or ``4: ACTIVE``."""
    word = words.partition("(")[0].rpartition(":")[2].strip().upper().removeprefix("PORT_")
    word = _STATE_WORDS.get(word, word)
    return f"{PortState[word].value}: {word}" if word in PortState.__members__ else None


def physical(words: str) -> str | None:
    """``5: LinkUp`` of ``LinkUp``, ``LINK_UP (5)`` or ``5: LinkUp``."""
    word = words.partition("(")[0].rpartition(":")[2]
    return _PHYSICAL.get(re.sub(r"[\s_-]", "", word).lower())


def guid(words: str) -> str | None:
    """``b859:9f03:00d1:e2f4``, however it is written."""
    match = _GUID.fullmatch(words.strip())
    return ":".join(match.groups()).lower() if match is not None else None


def lid(words: str) -> str | None:
    """``0xc`` of ``12`` or ``0xc``."""
    word = words.strip().lower()
    if re.fullmatch(r"0x[0-9a-f]{1,4}|\d{1,5}", word, re.ASCII) is None:
        return None
    number = int(word, 16 if "x" in word else 10)
    return f"{number:#x}" if number <= 0xFFFF else None


def hca_name(name: str) -> str:
    """Of an adapter; in results of tools a bus id with colons stands for a GPU."""
    bdf = as_bdf(name) or as_bdf(f"0000:{name}")
    return (bdf or re.sub(r"^/dev/mst/|[\s/:]", "", name)).replace(":", ".")


_NOT_OF_NAMES = LazyPattern(r"[^\w.-]+")


def node_name(description: str, otherwise: str = "node") -> str:
    """``gpu01.mlx5_0`` of the description ``gpu01 mlx5_0``, ``MF0.leaf1.MQM9700.U1`` of ``MF0;leaf1:MQM9700/U1``."""
    return _NOT_OF_NAMES.sub(".", description).strip(".") or otherwise


def rate(lanes: int, gbit_per_lane: float) -> str | None:
    """``200 Gb/sec (4X HDR)``; None for a speed that has no name."""
    name = _SPEEDS.get(gbit_per_lane)
    return None if name is None else f"{lanes * gbit_per_lane:g} Gb/sec ({lanes}X {name})"


_RATE = ascii_pattern(r"[0-9.]{1,8} Gb/sec \(\d{1,3}X(?: [A-Z0-9]{1,8})?\)")
_WORDED: Mapping[str, Callable[[str], str | None]] = {
    "state": state, "phys_state": physical, "lid": lid, "sm_lid": lid, "node_guid": guid, "sys_image_guid": guid,
    "rate": lambda words: words if _RATE.fullmatch(words) else None,
}  # fmt: skip


def worded(file: str, words: str) -> dict[str, str | None]:
    """What a tool says, as the file of that name has it; None for what the file never holds."""
    return {file: _WORDED[file](words) if file in _WORDED else words[:200]}


def device_files(device: str, files: Mapping[str, str | None]) -> dict[str, Json]:
    """Facts of one device's files; those without a text are left out."""
    return {f"text {INFINIBAND}/{device}/{name}": f"{text}\n" for name, text in files.items() if text}


def port_files(device: str, port: int, files: Mapping[str, str | None]) -> dict[str, Json]:
    """Facts of one port's files."""
    return device_files(f"{device}/ports/{port}", files)


def listed(ports: Mapping[str, Sequence[int]]) -> dict[str, Json]:
    """The directories: of the devices, and of each one's ports."""
    facts: dict[str, Json] = {
        f"names {INFINIBAND}/{name}/ports": [*map(str, dict.fromkeys(numbers))]
        for name, numbers in ports.items() if numbers
    }  # fmt: skip
    return facts | ({f"names {INFINIBAND}": [*sorted(ports)]} if ports else {})


class PortsPart(ToolPart):
    """What a reader makes of a tool that lists devices with their ports."""

    def __init__(self, tool: str) -> None:
        super().__init__(tool)
        self.ports: dict[str, list[int]] = {}

    def add_port(self, device: str, port: int, files: Mapping[str, str | None]) -> None:
        self.ports.setdefault(device, []).append(port)
        self.found |= port_files(device, port, files)

    def imported(self, more: Mapping[str, Json] = {}, sound: str = "") -> tuple[Imported, ...]:
        """Nothing where it neither lists a device nor finds one wrong."""
        return super().imported({**listed(self.ports), **more}, sound) if self.ports or self else ()


class Completion(Record, kw_only=False):
    """What a status says of the machine."""

    words: str
    fault: FaultKind
    outcome: Outcome = "fail"
    follows: bool = False
    """Something else failed before it, here or at the other end."""


def _completion(row: dict[str, str]) -> Completion:
    return Completion(row["text"], BY_WORD[row["fault"]], outcome_of(row), bool(row["follows"]))


COMPLETIONS = {int(row["code"]): _completion(row) for row in rows("network/completions")}

EFA_ENDINGS = tuple((row["words"], _completion(row)) for row in rows("network/efa_endings"))
"""Words of libfabric (prov/efa/src/efa_errno.h, efa_strerror.c), and what they stand for."""


def completion(code: int) -> tuple[Completion, str]:
    """What a status stands for, and the sentence for people."""
    status = COMPLETIONS.get(code) or Completion("see ibv_wc_status", Fault.TRANSFER_FAILED)
    return status, f"a transfer ended with status {code} ({status.words})"
