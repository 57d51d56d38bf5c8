"""Measurements on both sides that differ by more than their own spread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dgxcheck.difference.matching import Matched
from dgxcheck.difference.model import Difference, Side, Trend, arrow, judged
from dgxcheck.facts.measurement import Measurement, NotMeasured
from dgxcheck.facts.missing import rows

DRIFT = 0.10
"""Relative to the greater value; healthy boxes repeat within 5 %."""
LESS_IS_BETTER = ("us", "ns", "words")
EXACT = ("words", "")
"""Units of counts and of yes or no, which do not drift."""
MeasurementKey = tuple[str, str, str]


def differences(old: Side, new: Side, devices: Matched) -> Iterator[Difference]:
    """Measurements on both sides, by kind and GPUs; what one side did not measure is left out."""
    names = {pair.old.name: pair.new.name for pair in devices.gpus if pair.old and pair.new}
    before = _rows(old, names)
    for key, now in _rows(new, {name: name for name in names.values()}).items():
        if (was := before.get(key)) is not None:
            yield from _compared(was, now, " -> ".join(filter(None, key[1:])))


def _rows(side: Side, names: Mapping[str, str]) -> dict[MeasurementKey, Measurement]:
    """Measurements by kind and the GPUs' names on the new side; indexes of imported ones become ``GPUn``."""
    names_by_bdf = {device.bdf: device.name for device in side.topology.gpus}
    gpu_names = {*names_by_bdf.values()}
    rows_by_key: dict[MeasurementKey, Measurement] = {}
    for row in rows(side.snapshot.measurement):
        ends = [names_by_bdf.get(end, end) if ":" in end else f"GPU{end}" if end.isdecimal() else end
                for end in (row.a, row.b)]  # fmt: skip
        a, b = (names.get(end) if end in gpu_names else end for end in ends)
        if a is not None and b is not None and row.kind != "cuda":
            rows_by_key[row.kind, a, b] = row
    return rows_by_key


def _compared(old: Measurement, new: Measurement, device: str) -> Iterator[Difference]:
    was, now = old.number, new.number
    kind: Trend
    if was is None or now is None:
        if was is now or not (old.failed if was is None else new.failed):
            return
        kind, words = "better" if was is None else "worse", arrow(_words(old), _words(new))
    elif was == now or old.unit != new.unit or not (new.unit in EXACT or drifted(old, new)):
        return
    else:
        kind, words = judged(was, now, new.unit not in LESS_IS_BETTER), arrow(f"{was:.4g}", f"{now:.4g}", new.unit)
        words += "" if new.unit in EXACT or not was else f" ({(now - was) / was:+.0%})"
    yield Difference(
        kind=kind, area="measurement", change="changed", device=device, bdf=new.a if ":" in new.a else None,
        what=new.kind, old=was, new=now, unit=new.unit or old.unit, message=f"{new.kind}: {words}",
    )  # fmt: skip


def drifted(old: Measurement, new: Measurement) -> bool:
    """Differ by more than a tenth, with disjoint ranges of samples?"""
    was, now = old.number, new.number
    if was is None or now is None or abs(now - was) <= DRIFT * max(abs(was), abs(now)):
        return False
    before, after = ((*row.samples, *row.runs, number) for row, number in ((old, was), (new, now)))
    return max(before) < min(after) or max(after) < min(before)


def _words(row: Measurement) -> str:
    if row.number is not None:
        return f"{row.number:.4g} {row.unit}".rstrip()
    return f"failed: {row.value}" if isinstance(row.value, NotMeasured) else "none"
