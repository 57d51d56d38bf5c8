"""What NVML is asked of a machine, and which facts its answers are: the plan of the worker and the table of the probes.

Functions are C names without ``_vN``; which symbol serves is settled in ``workers/nvml/binding.py``. Scopes: ``system``
once, ``gpu`` per GPU, ``position`` per NVLink position (the link is the first argument), ``link`` per position that has
a state, ``link up`` per link that is up, ``link 5`` per one of these of NVLink 5 or newer,
``memory clock`` per supported memory clock, ``process`` per pid on a GPU,
``pair`` per unordered (in NVML's order) and ``ordered pair`` per ordered pair of GPUs. ``nvmlInit``,
``nvmlDeviceGetCount`` and ``nvmlDeviceGetHandleByIndex`` always come first, in no group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from dgxcheck.facts import ids
from dgxcheck.facts.record import Record
from dgxcheck.package_files import table

U64 = 2**64 - 1
LARGEST = U64 - 1
"""All ones is no number but what a device that is gone reads as; NVML_VALUE_NOT_AVAILABLE only in members of which
nvml.h says so (usedGpuMemory)."""


class Quantity(Record, kw_only=False):
    """One NVML function with its arguments, asked once per subject of its scope, and the facts that it gives."""

    function: str
    args: tuple[int, ...]
    scope: str
    facts: tuple[str, ...]
    """Fields of the group's record, ``current.graphics`` for those of a record in it; () for what a probe reads by
    itself. More than one without ``members``: the outputs of the function, in its order."""
    members: tuple[str, ...]
    """Of an answer that is a struct: NVML's names of the fields that the facts are."""
    form: str
    """``number``, ``text`` or ``flag`` (``nvmlEnableState_t``); a word for each fact where they are not of one form."""
    low: int
    high: int


ERROR_TYPES = ("corrected", "uncorrected")  # nvmlMemoryErrorType_t
COUNTER_TYPES = ("volatile", "aggregate")  # nvmlEccCounterType_t
THRESHOLDS = ("shutdown", "slowdown", "memory_max", "gpu_max")  # nvmlTemperatureThresholds_t
LINK_ERRORS = ("replay", "recovery", "crc_flit", "crc_data", "ecc_data")  # nvmlNvLinkErrorCounter_t
_TABLE = "facts/nvml/quantities.tsv"


class _Groups(Mapping[str, tuple[Quantity, ...]]):
    """By name, in the order in which they are asked; rows become quantities where their group is first needed."""

    def __getitem__(self, group: str) -> tuple[Quantity, ...]:
        if not (quantities := _quantities(group)):
            raise KeyError(group)
        return quantities

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(row["group"] for row in table(_TABLE)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


@cache
def _quantities(group: str) -> tuple[Quantity, ...]:
    return tuple(map(_quantity, table(_TABLE, group)))


def _quantity(row: Mapping[str, str]) -> Quantity:
    args = tuple(map(int, row["args"].format_map(vars(ids)).split()))
    low, high = map(int, row["range"].split() or (0, LARGEST))
    facts, members = tuple(row["facts"].split()), tuple(row["members"].split())
    return Quantity(row["function"], args, row["scope"], facts, members, row["form"], low, high)


GROUPS = _Groups()
