"""PCIe errors (AER) in the kernel log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dgxcheck.checks.engine.blame import device_of, itself, own_link
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, Subject
from dgxcheck.checks.kernel_log.device_log import DAY_S, happened, lines, per_device, reach
from dgxcheck.components.component import Component
from dgxcheck.components.locate import links_at
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.topology.model import Device


def _aer(box: Box, log: KernelLog, bdf: str, _: Device | None) -> Judgement | None:
    errors = [each for each in log.pcie if each.bdf == bdf]
    if not errors:
        return None
    fatal, nonfatal, corrected = (
        [each for each in errors if each.severity == severity] for severity in ("fatal", "nonfatal", "corrected")
    )
    limit = box.settings.limit("kernel.corrected-pcie")
    daily = _in_a_day([each.seconds for each in corrected])
    status = Status.FAIL if fatal else Status.WARN if nonfatal or daily > limit else Status.PASS
    worst = fatal or nonfatal
    names = Counter(name for each in worst or corrected for name in each.names)
    bits = f" ({', '.join(f'{name} {times}' for name, times in names.most_common(3))})" if names else ""
    numbers = [(fatal, "fatal"), (nonfatal, "non-fatal"), (corrected, "corrected")]
    totals = ", ".join(f"{len(those)} {severity}" for those, severity in numbers if those)
    rate = f", up to {daily} a day (limit {limit:g})" if corrected and not worst else ""
    stuck = "; the kernel could not recover the device" if any(each.unrecovered for each in worst) else ""
    message = f"PCIe errors logged: {totals}{bits}{rate}{stuck}{reach(log)}"
    measured, expected, unit = (len(worst), 0, "errors") if worst else (daily, limit, "corrected errors")
    if status is Status.PASS:
        return Judgement(status, message, measured, expected, unit, lines(log, corrected))
    return Judgement(
        status, message, measured, expected, unit, lines(log, worst or corrected),
        fault=Fault.AER_LOGGED if worst else Fault.AER_CORRECTABLE,
        events=happened(worst or corrected, "pcie"),
    )  # fmt: skip


def _in_a_day(seconds: Sequence[float]) -> int:
    """The most events within one day; ``seconds`` are sorted."""
    most = first = 0
    for number, second in enumerate(seconds):
        while second - seconds[first] >= DAY_S:
            first += 1
        most = max(most, number - first + 1)
    return most


def _blames(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The PCIe link above a GPU, or above an HCA and then the HCA; the links at both sides of a bridge."""
    device = device_of(box, at)
    if device is None:
        yield from list(links_at(box, at.bdf or at.name)) or itself(box, at, judgement)
        return
    yield from own_link(box, at, judgement)
    if device.kind != "gpu":
        yield from itself(box, at, judgement)


CHECKS = (
    Check(
        id="kernel.aer",
        rule="Fails on a fatal PCIe error in the kernel log; warns on a non-fatal one, and on more than"
        " {kernel.corrected-pcie} from one device within a day.",
        source="Linux Documentation/PCI/pcieaer-howto.rst",
        remedy="compare with the link's AER counters (aer_dev_* under /sys/bus/pci/devices); cold power cycle at the"
        " next maintenance; if errors continue, reseat the device and the board or riser above it (SXM: the vendor"
        " does)",
        judge=per_device(_aer, lambda log: [each.bdf for each in log.pcie], "no PCIe errors logged"),
        blames=_blames,
        witness="log",
    ),
)
