"""What kind of thing a recorded fact is, and so how it is judged: one row per fact, in the record that holds it.

``limit_mw: int | Missing = nature.setting("power limit", "mW")`` is such a row, at ``GpuPower.limit_mw``.
The label is the field's name in words where the row has none. It is judged without a check of its own: identities are
unique; inventory, versions, settings, states and capabilities are alike among siblings; states are good; counters do
not grow; readings are between ``low`` and ``high``, no more than the field ``most`` beside them, and together no more
than the field that they are ``part_of``; identities, inventory, versions and capabilities are those of the last run.
What is not judged says why.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it; workers start without that module
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal, Protocol

    Nature = Literal[
        "key", "holder", "identity", "place", "inventory", "version", "setting", "state", "capability", "gauge",
        "counter", "load", "event",
    ]  # fmt: skip
    Among = Literal["", "place", "board", "image", "model"]
    Better = Literal["more", "less"]
    """Of a number that is compared with an earlier one; there is more where there was none."""

COMPARED = frozenset(("inventory", "version", "setting", "state", "capability"))
"""Natures of what healthy siblings have in common."""


class Fact:
    """One row."""

    __slots__ = ("label", "more", "name", "nature", "record", "unit")

    def __init__(self, record: type[Any], name: str, row: tuple[Nature, tuple[str, ...], Mapping[str, Any]]) -> None:
        self.record, self.name = record, name
        self.nature, label_unit, self.more = row
        self.label: str = label_unit[0] if label_unit else ""
        self.unit: str = label_unit[1] if len(label_unit) > 1 else ""


if TYPE_CHECKING:

    class Specifier(Protocol):
        """Of a field: its label and unit, the options of its row, and the value where none is given."""

        def __call__(
            self, label: str = "", unit: str = "", *, default: Any = ..., prefix: str = "", asked: str = "",
            file: str = "", low: float = ..., high: float = ..., most: str = "", part_of: str = "",
            any: str = "", differs: str = "", differs_in: Mapping[str, str] = ..., among: Among = "",
            good: tuple[object, ...] = (), better: Better = ..., kept: bool = ..., words: tuple[str, ...] = (),
            shown: tuple[str, float] = ..., fix: str = "", source: str = "", by: str = "", any_order: bool = False,
            shared: str = "", unique: bool = ..., zero: bool = ..., card: bool = ..., flashed: bool = ...,
            lasts: int = ..., tolerance: str = "", slack: int = 0,
            limit: str | float = ..., per: Literal["hour", "day"] = ..., grown: bool = ...,
            names: Callable[[str], Fact | None] = ..., blames: str = "", ceiling: int = ..., of_life: bool = ...,
            at_boot: int = 0,
        ) -> Any: ...  # fmt: skip


def _of(nature: Nature) -> Specifier:
    def row(*label_unit: Any, **more: Any) -> Any:
        return [nature, label_unit, more]

    return row


key = _of("key")
"""Which device a record is of."""
holder = _of("holder")
"""Records that have rows of their own, or the gap in place of them. ``prefix``: of the labels of these rows.
Here and below ``asked`` is the NVML function where a probe reads it by itself, ``file`` the file where it is
not named as the field."""
identity = _of("identity")
"""No two devices of a kind have the same. ``shared``: who may; then two that share it among others that do
not are a finding, and all of them are none. ``card``: the functions of one card do; ``zero``: 0 is a value.
``flashed``: its maker wrote it into the device; others are given out when the machine or its driver starts.
``lasts``: characters at its end that are the same in the next boot, where not all are."""
place = _of("place")
"""Where in the machine: wiring, node, number; other facts follow from it. ``unique``: as identities are."""
inventory = _of("inventory")
"""What was built in: alike among siblings, the same as in the last run unless ``any`` says why not."""
version = _of("version")
"""Of firmware or software: alike among siblings, the same as in the last run."""
setting = _of("setting")
"""What somebody chose: alike among siblings. ``fix``: the option of nvidia-smi that sets it. ``kept``: the same
as in the last run, as inventory and versions are."""
state = _of("state")
"""How it is now: one of the values that are ``good``, where they are known, and alike among siblings.
``by``: the check that knows more than the row."""
capability = _of("capability")
"""What it can do: alike among siblings."""
gauge = _of("gauge")
"""A measured quantity, between its bounds; ``any`` is why each of them is plausible."""
counter = _of("counter")
"""What only grows: no more than its ``limit``, a threshold or number, in each hour or day; ``any`` is why any
number is harmless, or with ``grown`` any total. ``names``: the row of a counter in a mapping; one that has none
is judged all the same. ``ceiling``: where it stops. ``of_life``: does it survive a reboot? ``at_boot``: up to
here it counts at each start."""
load = _of("load")
"""What the machine is doing at this moment: never judged."""


def row(field: object) -> Fact:
    """The row of a field, by its address: ``row(GpuPower.limit_mw)``."""
    record, name = field.__objclass__, field.__name__  # type: ignore[attr-defined]
    return rows_of(record)[name]


def rows_of(record: type[Any]) -> Mapping[str, Fact]:
    """The rows of a record by field; of one that holds an event none has more than that nature."""
    if (facts := _ROWS.get(record)) is None:
        event = ["event", (), {}] if record._nature else None
        named = {name: record._rows.get(name, event) for name in record.__slots__}
        facts = _ROWS[record] = {name: Fact(record, name, row) for name, row in named.items() if row is not None}
    return facts


def by_name(table: Mapping[str, Any], name: str) -> Fact | None:
    """The row of a counter in a mapping; None where the table does not know it."""
    return Fact(object, name, table[name]) if name in table else None


_ROWS: dict[type[Any], Mapping[str, Fact]] = {}
