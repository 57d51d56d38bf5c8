"""What the kernel log says of devices that their drivers could not start, and of HCAs and their ports' modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.kernel_log.gpu_and_pcie import per_device, reach, shown
from dgxcheck.checks.network.hcas import hcas, subject
from dgxcheck.checks.network.ports import port_subject, ports
from dgxcheck.facts.kernel_log import HcaEvent, KernelLog
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]
_DRIVER = "mlx5_core"


class _Meaning(Record, kw_only=False):
    status: Status
    text: str
    remedy: str


MEANINGS = {
    "not started": _Meaning(
        Status.FAIL, "mlx5_core could not start it",
        "read what the log says before; modprobe -r mlx5_ib mlx5_core, modprobe mlx5_ib; if it stays, power the machine"
        " off and on, then burn the firmware anew or replace the adapter",
    ),
    "firmware": _Meaning(
        Status.FAIL, "its firmware stopped to answer",
        "save mstdump or mstregdump of it, then mlxfwreset or power the machine off and on; update its firmware",
    ),
    "temperature": _Meaning(
        Status.WARN, "its sensors reached their limit", "look at the air that reaches it: mget_temp, fans, filters",
    ),
    "power": _Meaning(
        Status.WARN, "the slot announces less power than it needs",
        "compare with its neighbours, firmware may announce nothing at all: if it is slow or drops its link, move it to"
        " a slot of 75 W or update firmware and BIOS",
    ),
}  # fmt: skip
"""By what the driver tells; Linux drivers/net/ethernet/mellanox/mlx5/core main.c, health.c, events.c."""


def _unnamed(box: Box) -> Device | None:
    """Whom words without a bus id are about: the one GPU that NVML does not list."""
    unlisted = [gpu for gpu in box.topology.gpus if gpu.index is None]
    return unlisted[0] if len(unlisted) == 1 else None


def _start(box: Box, log: KernelLog, bdf: str, gpu: Device | None) -> Judgement | None:
    own = gpu is not None and gpu == _unnamed(box)
    seen = [each for each in log.not_started if each.bdf == bdf or (own and each.bdf is None)]
    now = [each for each in seen if not each.past]
    if not now:
        before = f"could not be started before the driver was last loaded{reach(log)}"
        return Judgement(Status.PASS, before) if seen else None
    why = ": its power cables are not connected" if any(each.unpowered for each in now) else ""
    if gpu is not None and gpu.index is not None:
        message = f"the driver could not start it at first{why}; NVML lists it now{reach(log)}"
        return Judgement(Status.WARN, message, evidence=shown(log, now))
    return Judgement(Status.FAIL, f"the driver could not start it{why}{reach(log)}", evidence=shown(log, now))


def _starts(box: Box) -> Judged:
    yield from per_device(_start, lambda log: [each.bdf for each in log.not_started if each.bdf is not None])(box)
    log = box.snapshot.kernel_log
    nameless = () if isinstance(log, Missing) or _unnamed(box) is not None else log.not_started
    now = [each for each in nameless if each.bdf is None and not each.past]
    if now and not isinstance(log, Missing):
        message = f"the driver could not start a GPU, and does not say which{reach(log)}"
        yield HOST, Judgement(Status.WARN, message, evidence=shown(log, now))


def _hcas(box: Box) -> Judged:
    log, known = box.snapshot.kernel_log, hcas(box)
    listed = () if isinstance(known, Missing) else known
    subjects = {each.bdf: subject(each) for each in listed if isinstance(each.bdf, str)}
    if isinstance(log, Missing):
        yield HOST, unjudged(log) if subjects else skip("not-supported", "no InfiniBand device is here")
        return
    events = [each for each in log.hcas if each.trouble in MEANINGS]
    for bdf in sorted({each.bdf for each in events} - subjects.keys()):
        subjects[bdf] = Subject(kind="hca", name=bdf, bdf=bdf)
    for bdf, place in subjects.items():
        function = box.topology.functions.get(bdf)
        driver = function.driver if function is not None else None
        seen = [each for each in events if each.bdf == bdf]
        other = isinstance(driver, str) and driver != _DRIVER and not seen
        yield (
            place,
            skip("not-supported", f"its driver is {driver}, whose lines are not read") if other else _hca(log, seen),
        )
    if not subjects:
        yield HOST, skip("not-supported", "no InfiniBand device is here")


def _hca(log: KernelLog, seen: Iterable[HcaEvent]) -> Judgement:
    now = [each for each in seen if not each.past]
    told = [kind for kind in MEANINGS if any(each.trouble == kind for each in now)]
    if not told:
        return Judgement(Status.PASS, f"nothing of it in the log{reach(log)}")
    worst = MEANINGS[told[0]]
    about = [each for each in now if each.trouble == told[0]]
    message = f"{'; '.join(MEANINGS[kind].text for kind in told)}: {about[0].text}{reach(log)}"
    return Judgement(worst.status, message, len(now), 0, "lines", shown(log, about), remedy=worst.remedy)


def _modules(box: Box) -> Judged:
    log, known = box.snapshot.kernel_log, ports(box)
    if isinstance(known, Judgement) or isinstance(log, Missing):
        yield HOST, known if isinstance(known, Judgement) else unjudged(log) if isinstance(log, Missing) else NOBODY
        return
    for device, port in known:
        alone = sum(each.bdf == device.bdf for each, _ in known) == 1
        seen = [
            each for each in log.hcas
            if each.trouble == "module" and each.bdf == device.bdf and (alone or each.module == port.port - 1)
        ]  # fmt: skip
        yield port_subject(device, port), _module(log, seen)


def _module(log: KernelLog, seen: list[HcaEvent]) -> Judgement:
    now = [each for each in seen if not each.past]
    if not now:
        before = (
            "its module or cable was changed since the log named it" if seen else "nothing of its module in the log"
        )
        return Judgement(Status.PASS, f"{before}{reach(log)}")
    words = ", ".join(dict.fromkeys(each.text for each in now))
    message = f"module or cable: {words}{reach(log)}"
    return Judgement(Status.WARN, message, len(now), 0, "lines", shown(log, now))


NOBODY = skip("not-supported", "no port of an InfiniBand device is here")
CHECKS = (
    Check(
        id="kernel.gpu-start",
        rule="Fails where the driver logged since it was last loaded that it could not start a GPU (RmInitAdapter"
        " failed), or that its power cables are not connected; warns where NVML lists that GPU now, or the line of an"
        " old driver does not say which it was.",
        source="NVRM lines of NVIDIA's open-gpu-kernel-modules, src/nvidia/arch/nvalloc/unix/src/osinit.c",
        remedy="power the machine off and on; if it comes back, check the GPU's power cables and seating, and whether"
        " this driver still knows this board; then ask for a replacement with nvidia-bug-report.sh's file",
        judge=_starts,
    ),
    Check(
        id="kernel.hca",
        rule="Fails where mlx5_core logged, since it took an adapter last, that it could not start it or that its"
        " firmware stopped to answer; warns where it is too hot or the slot announces too little power. Registers that"
        " may not be read (ACCESS_REG) are no fault.",
        source="Linux drivers/net/ethernet/mellanox/mlx5/core: main.c, health.c, events.c",
        remedy="read the log at these lines; reset the adapter or power the machine off and on",
        judge=_hcas,
    ),
    Check(
        id="kernel.port-module",
        rule="Warns where mlx5_core logged an error of the cable or transceiver in a port, such as High Temperature or"
        " Bus stuck, since it took the adapter or a module was put in.",
        source="Port module event[error] in Linux drivers/net/ethernet/mellanox/mlx5/core/events.c",
        remedy="let it cool, reseat the cable or transceiver, then replace it by one that the adapter supports",
        judge=_modules,
    ),
)
